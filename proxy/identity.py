"""Whether what goes downstream may tell who sent it, other than by a key of ours.

Source: DESIGN 3 (`cacheScope` becomes `private` whenever the caller was identified in any way). Downstreams take
credentials in fields of any name and in the query, so what is not known to be the same for everybody counts as one.
"""

from proxy.ports import Fields

_TELLS_NOBODY = frozenset(
    {
        *("accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "pragma", "user-agent"),
        *("content-length", "content-type", "date", "dnt", "host", "origin", "priority", "via"),
        *("mcp-method", "mcp-name", "mcp-protocol-version", "last-event-id", "traceparent", "tracestate"),
        *("sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site", "sec-fetch-user"),
    }
)
"""What clients send whoever uses them. A session's id is not among them: it may be somebody's."""


def may_tell_who(query: str, fields: Fields) -> bool:
    """Of a forwarded request: the client's raw query, and all header lines, names in any case."""
    return bool(query) or any(name.lower() not in _TELLS_NOBODY for name, _ in fields)

"""Which downstream a URL means: two spellings of one address have one form.

Source: DESIGN 2 (the same downstream is registered once only: a second path to it would have an empty denylist); RFC
3986 section 6.2. Pure. The form is for comparing alone; requests go to the URL as it was given.
"""

import re
from urllib.parse import urlsplit

from registry.addresses import literal

_PORTS = {"http": 80, "https": 443}
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

TAKEN = "a server with this downstream is registered already"
"""Which one is not said: the caller may not see it."""

Origin = tuple[str, int]
"""A host as `host_form` gives it, and a port."""


def url_fault(url: str) -> str | None:
    """Why this cannot be a downstream's address, None when it can.

    It is absolute, `http` or `https`, of visible ASCII, and has no user information (credentials are set elsewhere and
    never shown) and no fragment (which is never sent).
    """
    if not all("!" <= char <= "~" for char in url) or "\\" in url:
        return "the url has characters that must be percent-encoded"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "the url cannot be read"
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        return "the url must be absolute, with http or https and a host"
    if "@" in parts.netloc or "#" in url:
        return "the url must have no user information and no fragment"
    return None


def normal_form(url: str) -> str:
    """Scheme, host, port, path and query in the one form that all spellings of them have.

    Args:
        url: as `url_fault` accepts it.
    """
    parts = urlsplit(url)
    host, port = origin(url)
    path = _without_dots(_unescaped(parts.path or "/"))
    query = f"?{_unescaped(parts.query)}" if parts.query else ""
    return f"{parts.scheme}://{host}:{port}{path}{query}"


def origin(url: str) -> Origin:
    """Where a URL leads to."""
    parts = urlsplit(url)
    return host_form(parts.hostname or ""), parts.port or _PORTS[parts.scheme]


def host_form(host: str) -> str:
    """A host name in lower case without its last dot, or the usual spelling of the address that it spells."""
    address = literal(host)
    return host.lower().rstrip(".") if address is None else str(address)


def _unescaped(text: str) -> str:
    """Without escapes that need not be, the others in capitals (RFC 3986 6.2.2.1 and 6.2.2.2)."""

    def one(match: re.Match[str]) -> str:
        char = chr(int(match[1], 16))
        return char if char in _UNRESERVED else match[0].upper()

    return _ESCAPE.sub(one, text)


def _without_dots(path: str) -> str:
    """RFC 3986 5.2.4."""
    kept: list[str] = []
    *segments, last = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            kept = kept[:-1]
        elif segment != ".":
            kept.append(segment)
    if last == "..":
        kept = kept[:-1]
    return "/".join(("", *kept, "" if last in (".", "..") else last))

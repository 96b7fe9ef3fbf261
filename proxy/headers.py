"""Header fields: what they say, what must agree with the body, what goes on downstream.

Source: RFC 9110 sections 5.5, 7.6.1, 7.6.3 and 8.3; MCP 2026-07-28 (mirrored headers); DESIGN 3; PROTOCOL 2, 9 and 10.4
rule 2. Values are what the HTTP library read, names in any case.

Invariant: no field that leaves here tells the next reader something else than the body that was inspected.
"""

import base64
import re
from collections.abc import Mapping
from typing import Any

from proxy import cookies
from proxy.errors import BadFields, HeaderMismatch, UnsupportedMedia
from proxy.jsonrpc import VERSION_KEY, Body, Message, Response
from proxy.jsontext import has_lone_surrogate, string
from proxy.ports import Fields
from registry.credentials import holds_key, key_in

JSON = "application/json"
EVENT_STREAM = "text/event-stream"

_NAME_MEMBERS: Mapping[str, str] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""Method -> the member of `params` that `Mcp-Name` mirrors."""

_ONCE = ("content-type", "authorization", "mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id")

_END_TO_END = frozenset(
    {
        "accept",
        "authorization",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "host",
        "last-event-id",
        "origin",
        "via",
        "x-sluicegate-key",
    }
)
"""With `Mcp-*`: fields that `Connection` may not list, since that would have them taken away from later readers."""

HOP_BY_HOP = frozenset(
    {"connection", "content-length", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "http2-settings"}
)
"""With `Proxy-*`: about this connection only. Content-Length goes with them: each side frames anew."""

_NOT_FORWARDED = frozenset(
    {
        "accept-encoding",  # replaced: a coded answer could not be read
        "cookie",  # all downstreams share our origin
        "expect",
        "forwarded",  # a client's word about who it is
        "host",
        "if-range",
        "origin",  # we checked it; the downstream does not know our public name and would answer 403
        "range",  # half of a list looks like none
        "x-http-method",  # this and the next four: another request than the one that was inspected
        "x-http-method-override",
        "x-method-override",
        "x-original-url",
        "x-rewrite-url",
    }
)

_GUARDED = HOP_BY_HOP | _NOT_FORWARDED | _END_TO_END
"""With `Mcp-*`, `Proxy-*`, `X-Forwarded-*` and `X-Sluicegate-*`: every name that something here looks at."""

_UTF8 = re.compile(r';[ \t]*charset=("?)utf-?8\1[ \t]*(?:;|\Z)', re.IGNORECASE | re.ASCII)
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
"""Never in a field (RFC 9110 5.5); the HTTP library reads it in an answer and does not write it."""

_PLAIN = re.compile(r"[ -~]*")
_SENTINEL = re.compile(r"=\?base64\?([A-Za-z0-9+/]*={0,2})\?=")


def values(fields: Fields, name: str) -> tuple[str, ...]:
    """The values of one field in order, surrounding blanks trimmed; `name` in lower case."""
    return tuple(value.strip(" \t") for field, value in fields if field.lower() == name)


def media_type(fields: Fields) -> str:
    """The media type without parameters, lower case; empty unless there is exactly one Content-Type."""
    found = values(fields, "content-type")
    return found[0].partition(";")[0].rstrip(" \t").lower() if len(found) == 1 else ""


def accepts(fields: Fields, wanted: str) -> bool:
    """May an answer have this media type? Without the field it may (RFC 9110 12.5.1); qualities are not weighed."""
    ranges = {member.partition(";")[0].rstrip() for member in listed(fields, "accept")}
    return not ranges or not ranges.isdisjoint({wanted, wanted.partition("/")[0] + "/*", "*/*"})


def charset_is_utf8(fields: Fields) -> bool:
    """True when Content-Type names no charset, or UTF-8 once; no spelling that a reader could take otherwise."""
    value = ",".join(values(fields, "content-type"))
    mentions = value.casefold().count("charset")
    return mentions == 0 or (mentions == 1 and _UTF8.search(value) is not None)


def is_utf8(fields: Fields) -> bool:
    """False when a line has bytes that are not UTF-8: the HTTP library would leave them out on the way on."""
    return not has_lone_surrogate("".join([name + value for name, value in fields]))


def holds_control(fields: Fields) -> bool:
    """True when a line has a control character other than a tab."""
    return _CONTROL.search("".join([name + value for name, value in fields])) is not None


def content_coding(fields: Fields) -> str:
    """The content codings other than `identity`, lower case, joined by `, `; empty when there are none."""
    codings = listed(fields, "content-encoding")
    return ", ".join(coding for coding in codings if coding != "identity")


def transfer_coding(fields: Fields) -> str:
    """The transfer codings other than `chunked`, which alone the HTTP library undoes; spelled as `content_coding`."""
    codings = listed(fields, "transfer-encoding")
    return ", ".join(coding for coding in codings if coding not in {"chunked", "identity"})


def check_request_fields(fields: Fields) -> None:
    """Check what can be judged without the body.

    Raises:
        BadFields: a field that decides comes twice, `Connection` lists one that is not about the connection, or a line
            is not UTF-8.
        UnsupportedMedia: a charset other than UTF-8, or a content coding.
    """
    names = [name.lower() for name, _ in fields]
    for name in _ONCE:
        if names.count(name) > 1:
            raise BadFields(f"more than one {name} field")  # first-copy and last-copy readers differ
    for option in listed(fields, "connection"):
        if option in _END_TO_END or option.startswith("mcp-"):
            raise BadFields(f"Connection lists {option}")
    if not is_utf8(fields):
        raise BadFields("a header field is not UTF-8")
    if not charset_is_utf8(fields):
        raise UnsupportedMedia("the charset must be utf-8")
    if content_coding(fields):
        raise UnsupportedMedia("a content coding is not accepted")


def check_mcp_fields(fields: Fields, body: Body) -> None:
    """Check that mirrored fields say what the body says, so that who routes by them sees the request we judged.

    A missing field is the downstream's to judge: whether it is required depends on the revision, and what is absent
    misleads nobody. For the same reason a version field alone is fine: revisions before 2026-07-28 have no other.

    Raises:
        HeaderMismatch: one disagrees, cannot be read, or mirrors something that this body has not.
    """
    if body.is_batch and (values(fields, "mcp-method") or values(fields, "mcp-name")):
        raise HeaderMismatch("a batch has no one method or name to mirror")
    for message in body.messages:
        for name, said in _mirrored(message).items():
            if any(_readable(name, value) != said for value in values(fields, name)):
                raise HeaderMismatch(f"the {name} field does not match the body", id=body.only_id)


def _mirrored(message: Message) -> dict[str, str | None]:
    """Field name -> what the body says; None means that no value can match."""
    if isinstance(message, Response):
        return {"mcp-method": None, "mcp-name": None}
    member = _NAME_MEMBERS.get(message.method, "")
    said = {"mcp-method": message.method, "mcp-name": string(message.params.get(member))}
    meta: Any = message.params.get("_meta")
    if isinstance(meta, Mapping) and VERSION_KEY in meta:
        return {**said, "mcp-protocol-version": string(meta[VERSION_KEY])}
    return said


def _readable(name: str, value: str) -> str | None:
    """What a mirrored value says; None when it is not visible ASCII or a damaged sentinel."""
    if _PLAIN.fullmatch(value) is None:
        return None
    looks_coded = name == "mcp-name" and value.lower().startswith("=?base64?")  # `=?BASE64?` is one to lax readers
    return _decoded(value) if looks_coded else value


def _decoded(value: str) -> str | None:
    match = _SENTINEL.fullmatch(value)
    if match is None:
        return None
    try:
        raw = base64.b64decode(match[1], validate=True)
        return raw.decode("utf-8") if base64.b64encode(raw).decode() == match[1] else None  # canonical, so one reading
    except ValueError:
        return None


def came_through(fields: Fields, pseudonym: str) -> bool:
    """True when `Via` names this pseudonym (RFC 9110 7.6.3): the request has been here before.

    Args:
        pseudonym: in lower case.
    """
    return any(pseudonym in member.split() for member in listed(fields, "via"))


def forwarded_fields(fields: Fields, key: str | None, via: str, *, passes_cookies: bool = False) -> Fields:
    """The fields for the downstream, in order; the sender adds `Host` and framing.

    Args:
        fields: of the client's request, after `check_request_fields`.
        key: the credential that we accepted, None for a caller without one. Every line that holds it stays here, and
            so does everything that has the form of a key of ours.
        via: our line of `Via`, which comes after those of others; a gateway must add one (RFC 9110 7.6.3).
        passes_cookies: `Cookie` goes on, less what is ours in it.
    """
    if passes_cookies:
        fields = tuple(cookies.forwarded(fields))
    stays = HOP_BY_HOP | _NOT_FORWARDED | frozenset(listed(fields, "connection"))
    stays -= {"cookie"} if passes_cookies else set()
    kept = tuple((name, value) for name, value in fields if not _stays(name.lower(), stays) and not _is_disguised(name))
    ours = (("Accept-Encoding", "identity"), ("Via", via))
    return (*(field for field in kept if not _is_credential(field, key)), *ours)


def _stays(name: str, stays: frozenset[str]) -> bool:
    return name in stays or name.startswith(("proxy-", "x-forwarded-", "x-sluicegate-"))


def _is_disguised(name: str) -> bool:
    """A name that CGI-like readers take for one that we judge: they cannot tell `_` from `-`."""
    dashed = name.lower().replace("_", "-")
    return "_" in name and (dashed.startswith("mcp-") or _stays(dashed, _GUARDED))


def _is_credential(field: tuple[str, str], key: str | None) -> bool:
    return key_in(*field) is not None or holds_key(field[1]) or bool(key and key in field[1])


def listed(fields: Fields, name: str) -> tuple[str, ...]:
    """The members of a comma-separated field, lower case, over all its lines (RFC 9110 5.6.1)."""
    members = (member.strip(" \t").lower() for value in values(fields, name) for member in value.split(","))
    return tuple(member for member in members if member)

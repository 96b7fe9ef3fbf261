"""The head of a downstream's answer, as it goes back to the client.

Source: DESIGN 3 (Pass the rest); RFC 9110 sections 7.6.1, 10.2.2 and 15.4. All downstreams share our origin, so what
speaks for an origin stays here, and no body may run as a page of it.
"""

from collections.abc import Iterator

from proxy import cookies, locations
from proxy.errors import DownstreamUnusable
from proxy.headers import EVENT_STREAM, HOP_BY_HOP, JSON, listed, media_type, values
from proxy.locations import Place, Unmappable
from proxy.ports import Fields

_NOT_RETURNED = frozenset(
    {
        "alt-svc",  # this and the next two speak for our whole origin; this one could lead clients past us
        "clear-site-data",
        "service-worker-allowed",
        "content-location",  # the downstream's own address, which is nobody's here
        "location",  # see `_located`
        "refresh",  # a redirect that only browsers know
        "content-security-policy",  # ours is set
        "set-cookie",  # see `cookies`
        "set-cookie2",
        "x-content-type-options",  # ours is set
    }
)

_OF_EXACT_BYTES = frozenset({"content-digest", "content-md5", "digest", "etag", "repr-digest"})

_OURS: Fields = (("X-Content-Type-Options", "nosniff"), ("Content-Security-Policy", "sandbox"))
"""No answer of a downstream may run as a page of our origin, which all of them share with the console."""


def returned_fields(fields: Fields, place: Place, *, may_be_edited: bool, passes_cookies: bool = False) -> Fields:
    """The fields for the client, in order; the transport adds framing and the CORS fields, which are ours.

    Args:
        fields: of the downstream's answer.
        place: where the server stands. A `Location` that leads elsewhere is left out.
        may_be_edited: the body may leave here changed, so nothing may vouch for its exact bytes.
        passes_cookies: `Set-Cookie` goes back, bound to the server's path.
    """
    drops = HOP_BY_HOP | _NOT_RETURNED | frozenset(listed(fields, "connection"))
    drops = drops | _OF_EXACT_BYTES if may_be_edited else drops
    kept = tuple((name, value) for name, value in fields if not _is_dropped(name.lower(), drops))
    set_cookies = cookies.returned(fields, place.prefix) if passes_cookies else ()
    return (*_harmless(kept), *_located(fields, place), *set_cookies, *_OURS)


def check_redirect(status: int, fields: Fields, place: Place) -> None:
    """Let a redirect pass only when the client can follow it here. Raises DownstreamUnusable, which says why not."""
    if not 300 <= status < 400 or status == 304:
        return
    try:
        locations.mapped(_location(fields), place)
    except Unmappable as exc:
        raise DownstreamUnusable(f"the downstream redirects {exc}") from exc


def _located(fields: Fields, place: Place) -> Iterator[tuple[str, str]]:
    try:
        yield "Location", locations.mapped(_location(fields), place)
    except Unmappable:
        return  # of a redirect, `check_redirect` has told


def _location(fields: Fields) -> str:
    found = values(fields, "location")
    if len(found) != 1:
        raise Unmappable("to several places" if found else "without saying where")
    return found[0]


def _is_dropped(name: str, drops: frozenset[str]) -> bool:
    return name in drops or name.startswith(("proxy-", "access-control-"))


def _harmless(fields: Fields) -> Fields:
    """Turn every type but JSON and SSE into text. A body without a type gets none: `nosniff` keeps it from running."""
    if media_type(fields) in {JSON, EVENT_STREAM} or not values(fields, "content-type"):
        return fields
    return (*(field for field in fields if field[0].lower() != "content-type"), ("Content-Type", "text/plain"))

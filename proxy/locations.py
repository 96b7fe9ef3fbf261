"""Where a downstream's reference leads, told in our own addresses.

Source: DESIGN 3 (redirects); RFC 3986 sections 5.2 and 6.2.2. A server has one address here, so a reference can be
followed here only when it leads to the same endpoint with another query.

Invariant: what comes back begins with the server's own prefix.
"""

import re
from dataclasses import dataclass

_REFERENCE = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
"""RFC 3986 appendix B, with its scheme."""

_VISIBLE = re.compile(r"[!-\[\]-~]*")
"""Visible ASCII without the backslash, which browsers read as a slash."""

_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:@\[\]]+)(?::([0-9]*))?")
_PORTS = {"http": "80", "https": "443"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server stands.

    `url` is its configured address; `query` is what the client's request adds to it, empty for nothing; `prefix` is
    its path here, as clients see it: `/proxy/github`.
    """

    url: str
    query: str
    prefix: str


class Unmappable(Exception):
    """It leads to nowhere here. The text goes on a sentence: "to another origin"."""


@dataclass(frozen=True, slots=True)
class _Parts:
    scheme: str | None
    authority: str | None
    path: str
    query: str | None
    fragment: str | None


def mapped(reference: str, place: Place) -> str:
    """The reference as one of ours, from the server's prefix on. Raises Unmappable."""
    if not reference or _VISIBLE.fullmatch(reference) is None:
        raise Unmappable("to what is no address")
    base = _split(place.url)
    found = _resolved(_split(reference), base, place)
    if _origin(found) != _origin(base):
        raise Unmappable("to another origin")
    if found.path != _without_dots(base.path or "/"):
        is_spelling = found.path.rstrip("/") == base.path.rstrip("/")
        raise Unmappable("to another spelling of its own address" if is_spelling else "to a path that is not served")
    added = _added(found.query, base.query)
    if added == place.query:
        raise Unmappable("to itself")
    fragment = "" if found.fragment is None else f"#{found.fragment}"
    return place.prefix + (f"?{added}" if added else "") + fragment


def _split(text: str) -> _Parts:
    scheme, authority, path, query, fragment = next(_REFERENCE.finditer(text)).groups()  # it takes any text
    return _Parts(None if scheme is None else scheme.lower(), authority, path, query, fragment)


def _resolved(found: _Parts, base: _Parts, place: Place) -> _Parts:
    """RFC 3986 5.2.2, strict."""
    if found.scheme is not None:
        return _Parts(found.scheme, found.authority, _without_dots(found.path or "/"), found.query, found.fragment)
    if found.authority is not None:
        return _Parts(base.scheme, found.authority, _without_dots(found.path or "/"), found.query, found.fragment)
    if not found.path:
        asked = "&".join(filter(None, (base.query, place.query))) or None
        query = asked if found.query is None else found.query
        return _Parts(base.scheme, base.authority, _without_dots(base.path or "/"), query, found.fragment)
    path = found.path if found.path.startswith("/") else base.path.rpartition("/")[0] + "/" + found.path
    return _Parts(base.scheme, base.authority, _without_dots(path), found.query, found.fragment)


def _without_dots(path: str) -> str:
    """RFC 3986 5.2.4; a path without a slash at its beginning (`data:x`) is none of a server."""
    if not path.startswith("/"):
        return path
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


def _origin(parts: _Parts) -> tuple[str, str, str]:
    match = _AUTHORITY.fullmatch(parts.authority or "")
    if parts.scheme not in _PORTS or match is None:
        raise Unmappable("to another origin")
    return parts.scheme, match[1].lower(), match[2] or _PORTS[parts.scheme]


def _added(query: str | None, configured: str | None) -> str:
    """What a query has besides the configured one, which comes first."""
    if not configured:
        return query or ""
    if query == configured:
        return ""
    if query is None or not query.startswith(f"{configured}&"):
        raise Unmappable("to a path that is not served")
    return query.removeprefix(f"{configured}&")

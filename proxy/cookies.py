"""Cookies of one downstream, kept apart from those of others and from ours.

Source: DESIGN 3; RFC 6265 sections 4 and 5.2. All downstreams share our origin: a browser sends a cookie where its path
says, so each one is bound to the server's path, and one that cannot be bound to a path does not pass.
"""

from collections.abc import Iterator

from proxy.ports import Fields

_OURS = ("sluicegate", "__host-sluicegate", "__secure-sluicegate")
"""Begin the names of our own cookies; browsers compare these prefixes without regard to case."""

_PATHLESS = "__host-"
"""Begins a name that demands the path `/`, which is everybody's."""


def forwarded(fields: Fields) -> Iterator[tuple[str, str]]:
    """The fields of a request, without our own cookies."""
    for name, value in fields:
        if name.lower() != "cookie":
            yield name, value
        elif kept := [pair for pair in value.split(";") if not _name(pair).startswith(_OURS)]:
            yield name, ";".join(kept).strip(" \t")


def returned(fields: Fields, path: str) -> Iterator[tuple[str, str]]:
    """The cookies that a downstream sets, each bound to `path` and to our own host."""
    for name, value in fields:
        if name.lower() == "set-cookie" and (bound := _bound(value, path)) is not None:
            yield "Set-Cookie", bound


def _bound(value: str, path: str) -> str | None:
    pair, *attributes = value.split(";")
    name = _name(pair)
    if not name or "=" not in pair or name.startswith((_PATHLESS, *_OURS)):
        return None
    kept = [attribute.strip(" \t") for attribute in attributes if _name(attribute) not in ("domain", "path", "")]
    return "; ".join((pair.strip(" \t"), *kept, f"Path={path}"))


def _name(pair: str) -> str:
    return pair.partition("=")[0].strip(" \t").lower()

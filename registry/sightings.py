"""Names of tools that a downstream lists to callers, and that the registry's own refresh did not get. Pure.

A downstream may list different tools to different callers, so a snapshot need not hold all of them. A name that was
seen can be disabled in advance (DESIGN 5), once its owner knows of it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

MOST_NAMES = 1_000
"""Kept of one server. A downstream that invents names must not fill the store."""

MOST_CHARS = 256
"""Of a name; longer ones are not kept."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A name, and when it was first seen, by the store's clock."""

    name: str
    first_seen_at: datetime


@dataclass(frozen=True, slots=True)
class News:
    """What is to be kept from now on, in order, and what is not any more."""

    added: tuple[str, ...]
    gone: frozenset[str]


def news(seen: Iterable[str], kept: Iterable[Sighting], current: frozenset[str]) -> News:
    """What a list changes. `current` are the tools of the snapshot: what it has got is no news and need not be kept."""
    names = frozenset(sighting.name for sighting in kept)
    gone = names & current
    fresh = sorted(name for name in set(seen) - current - names if len(name) <= MOST_CHARS)
    return News(tuple(fresh[: max(MOST_NAMES - len(names - gone), 0)]), gone)


def unlisted(kept: Iterable[Sighting], current: frozenset[str]) -> list[Sighting]:
    """Those that the snapshot does not have, by name."""
    return sorted((one for one in kept if one.name not in current), key=lambda one: one.name)

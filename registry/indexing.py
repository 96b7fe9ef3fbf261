"""What a search index holds, and the way from what it holds to what it should hold. Pure.

Source: DESIGN 6; WEAVIATE (ids, one object per tool). `tool_enabled` is what holds for everybody: the owner's list,
tombstones, global switches. What depends on a key is decided when a search is answered.

Invariant: `difference` of what is wanted and what is stored, applied, makes the stored equal to the wanted, whatever
was there before.
"""

import uuid
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from registry.entries import Server
from registry.model import ServerPolicy, Switch
from registry.words import name_stems, stems

if TYPE_CHECKING:
    Vector: TypeAlias = array[float]
else:
    Vector = array  # takes no parameter before Python 3.12
"""An embedding: an array of float32 ("f"), of length 1. Small, typed, and numerical libraries share its memory."""

DESCRIPTION_CHARS = 300
"""Of a description that are indexed. Measured: more lowers the quality of the ranking and doubles the time."""

_NAMESPACE = uuid.UUID("9d1f0b0e-6c4b-5a33-9a58-3f3f6a1f5a11")
"""Of the ids; any constant will do, and changing it makes every index start over."""


@dataclass(frozen=True, slots=True)
class ToolEntry:
    """One tool as an index holds it.

    `text` is what is searched: embedded as it is, ranked by words through `searched_terms`. `revision` is the policy
    revision at the time of writing; it is told, never compared. `vector_source` names the embedder whose vector of
    `text` is stored with it, empty while there is none.
    """

    server_id: str
    server_path: str
    server_name: str
    tool: str
    text: str
    tool_enabled: bool
    server_enabled: bool
    revision: int = 0
    vector_source: str = ""

    @property
    def id(self) -> str:
        """The same for the same tool of the same server, on every replica."""
        return entry_id(self.server_id, self.tool)


def entry_id(server_id: str, tool: str) -> str:
    """UUID version 5 of server id, NUL, tool name."""
    return str(uuid.uuid5(_NAMESPACE, f"{server_id}\0{tool}"))


@dataclass(frozen=True, slots=True)
class Changes:
    """What has to be written so that an index holds what it should.

    `flips` differ from what is stored in `tool_enabled` or `server_enabled` alone. `upserts` are new, or differ in
    more. `removals` are ids.
    """

    flips: tuple[ToolEntry, ...] = ()
    upserts: tuple[ToolEntry, ...] = ()
    removals: frozenset[str] = frozenset()

    def __len__(self) -> int:
        """How many objects differ: the drift."""
        return len(self.flips) + len(self.upserts) + len(self.removals)


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """One search.

    `vector` is the embedding of `text`, None to rank by words alone or to let the index make its own. `servers` are
    ids, None for all. `only_enabled`: entries with both flags. `limit` is at least 1.
    """

    text: str
    vector: Vector | None
    limit: int
    servers: frozenset[str] | None = None
    only_enabled: bool = True


@dataclass(frozen=True, slots=True)
class Hit:
    """One ranked result; a higher `score` is better, and scores of one search alone compare."""

    server_id: str
    tool: str
    score: float


def entries_of(server: Server, switches: Iterable[Switch] = ()) -> tuple[ToolEntry, ...]:
    """What an index should hold of this server, without vectors. A server whose policy cannot be read is off."""
    off = server.policy.disabled_tools | server.policy.retired_disabled_tools
    off |= {switch.tool for switch in switches if switch.server_id in (None, server.id)}
    return tuple(
        ToolEntry(
            server_id=server.id,
            server_path=server.path,
            server_name=server.name,
            tool=tool.name,
            text=searched_text(server.name, tool.name, tool.description),
            tool_enabled=tool.name not in off,
            server_enabled=is_on(server.policy),
            revision=server.policy.revision,
        )
        for tool in server.tools
    )


def is_on(policy: ServerPolicy) -> bool:
    """True when the server is enabled and its policy can be read."""
    return policy.enabled and policy.fault is None


def searched_text(server_name: str, tool: str, description: str) -> str:
    """`server tool: description`, names as they are, the description cut short."""
    return f"{server_name} {tool}: {description[:DESCRIPTION_CHARS]}"


def searched_terms(entry: ToolEntry) -> list[str]:
    """The stems to rank by words; those of the tool's name count twice, since a name says more than a sentence."""
    return stems(entry.text) + name_stems(entry.tool)


def with_vectors(entries: Iterable[ToolEntry], source: str, vectors: Mapping[str, Vector]) -> tuple[ToolEntry, ...]:
    """The entries with `vector_source` set where `vectors`, by text, has a vector."""
    return tuple(replace(entry, vector_source=source) if entry.text in vectors else entry for entry in entries)


def difference(wanted: Iterable[ToolEntry], stored: Mapping[str, ToolEntry]) -> Changes:
    """What to write.

    Args:
        wanted: with `vector_source` where a vector can be given now.
        stored: by id, as the index has them.
    """
    by_id = {entry.id: entry for entry in wanted}
    flips, upserts = [], []
    for key, entry in by_id.items():
        before = stored.get(key)
        if before is None or _rewritten(before, entry):
            upserts.append(entry)
        elif (before.tool_enabled, before.server_enabled) != (entry.tool_enabled, entry.server_enabled):
            flips.append(replace(entry, vector_source=before.vector_source))
    return Changes(tuple(flips), tuple(upserts), frozenset(stored.keys() - by_id.keys()))


def written(wanted: Iterable[ToolEntry], stored: Mapping[str, ToolEntry]) -> dict[str, ToolEntry]:
    """What an index holds once the difference of the two is applied, by id."""
    return {entry.id: _keeping_vector(entry, stored.get(entry.id)) for entry in wanted}


def _keeping_vector(entry: ToolEntry, before: ToolEntry | None) -> ToolEntry:
    if before is None or entry.vector_source or _rewritten(before, entry):
        return entry
    return replace(entry, vector_source=before.vector_source)


def _rewritten(before: ToolEntry, after: ToolEntry) -> bool:
    """True when more than flags has changed. An entry that has a vector keeps it until there is a better one."""
    if _identity(before) != _identity(after):
        return True
    return bool(after.vector_source) and before.vector_source != after.vector_source


def _identity(entry: ToolEntry) -> tuple[str, ...]:
    return entry.server_id, entry.server_path, entry.server_name, entry.tool, entry.text

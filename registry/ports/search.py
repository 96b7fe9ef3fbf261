"""What search needs: an index, an embedder, and where vectors are kept."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from registry.indexing import Changes, Hit, SearchQuery, ToolEntry, Vector


class ToolIndex(Protocol):
    """A copy of all tools that can be searched. It decides nothing; the authority is asked about every hit.

    Every method raises IndexUnavailable (not there, or not in time; it may come back by itself) and IndexUnusable
    (a person has to do something: a wrong key, another schema, an unsupported version).
    """

    async def prepare(self) -> None:
        """Create what is missing, bring an older form up to date. Called again after every failure."""
        ...

    async def server_ids(self) -> frozenset[str]:
        """The servers that it holds entries of."""
        ...

    async def stored(self, server_id: str) -> Mapping[str, ToolEntry]:
        """What it holds of one server, by entry id."""
        ...

    async def write(self, changes: Changes, vectors: Mapping[str, Vector]) -> None:
        """Apply the changes; a part may have been applied when it raises.

        `vectors` are by text, for those entries whose `vector_source` is set.
        """
        ...

    async def clear(self) -> None:
        """Remove everything of ours, so that `prepare` starts from nothing."""
        ...

    async def search(self, query: SearchQuery) -> Sequence[Hit]:
        """The best hits, best first, at most `query.limit`; fewer only when no more match."""
        ...


class FlagStore(Protocol):
    """The collection of another registry, of which only the flag is ours to set. Raises as ToolIndex does."""

    async def prepare(self) -> None:
        """Check that it has what is needed; creates nothing."""
        ...

    async def flags(self, server: str) -> Mapping[str, Sequence[tuple[str, bool | None]]]:
        """The objects of one server by tool name: their ids, and the flag as it is (None: not set)."""
        ...

    async def set_flags(self, flags: Mapping[str, bool]) -> None:
        """Set the flag of these objects, by id; an object that is gone meanwhile is passed over."""
        ...


class PropertyAdder(Protocol):
    """Gives the collection of another registry the one property that it lacks."""

    async def add_property(self) -> None:
        """Add `tool_enabled`; harmless when it is there. Raises as ToolIndex does."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def name(self) -> str:
        """Names the model and its version: vectors of two names do not compare."""
        ...

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """One vector per text, in order, off the event loop. Raises EmbedderUnusable."""
        ...

    def close(self) -> None:
        """End its threads."""
        ...


class VectorCache(Protocol):
    """Keeps vectors over a restart. Best effort: what it has lost is computed again."""

    def load(self, name: str) -> Mapping[str, Vector]:
        """All vectors of one embedder, by text. Blocks."""
        ...

    def save(self, name: str, vectors: Mapping[str, Vector]) -> None:
        """Keep these too. Blocks."""
        ...

"""What a mirror writes to: an index of ours, or the collection of another registry.

Source: DESIGN 6. In a collection that is not ours nothing is created and nothing removed; only `tool_enabled` of the
objects that match is set.
"""

from collections.abc import Callable, Mapping

from registry.catalogue import Catalogue
from registry.errors import IndexUnavailable
from registry.indexing import ToolEntry, difference, entries_of, with_vectors, written
from registry.ports import FlagStore, ToolIndex
from registry.vectors import Vectors


class IndexTarget:
    """`registry.mirror.Target` on a `ToolIndex`.

    It remembers what it wrote, so that a flip costs one write and no read; `prepare` forgets it, so that a comparison
    of everything sees what others did to the index. `on_vectors` is told a server's id when vectors for it have come.
    """

    def __init__(self, index: ToolIndex, catalogue: Catalogue, vectors: Vectors) -> None:
        self._index = index
        self._catalogue = catalogue
        self._vectors = vectors
        self._stored: dict[str, Mapping[str, ToolEntry]] = {}
        self.on_vectors: Callable[[str], None] = _ignored

    @property
    def missing(self) -> int:
        """Always 0: what is missing is made."""
        return 0

    @property
    def objects(self) -> int:
        """As last written."""
        return sum(map(len, self._stored.values()))

    async def prepare(self) -> None:
        """As Target.prepare. Waits for the catalogue: what it does not know yet is no orphan.

        And for the vectors that are kept: what has one need not be written twice.
        """
        await self._catalogue.ready.wait()
        await self._vectors.loaded.wait()
        self._stored.clear()
        await self._index.prepare()

    async def server_ids(self) -> frozenset[str]:
        """As Target.server_ids."""
        return await self._index.server_ids() | self._catalogue.ids()

    async def sync(self, server_id: str) -> int:
        """As Target.sync. What has no vector yet is written without one, and again when it has come."""
        server = self._catalogue.server(server_id)
        entries = entries_of(server) if server else ()
        vectors = self._vectors.known(entry.text for entry in entries)
        wanted = with_vectors(entries, self._vectors.name, vectors)
        known = self._stored.pop(server_id, None)
        stored = await self._index.stored(server_id) if known is None else known
        changes = difference(wanted, stored)
        if changes:
            await self._index.write(changes, vectors)
        now = self._stored[server_id] = written(wanted, stored)
        lacking = [entry.text for entry in now.values() if entry.vector_source != self._vectors.name]
        self._vectors.want((self, server_id), lacking, lambda: self.on_vectors(server_id))
        return len(changes)

    async def check(self) -> None:
        """As Target.check: the servers that were written are there."""
        gone = {server_id for server_id, stored in self._stored.items() if stored} - await self._index.server_ids()
        if gone:
            raise IndexUnavailable("entries have vanished from the index")

    async def clear(self) -> None:
        """As Target.clear."""
        self._stored.clear()
        await self._index.clear()


def _ignored(server_id: str) -> None:
    del server_id


class FlagTarget:
    """`registry.mirror.Target` on the collection of another registry.

    Args:
        by_path: the collection names servers by their path; else by their id.
    """

    def __init__(self, flags: FlagStore, catalogue: Catalogue, *, by_path: bool) -> None:
        self._flags = flags
        self._catalogue = catalogue
        self._by_path = by_path
        self._missing: dict[str, int] = {}
        self._objects: dict[str, int] = {}

    @property
    def missing(self) -> int:
        """Tools without an object."""
        return sum(self._missing.values())

    @property
    def objects(self) -> int:
        """Objects that belong to a tool of ours."""
        return sum(self._objects.values())

    async def prepare(self) -> None:
        """As Target.prepare."""
        await self._catalogue.ready.wait()
        await self._flags.prepare()

    async def server_ids(self) -> frozenset[str]:
        """Ours alone: what else the collection holds is not our business."""
        return self._catalogue.ids()

    async def sync(self, server_id: str) -> int:
        """As Target.sync."""
        server = self._catalogue.server(server_id)
        self._missing.pop(server_id, None)
        self._objects.pop(server_id, None)
        if server is None:
            return 0
        stored = await self._flags.flags(server.path if self._by_path else server.id)
        wanted = {entry.tool: entry.tool_enabled and entry.server_enabled for entry in entries_of(server)}
        found = [(key, flag, wanted[tool]) for tool in wanted for key, flag in stored.get(tool, ())]
        changed = {key: wish for key, flag, wish in found if flag is not wish}
        if changed:
            await self._flags.set_flags(changed)
        self._missing[server_id] = sum(tool not in stored for tool in wanted)
        self._objects[server_id] = len(found)
        return len(changed)

    async def check(self) -> None:
        """As Target.check: the collection is there."""
        await self._flags.prepare()

    async def clear(self) -> None:
        """Nothing there is ours to remove."""

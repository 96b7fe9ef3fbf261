"""What a mirror writes: all that differs, nothing else, and in a collection of others the flags alone (DESIGN 6)."""

import asyncio
from array import array
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from config.background import running
from registry.catalogue import Catalogue
from registry.changes import StoreChange, Subject
from registry.embeddings import NoVectors
from registry.entries import Server, Tool
from registry.errors import IndexUnavailable
from registry.indexing import Changes, ToolEntry, Vector, entries_of, entry_id
from registry.localindex import LocalIndex
from registry.memory import MemoryStore
from registry.targets import FlagTarget, IndexTarget
from registry.vectors import Vectors
from tests import build
from tests.waiting import until


class Index(LocalIndex):
    """The index in this process, with every call noted. `failure`: writes are applied, then fail with it."""

    def __init__(self) -> None:
        super().__init__()
        self.prepared = 0
        self.read: list[str] = []
        self.writes: list[Changes] = []
        self.vectors: list[Mapping[str, Vector]] = []
        self.failure: IndexUnavailable | None = None

    async def prepare(self) -> None:
        self.prepared += 1

    async def stored(self, server_id: str) -> Mapping[str, ToolEntry]:
        self.read.append(server_id)
        return await super().stored(server_id)

    async def write(self, changes: Changes, vectors: Mapping[str, Vector]) -> None:
        self.writes.append(changes)
        self.vectors.append(dict(vectors))
        await super().write(changes, vectors)
        if self.failure is not None:
            raise self.failure

    async def tools(self) -> dict[str, ToolEntry]:
        """What it holds of server a, by tool; not noted."""
        return {entry.tool: entry for entry in (await super().stored("a")).values()}


class Flags:
    """`FlagStore`: objects by server and tool, as (id, flag)."""

    def __init__(self) -> None:
        self.prepared = 0
        self.objects: dict[str, dict[str, list[tuple[str, bool | None]]]] = {}
        self.asked: list[str] = []
        self.writes: list[dict[str, bool]] = []
        self.failure: IndexUnavailable | None = None

    async def prepare(self) -> None:
        self.prepared += 1

    async def flags(self, server: str) -> Mapping[str, Sequence[tuple[str, bool | None]]]:
        self.asked.append(server)
        if self.failure is not None:
            raise self.failure
        return self.objects.get(server, {})

    async def set_flags(self, flags: Mapping[str, bool]) -> None:
        self.writes.append(dict(flags))
        for tools in self.objects.values():
            for tool, found in tools.items():
                tools[tool] = [(key, flags.get(key, flag)) for key, flag in found]


class Toy:
    """An `Embedder` that waits while `gate` is shut."""

    name = "toy-1"

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        self.texts += texts
        await self.gate.wait()
        return [array("f", [float(len(text))]) for text in texts]

    def close(self) -> None:
        """Nothing to close."""


class Plane:
    """Server a, and what follows it. It may be `changed` or `removed`."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.catalogue = Catalogue(self.store.servers, self.store.feed)
        self.told: asyncio.Queue[str] = asyncio.Queue()
        self.catalogue.listen(self.told.put_nowait)
        self.store.state.servers["a"] = build.server("read", "write", id="a", path="/lab/a")

    async def changed(self, *tools: str, **policy: Any) -> None:
        server = self.store.state.servers["a"]
        kept = tuple(map(Tool, tools)) if tools else server.tools
        await self._becomes(replace(server, tools=kept, policy=replace(server.policy, **policy)))

    async def removed(self) -> None:
        await self._becomes(None)

    async def _becomes(self, server: Server | None) -> None:
        del self.store.state.servers["a"]
        self.store.state.servers |= {} if server is None else {"a": server}
        self.store.feed.tell(StoreChange(Subject.SERVER, "a"))
        assert await self.told.get() == "a"


@pytest.fixture
async def plane() -> AsyncIterator[Plane]:
    made = Plane()
    async with running({"catalogue": made.catalogue.run}):
        await made.catalogue.ready.wait()
        assert await made.told.get() == "a"
        yield made


@pytest.fixture
def toy() -> Toy:
    return Toy()


@pytest.fixture
async def vectors(toy: Toy) -> AsyncIterator[Vectors]:
    made = Vectors(lambda: toy, NoVectors())
    async with running({"vectors": made.run}):
        await made.loaded.wait()
        yield made


@pytest.fixture
def index() -> Index:
    return Index()


@pytest.fixture
async def target(index: Index, plane: Plane) -> IndexTarget:
    """Without vectors."""
    none = Vectors(lambda: None, NoVectors())
    await none.run()
    return IndexTarget(index, plane.catalogue, none)


@pytest.fixture
def flags() -> Flags:
    made = Flags()
    made.objects["/lab/a"] = {"read": [("r", True)], "write": [("w1", None), ("w2", False)], "other": [("o", False)]}
    made.objects["a"] = {"read": [("by id", None)]}
    return made


@pytest.fixture
def flagged(flags: Flags, plane: Plane) -> FlagTarget:
    return FlagTarget(flags, plane.catalogue, by_path=True)


def of(plane: Plane) -> tuple[ToolEntry, ...]:
    """What should be held of server a, without vectors."""
    server = plane.catalogue.server("a")
    return entries_of(server) if server else ()


# An index of ours


async def test_a_server_is_written_and_not_again_while_it_is_the_same(
    target: IndexTarget, index: Index, plane: Plane
) -> None:
    assert await target.sync("a") == 2
    assert await target.sync("a") == 0

    assert (index.writes, index.vectors) == ([Changes(upserts=of(plane))], [{}])
    assert (index.read, target.objects, target.missing) == (["a"], 2, 0)


async def test_a_flip_is_one_write_and_no_read(target: IndexTarget, index: Index, plane: Plane) -> None:
    await target.sync("a")
    await plane.changed(disabled_tools=frozenset({"write"}))

    assert await target.sync("a") == 1
    assert (index.writes[1:], index.read) == ([Changes(flips=of(plane)[1:])], ["a"])
    assert [entry.tool_enabled for entry in (await index.tools()).values()].count(False) == 1


async def test_a_server_that_is_gone_is_removed(target: IndexTarget, index: Index, plane: Plane) -> None:
    await target.sync("a")
    await plane.removed()

    assert await target.sync("a") == 2
    assert (await index.tools(), target.objects) == ({}, 0)
    assert index.writes[1:] == [Changes(removals=frozenset({entry_id("a", "read"), entry_id("a", "write")}))]


async def test_a_tool_that_is_gone_is_removed_and_a_new_one_written(
    target: IndexTarget, index: Index, plane: Plane
) -> None:
    await target.sync("a")
    await plane.changed("read", "new")

    assert await target.sync("a") == len(index.writes[1]) > 0
    assert (await index.tools()).keys() == {"read", "new"}


async def test_what_others_did_to_the_index_is_noticed_when_everything_is_compared(
    target: IndexTarget, index: Index, plane: Plane
) -> None:
    await target.sync("a")
    await LocalIndex.write(index, Changes(removals=frozenset({entry_id("a", "read")})), {})
    assert await target.sync("a") == 0, "what it wrote is remembered"

    await target.prepare()

    assert (index.prepared, target.objects) == (1, 0)
    assert (await target.sync("a"), (await index.tools()).keys(), target.objects) == (1, {"read", "write"}, 2)


async def test_after_a_write_that_failed_the_index_is_asked_what_it_holds(
    target: IndexTarget, index: Index, plane: Plane
) -> None:
    await target.sync("a")
    await plane.changed(disabled_tools=frozenset({"write"}))
    index.failure = IndexUnavailable("gone")
    with pytest.raises(IndexUnavailable):
        await target.sync("a")
    assert target.objects == 0

    index.failure = None
    assert (await target.sync("a"), target.objects) == (0, 2), "a part, here all, had been applied"
    assert index.read == ["a", "a"]


async def test_orphans_in_the_index_and_servers_that_it_lacks_are_all_compared(
    target: IndexTarget, index: Index, plane: Plane
) -> None:
    (orphan, _) = (replace(entry, server_id="orphan") for entry in of(plane))
    await LocalIndex.write(index, Changes(upserts=(orphan,)), {})

    assert await target.server_ids() == {"a", "orphan"}
    assert await target.sync("orphan") == 1
    assert await target.server_ids() == {"a"}


async def test_a_cleared_index_is_empty_and_written_anew(target: IndexTarget, index: Index) -> None:
    await target.sync("a")
    await target.clear()

    assert (await index.tools(), target.objects) == ({}, 0)
    assert await target.sync("a") == 2
    assert (await index.tools()).keys() == {"read", "write"}


@pytest.mark.parametrize("lacks", ["catalogue", "vectors"])
async def test_nothing_is_compared_before_servers_and_kept_vectors_are_known(index: Index, lacks: str) -> None:
    plane, vectors = Plane(), Vectors(lambda: None, NoVectors())
    late = plane.catalogue.ready if lacks == "catalogue" else vectors.loaded
    for event in {plane.catalogue.ready, vectors.loaded} - {late}:
        event.set()

    preparing = asyncio.ensure_future(IndexTarget(index, plane.catalogue, vectors).prepare())
    for _ in range(10):
        await asyncio.sleep(0)
    assert (preparing.done(), index.prepared) == (False, 0)

    late.set()
    await preparing
    assert index.prepared == 1


# Its vectors


async def test_words_are_written_at_once_and_vectors_when_they_have_come(
    index: Index, plane: Plane, vectors: Vectors, toy: Toy
) -> None:
    toy.gate.clear()
    target, told = IndexTarget(index, plane.catalogue, vectors), asyncio.Queue[str]()
    target.on_vectors = told.put_nowait

    assert await target.sync("a") == 2
    assert {entry.vector_source for entry in (await index.tools()).values()} == {""}
    assert told.empty()
    toy.gate.set()
    assert await told.get() == "a"

    assert await target.sync("a") == 2
    assert index.vectors == [{}, {entry.text: array("f", [float(len(entry.text))]) for entry in of(plane)}]
    assert index.writes[1].upserts == tuple(replace(entry, vector_source="toy-1") for entry in of(plane))


async def test_a_vector_that_is_there_is_not_written_again(index: Index, plane: Plane, vectors: Vectors) -> None:
    target, told = IndexTarget(index, plane.catalogue, vectors), asyncio.Queue[str]()
    target.on_vectors = told.put_nowait
    await target.sync("a")
    await told.get()
    await target.sync("a")

    assert await target.sync("a") == 0
    await target.prepare()
    assert await target.sync("a") == 0, "nor when everything is compared"
    await plane.changed(disabled_tools=frozenset({"write"}))
    assert await target.sync("a") == 1
    assert index.writes[2:] == [Changes(flips=(replace(of(plane)[1], vector_source="toy-1"),))]
    assert told.empty(), "none was wanted again"


async def test_a_vector_that_an_index_has_is_not_made_again_although_it_is_not_known_here(
    index: Index, plane: Plane, vectors: Vectors, toy: Toy
) -> None:
    held = tuple(replace(entry, vector_source="toy-1") for entry in of(plane))
    await LocalIndex.write(index, Changes(upserts=held), {entry.text: array("f", [1.0]) for entry in held})
    target = IndexTarget(index, plane.catalogue, vectors)

    assert [await target.sync("a"), await target.sync("a")] == [0, 0]
    await plane.changed(disabled_tools=frozenset({"write"}))
    assert await target.sync("a") == 1
    for _ in range(10):
        await asyncio.sleep(0)
    assert toy.texts == []


async def test_two_indexes_that_want_the_same_vectors_are_both_told(
    index: Index, plane: Plane, vectors: Vectors, toy: Toy
) -> None:
    toy.gate.clear()
    told: list[str] = []
    for name in ("local", "remote"):
        target = IndexTarget(Index(), plane.catalogue, vectors)
        target.on_vectors = partial(_noted, told, name)
        await target.sync("a")
    toy.gate.set()
    await until(lambda: len(told) == 2)

    assert told == ["local a", "remote a"]


def _noted(told: list[str], name: str, server_id: str) -> None:
    told.append(f"{name} {server_id}")


async def test_vectors_that_come_while_nobody_listens_are_written_at_the_next_turn(
    index: Index, plane: Plane, vectors: Vectors
) -> None:
    target = IndexTarget(index, plane.catalogue, vectors)
    await target.sync("a")
    await until(lambda: len(vectors.known(entry.text for entry in of(plane))) == 2)

    assert await target.sync("a") == 2
    assert {entry.vector_source for entry in (await index.tools()).values()} == {"toy-1"}


# A collection of others


async def test_only_flags_that_differ_are_set(flagged: FlagTarget, flags: Flags, plane: Plane) -> None:
    assert await flagged.sync("a") == 2
    assert flags.writes == [{"w1": True, "w2": True}]
    assert await flagged.sync("a") == 0

    await plane.changed(disabled_tools=frozenset({"read"}))
    assert await flagged.sync("a") == 1
    assert flags.writes[1:] == [{"r": False}]
    assert flags.objects["/lab/a"]["other"] == [("o", False)], "no tool of ours"


async def test_the_tools_of_a_server_that_is_off_are_off(flagged: FlagTarget, flags: Flags, plane: Plane) -> None:
    await plane.changed(enabled=False)

    assert await flagged.sync("a") == 2
    assert flags.writes == [{"r": False, "w1": False}]


async def test_a_collection_names_servers_by_path_or_by_id(flags: Flags, plane: Plane) -> None:
    assert await FlagTarget(flags, plane.catalogue, by_path=False).sync("a") == 1
    assert await FlagTarget(flags, plane.catalogue, by_path=True).sync("a") == 2

    assert flags.asked == ["a", "/lab/a"]
    assert flags.writes == [{"by id": True}, {"w1": True, "w2": True}]


async def test_what_has_no_object_is_counted_and_not_made(flagged: FlagTarget, flags: Flags, plane: Plane) -> None:
    await plane.changed("read", "new", "newer")

    assert (await flagged.sync("a"), flagged.missing, flagged.objects) == (0, 2, 1)
    assert flags.writes == []
    assert (await flagged.sync("a"), flagged.missing, flagged.objects) == (0, 2, 1)


async def test_a_server_that_is_gone_is_left_alone_and_counted_no_more(
    flagged: FlagTarget, flags: Flags, plane: Plane
) -> None:
    await plane.changed("read", "new")
    await flagged.sync("a")
    await plane.removed()
    before, asked = {server: dict(tools) for server, tools in flags.objects.items()}, len(flags.asked)

    assert (await flagged.sync("a"), flagged.missing, flagged.objects) == (0, 0, 0)
    assert (flags.objects, len(flags.asked), await flagged.server_ids()) == (before, asked, frozenset())


async def test_a_server_that_could_not_be_asked_about_is_not_counted(flagged: FlagTarget, flags: Flags) -> None:
    await flagged.sync("a")
    flags.failure = IndexUnavailable("gone")
    with pytest.raises(IndexUnavailable):
        await flagged.sync("a")

    assert (flagged.missing, flagged.objects) == (0, 0)


async def test_only_servers_of_ours_are_compared_and_nothing_is_ever_cleared(flagged: FlagTarget, flags: Flags) -> None:
    flags.objects["/theirs"] = {"tool": [("t", True)]}
    before = {server: dict(tools) for server, tools in flags.objects.items()}

    assert await flagged.server_ids() == {"a"}
    await flagged.clear()
    assert (flags.objects, flags.writes) == (before, [])


async def test_the_collection_is_checked_once_the_servers_are_known(flags: Flags) -> None:
    plane = Plane()
    preparing = asyncio.ensure_future(FlagTarget(flags, plane.catalogue, by_path=True).prepare())
    for _ in range(10):
        await asyncio.sleep(0)
    assert (preparing.done(), flags.prepared) == (False, 0)

    plane.catalogue.ready.set()
    await preparing
    assert flags.prepared == 1


async def test_a_glance_finds_an_index_that_lost_a_server_and_a_collection_that_is_gone(
    index: Index, target: IndexTarget, flagged: FlagTarget, flags: Flags
) -> None:
    await target.prepare()
    await target.sync("a")
    await target.check()
    await index.clear()
    with pytest.raises(IndexUnavailable):
        await target.check()
    before = flags.prepared
    await flagged.check()
    assert flags.prepared == before + 1

"""The servers in memory, close behind the store whatever happens to it (DESIGN 6)."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from config.background import running
from registry.catalogue import Catalogue
from registry.changes import EVERYTHING, StoreChange, Subject
from registry.entries import Server, Tool
from registry.memory.mirroring import MemoryFeed
from tests import build
from tests.control_plane import ControlPlane
from tests.waiting import until


class Store:
    """`ServerStore` on the twin, of which every read is noted and, while `gate` is shut, waits once it has read."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.asked: list[frozenset[str]] = []
        self.listed = 0
        self.gate = asyncio.Event()
        self.gate.set()

    @property
    def reads(self) -> int:
        return self.listed + len(self.asked)

    async def ids(self) -> frozenset[str]:
        self.listed += 1
        found = await self.plane.store.servers.ids()
        await self.gate.wait()
        return found

    async def some(self, ids: Collection[str]) -> Sequence[Server]:
        self.asked.append(frozenset(ids))
        found = await self.plane.store.servers.some(ids)
        await self.gate.wait()
        return found

    async def by_ref(self, ref: str) -> Server | None:
        raise AssertionError(ref)

    async def all(self) -> Sequence[Server]:
        raise AssertionError

    def put(self, server: Server, *, told: bool = True) -> None:
        """Store it as another program would; unless `told`, the feed has missed it."""
        self.plane.store.state.servers[server.id] = server
        self._tell(server.id, told=told)

    def remove(self, server_id: str, *, told: bool = True) -> None:
        """Likewise."""
        del self.plane.store.state.servers[server_id]
        self._tell(server_id, told=told)

    def _tell(self, server_id: str, *, told: bool) -> None:
        if told:
            self.feed.tell(StoreChange(Subject.SERVER, server_id))

    @property
    def feed(self) -> MemoryFeed:
        return self.plane.store.feed


def a_server(name: str, *tools: str) -> Server:
    return build.server(*tools, id=name, path=f"/{name}")


@pytest.fixture(autouse=True)
def short_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("registry.catalogue._PAUSE_S", 0.001)


@pytest.fixture
def store() -> Store:
    made = Store(ControlPlane())
    made.put(a_server("a", "read"))
    made.put(a_server("b"))
    return made


@pytest.fixture
def catalogue(store: Store) -> Catalogue:
    return Catalogue(store, store.feed)


@pytest.fixture
def told(catalogue: Catalogue) -> "asyncio.Queue[str]":
    """What a listener is told."""
    queue: asyncio.Queue[str] = asyncio.Queue()
    catalogue.listen(queue.put_nowait)
    return queue


@pytest.fixture
async def following(catalogue: Catalogue, told: "asyncio.Queue[str]") -> AsyncIterator[None]:
    """It has read everything and follows; what was told of that is taken out."""
    async with running({"catalogue": catalogue.run}):
        await catalogue.ready.wait()
        assert sorted([told.get_nowait() for _ in range(told.qsize())]) == ["a", "b"]
        yield


async def settle() -> None:
    """Let every task that can run do so."""
    for _ in range(20):
        await asyncio.sleep(0)


# The first read


async def test_nothing_is_known_before_it_runs(catalogue: Catalogue) -> None:
    assert (catalogue.ids(), catalogue.server("a"), catalogue.tool("a", "read")) == (frozenset(), None, None)
    assert not catalogue.ready.is_set()


@pytest.mark.usefixtures("following")
async def test_once_ready_every_server_and_tool_is_known(catalogue: Catalogue) -> None:
    assert catalogue.ids() == {"a", "b"}
    assert catalogue.server("a") == a_server("a", "read")
    assert catalogue.tool("a", "read") == a_server("a", "read").tools[0]
    assert (catalogue.tool("a", "Read"), catalogue.tool("b", "read"), catalogue.tool("c", "read")) == (None,) * 3


async def test_it_is_not_ready_before_the_last_of_many_is_read(catalogue: Catalogue, store: Store) -> None:
    for number in range(60):
        store.put(a_server(f"n{number}"), told=False)
    known_when_ready: list[int] = []
    catalogue.listen(lambda _: known_when_ready.append(len(catalogue.ids())) if catalogue.ready.is_set() else None)
    store.gate.clear()

    async with running({"catalogue": catalogue.run}):
        await until(lambda: store.listed == 1)
        assert not catalogue.ready.is_set()
        store.gate.set()
        await catalogue.ready.wait()

        assert (len(catalogue.ids()), known_when_ready) == (62, [])
    assert [len(ids) for ids in store.asked] == [25, 25, 12], "a read is bounded, and none is made twice"


async def test_without_any_server_it_is_ready_too(catalogue: Catalogue, store: Store) -> None:
    store.remove("a")
    store.remove("b")

    async with running({"catalogue": catalogue.run}):
        await catalogue.ready.wait()

    assert catalogue.ids() == frozenset()


# Changes


@pytest.mark.usefixtures("following")
async def test_a_change_is_followed_and_told(catalogue: Catalogue, store: Store, told: "asyncio.Queue[str]") -> None:
    store.put(changed := a_server("a", "write"))
    assert await told.get() == "a"
    assert (catalogue.server("a"), catalogue.tool("a", "read")) == (changed, None)
    assert catalogue.tool("a", "write") == changed.tools[0]

    store.put(a_server("new"))
    assert await told.get() == "new"
    assert (catalogue.ids(), store.asked[1:]) == ({"a", "b", "new"}, [{"a"}, {"new"}])


@pytest.mark.usefixtures("following")
async def test_a_server_that_is_gone_is_forgotten_and_told(
    catalogue: Catalogue, store: Store, told: "asyncio.Queue[str]"
) -> None:
    store.remove("a")

    assert await told.get() == "a"
    assert (catalogue.ids(), catalogue.server("a"), catalogue.tool("a", "read")) == ({"b"}, None, None)


@pytest.mark.usefixtures("following")
async def test_every_listener_is_told_once_and_sees_the_new_state(
    catalogue: Catalogue, store: Store, told: "asyncio.Queue[str]"
) -> None:
    seen: list[Server | None] = []
    catalogue.listen(lambda server_id: seen.append(catalogue.server(server_id)))

    store.put(changed := a_server("b", "write"))

    assert await told.get() == "b"
    await settle()
    assert (seen, told.qsize()) == ([changed], 0)


@pytest.mark.usefixtures("following")
@pytest.mark.parametrize("change", [StoreChange(Subject.SERVER, "a"), StoreChange(Subject.SERVER, "z"), EVERYTHING])
async def test_what_is_as_it_was_is_not_told(store: Store, told: "asyncio.Queue[str]", change: StoreChange) -> None:
    before = len(store.asked)

    store.feed.tell(change)
    await until(lambda: len(store.asked) > before)
    await settle()

    assert told.empty()


@pytest.mark.usefixtures("following")
@pytest.mark.parametrize("subject", [Subject.KEY, Subject.ENTRY])
async def test_keys_and_entries_are_not_its_business(store: Store, subject: Subject) -> None:
    before = store.reads

    store.feed.tell(StoreChange(subject, "a"))
    await settle()

    assert store.reads == before


@pytest.mark.usefixtures("following")
@pytest.mark.parametrize("change", [EVERYTHING, StoreChange(Subject.SWITCH, "x")])
async def test_what_may_concern_everything_has_everything_read_again(
    catalogue: Catalogue, store: Store, told: "asyncio.Queue[str]", change: StoreChange
) -> None:
    store.put(a_server("a", "write"), told=False)
    store.remove("b", told=False)
    store.put(a_server("c"), told=False)

    store.feed.tell(change)

    assert {await told.get() for _ in range(3)} == {"a", "b", "c"}
    assert (catalogue.ids(), catalogue.server("a")) == ({"a", "c"}, a_server("a", "write"))


@pytest.mark.usefixtures("following")
async def test_a_change_during_a_read_is_read_again(
    catalogue: Catalogue, store: Store, told: "asyncio.Queue[str]"
) -> None:
    store.gate.clear()
    store.put(a_server("a", "one"))
    await until(lambda: store.asked[-1] == {"a"})
    store.put(newest := a_server("a", "one", "two"))
    await settle()

    store.gate.set()

    assert [await told.get(), await told.get()] == ["a", "a"]
    assert catalogue.server("a") == newest


@pytest.mark.usefixtures("following")
async def test_what_the_feed_has_missed_during_a_read_of_all_ids_is_read_again(
    catalogue: Catalogue, store: Store, told: "asyncio.Queue[str]"
) -> None:
    store.gate.clear()
    store.feed.lose()
    await until(lambda: store.listed == 2)
    store.put(a_server("new"), told=False)
    store.feed.lose()
    await settle()

    store.gate.set()
    await until(lambda: {"a", "b"} <= store.asked[-1])
    await settle()

    assert catalogue.ids() == {"a", "b", "new"}


# Outages


@pytest.mark.usefixtures("following")
@pytest.mark.parametrize("told_by", [StoreChange(Subject.SERVER, "a"), EVERYTHING])
async def test_a_change_that_comes_during_an_outage_is_not_forgotten(
    catalogue: Catalogue, store: Store, told: "asyncio.Queue[str]", told_by: StoreChange
) -> None:
    store.plane.store.available, before = False, store.reads
    store.put(changed := a_server("a", "write"), told=False)
    with capture_logs() as logs:
        store.feed.tell(told_by)
        await until(lambda: store.reads > before + 2)
    assert {(line["event"], line["log_level"]) for line in logs} == {("catalogue.waiting", "warning")}
    assert catalogue.server("a") == a_server("a", "read"), "what was known is kept"

    store.plane.store.available = True

    assert await told.get() == "a"
    assert catalogue.server("a") == changed


async def test_a_store_that_is_down_at_the_start_is_awaited(catalogue: Catalogue, store: Store) -> None:
    store.plane.store.available = False
    async with running({"catalogue": catalogue.run}):
        await until(lambda: store.reads > 2)
        assert not catalogue.ready.is_set()

        store.plane.store.available = True
        await catalogue.ready.wait()

        assert catalogue.ids() == {"a", "b"}


async def test_who_runs_it_again_finds_what_a_read_that_was_cut_off_had_to_find(
    catalogue: Catalogue, store: Store, told: "asyncio.Queue[str]"
) -> None:
    async with running({"catalogue": catalogue.run}):
        await catalogue.ready.wait()
        store.gate.clear()
        store.put(changed := replace(a_server("a"), tools=(Tool("cut"),)))
        await until(lambda: store.asked[-1] == {"a"})
    assert store.feed.listening == set(), "the feed is closed with it"

    store.gate.set()
    async with running({"catalogue": catalogue.run}):
        await until(lambda: catalogue.server("a") == changed)

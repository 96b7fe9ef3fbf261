"""Lists that pass by, compared in the background with what the registry has (`registry.observed`)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import cast

import pytest
from structlog.testing import capture_logs

from config.background import running
from registry.entries import Server, Tool
from registry.freshness import Freshness
from registry.memory import MemoryStore
from registry.model import EDITOR, OWNER, VIEWER, Permission, Scope
from registry.observed import Observed
from registry.ports import ServerStore
from registry.sightings import MOST_NAMES
from tests import build
from tests.control_plane import ControlPlane
from tests.waiting import until


class Counted:
    """`ServerStore.by_ref` of another, counted; waits while `going` is cleared."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.asked: list[str] = []
        self.going = asyncio.Event()
        self.going.set()

    async def by_ref(self, ref: str) -> Server | None:
        self.asked.append(ref)
        await self.going.wait()
        return await self.store.servers.by_ref(ref)


class Hearing:
    """What hears, on the twin, with a server that has the tools `a` and `b`."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.store.state.servers["srv-1"] = build.server("a", "b")
        self.servers = Counted(self.store)
        self.now_s = 0.0
        self.observed = Observed(
            cast(ServerStore, self.servers),  # has the one method that is asked
            self.store.sightings,
            Freshness(self.store.policies),
            pause_s=0,
            clock=lambda: self.now_s,
        )

    def hear(self, *names: str, server_id: str = "srv-1") -> None:
        self.observed.listed(server_id, frozenset(names))

    async def compared(self, times: int) -> None:
        """Until so many comparisons have ended: on twins none is interrupted once its server was asked for."""
        await until(lambda: len(self.servers.asked) == times and self.servers.going.is_set())

    async def kept(self) -> set[str]:
        return {one.name for one in await self.store.sightings.of("srv-1")}


@asynccontextmanager
async def hearing() -> AsyncIterator[Hearing]:
    made = Hearing()
    async with running({"observed": made.observed.run}):
        yield made


async def test_a_name_that_the_snapshot_does_not_have_is_kept() -> None:
    async with hearing() as made:
        made.hear("a", "c", "d")
        await made.compared(1)
        assert await made.kept() == {"c", "d"}


async def test_a_list_that_was_heard_is_not_looked_at_again() -> None:
    async with hearing() as made:
        made.hear("a", "b")
        await made.compared(1)
        for _ in range(100):
            made.hear("b", "a")
        made.hear("x", server_id="srv-2")
        await made.compared(2)
        assert made.servers.asked == ["srv-1", "srv-2"]


async def test_after_a_while_the_same_list_is_compared_again() -> None:
    async with hearing() as made:
        made.hear("a", "c")
        await made.compared(1)
        made.store.state.servers["srv-1"] = build.server("c")
        made.now_s = 299.9
        made.hear("a", "c")
        assert made.servers.asked == ["srv-1"]
        made.now_s = 300.0
        made.hear("a", "c")
        await made.compared(2)
        assert await made.kept() == {"a"}, "the snapshot has got c, and lost a"


async def test_lists_that_come_while_one_is_compared_are_compared_together() -> None:
    async with hearing() as made:
        made.servers.going.clear()
        made.hear("c")
        await until(lambda: made.servers.asked == ["srv-1"])
        for name in "defg":
            made.hear(name)
        made.servers.going.set()
        await made.compared(2)
        assert await made.kept() == set("cdefg")


async def test_of_a_server_that_is_gone_nothing_is_kept() -> None:
    async with hearing() as made:
        made.hear("c", server_id="srv-2")
        await made.compared(1)
        assert made.store.sightings.kept == {}


async def test_what_an_outage_has_lost_is_kept_with_the_next_list() -> None:
    async with hearing() as made:
        made.store.available = False
        with capture_logs() as logs:
            made.hear("c")
            await made.compared(1)
        cause = "the store is unavailable"
        assert logs == [{"event": "observed.lost", "log_level": "warning", "server_id": "srv-1", "cause": cause}]
        made.store.available = True
        made.hear("c")
        await made.compared(2)
        assert await made.kept() == {"c"}


async def test_a_downstream_that_invents_names_fills_neither_memory_nor_store() -> None:
    async with hearing() as made:
        made.servers.going.clear()
        made.hear("first")
        await until(lambda: made.servers.asked == ["srv-1"])
        for i in range(200):
            made.hear(*(f"{i}-{j}" for j in range(100)))
        assert len(made.observed._waiting["srv-1"]) == 10_000
        assert len(made.observed._heard["srv-1"]) <= 64
        made.servers.going.set()
        await made.compared(2)
        assert len(await made.kept()) == MOST_NAMES


@pytest.mark.parametrize(
    ("scopes", "permissions", "is_shown"),
    [
        ({Scope.READ, Scope.MANAGE}, Permission.VIEW | Permission.SHARE, True),
        ({Scope.READ, Scope.MANAGE}, EDITOR, False),
        ({Scope.READ, Scope.MANAGE}, VIEWER, False),
        ({Scope.MCP, Scope.READ, Scope.WRITE}, OWNER, False),
        ({Scope.ADMIN}, Permission.NONE, True),
    ],
)
async def test_it_is_shown_to_those_who_may_switch_tools(
    scopes: set[Scope], permissions: Permission, is_shown: bool
) -> None:
    plane = ControlPlane()
    server = await plane.server(tools=["a"], owner="bob")
    await plane.share(server, "ann", permissions)
    await plane.store.sightings.add(server.id, ["z", "a", "c"])
    caller = await plane.caller("ann", *sorted(scopes))
    shown = await plane.observed.of(caller, await plane.now(server))

    assert (None if shown is None else [one.name for one in shown]) == (["c", "z"] if is_shown else None)


async def test_what_is_shown_goes_by_the_snapshot_it_is_shown_with() -> None:
    plane = ControlPlane()
    server = await plane.server(tools=["a"])
    await plane.store.sightings.add(server.id, ["c"])
    caller = await plane.caller("ann", Scope.MANAGE)
    refreshed = replace(await plane.now(server), tools=(Tool("c"),))

    assert await plane.observed.of(caller, refreshed) == []

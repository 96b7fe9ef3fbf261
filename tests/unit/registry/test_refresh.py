"""Snapshots: stored, pruned against the lists as they are, and kept when a refresh fails."""

import asyncio

import pytest

from registry.entries import Snapshot
from registry.errors import DownstreamFailed, Forbidden, NotFound
from registry.model import Scope, ServerPolicy
from registry.refresh import Cause, Refresher
from registry.rows import Action
from tests.control_plane import ControlPlane

TIMER = Cause("timer", "r9")


@pytest.fixture
def plane() -> ControlPlane:
    return ControlPlane()


async def test_a_refresh_retires_what_is_gone_and_disables_what_is_back(plane: ControlPlane) -> None:
    server = await plane.server(tools=["a", "b"])
    ann = await plane.caller("ann", Scope.MANAGE)
    await plane.tools.replace(ann, server.id, disabled=["a", "b"])
    plane.source.lists("b", "c")
    gone = await plane.refresher.refresh(server.id, TIMER)
    plane.source.lists("a", "b", "c")
    back = await plane.refresher.refresh(server.id, TIMER)
    assert (gone.policy.disabled_tools, gone.policy.retired_disabled_tools) == ({"b"}, {"a"})
    assert (back.policy.disabled_tools, back.policy.retired_disabled_tools) == ({"a", "b"}, frozenset())
    _, first, second = await plane.rows()
    assert (first.actor, first.action, first.request_id) == ("timer", Action.TOOLS_REFRESHED, "r9")
    assert (first.before, first.after) == ({"tools": 2}, {"tools": 2, "retired": ["a"], "returned": []})
    assert (second.before, second.after) == ({"tools": 2}, {"tools": 3, "retired": [], "returned": ["a"]})
    assert second.revision == back.policy.revision


async def test_a_refresh_that_finds_nothing_new_leaves_no_row_and_no_revision(plane: ControlPlane) -> None:
    server = await plane.server(tools=["a"])
    plane.source.lists("a")
    after = await plane.refresher.refresh(server.id, TIMER)
    assert (after.policy.revision, await plane.rows()) == (server.policy.revision, [])


async def test_new_tools_make_a_row_but_no_revision(plane: ControlPlane) -> None:
    server = await plane.server(tools=["a"])
    plane.source.lists("a", "b")
    after = await plane.refresher.refresh(server.id, TIMER)
    [row] = await plane.rows()
    assert (row.before, row.after, row.revision) == ({"tools": 1}, {"tools": 2}, None)
    assert after.policy.revision == server.policy.revision


async def test_a_failed_refresh_keeps_the_snapshot_and_says_so_until_the_next_good_one(
    plane: ControlPlane,
) -> None:
    server = await plane.server(tools=["a"])
    plane.source.failure = "it is down"
    failed = await plane.refresher.refresh(server.id, TIMER)
    assert (failed.refresh_error, failed.tools) == ("it is down", server.tools)
    plane.source.lists("a")
    assert (await plane.refresher.refresh(server.id, TIMER)).refresh_error is None


async def test_after_a_failed_refresh_an_unknown_name_is_not_dropped(plane: ControlPlane) -> None:
    server = await plane.server(tools=["a"])
    ann = await plane.caller("ann", Scope.MANAGE)
    plane.source.failure = "it is down"
    await plane.refresher.refresh(server.id, TIMER)
    changed = await plane.tools.replace(ann, server.id, disabled=["a", "new"])
    assert changed.server.policy.retired_disabled_tools == {"new"}
    assert changed.ignored == frozenset()


async def test_a_switch_that_lands_while_the_downstream_is_asked_is_kept(plane: ControlPlane) -> None:
    server = await plane.server(tools=["a", "b"])
    ann = await plane.caller("ann", Scope.MANAGE)

    class Slow:
        asked, answer = asyncio.Event(), asyncio.Event()

        async def snapshot(self, policy: ServerPolicy) -> Snapshot:
            self.asked.set()
            await self.answer.wait()
            return Snapshot(server.tools[1:])

    slow = Slow()
    refresher = Refresher(plane.store.ledger, slow, plane.store.servers)
    refreshing = asyncio.create_task(refresher.refresh(server.id, TIMER))
    await slow.asked.wait()
    await plane.tools.replace(ann, server.id, disabled=["a", "b"])
    slow.answer.set()
    after = await refreshing
    assert (after.policy.disabled_tools, after.policy.retired_disabled_tools) == ({"b"}, {"a"})


async def test_an_editor_who_lost_the_right_meanwhile_stores_nothing(plane: ControlPlane) -> None:
    server = await plane.server(tools=["a"])
    viewer = await plane.caller("bob", Scope.READ)
    plane.source.lists("b")
    with pytest.raises(Forbidden):
        await plane.refresher.refresh(server.id, Cause("bob", editor=viewer))
    assert await plane.now(server) == server


async def test_an_unknown_server_is_not_asked(plane: ControlPlane) -> None:
    with pytest.raises(NotFound):
        await plane.refresher.refresh("nowhere", TIMER)
    assert plane.source.asked == []


@pytest.mark.parametrize("failure", [None, "it is down"])
async def test_a_server_that_goes_while_its_downstream_is_asked_is_not_found(
    plane: ControlPlane, failure: str | None
) -> None:
    server = await plane.server()

    class Removing:
        async def snapshot(self, policy: ServerPolicy) -> Snapshot:
            del plane.store.state.servers[server.id]
            if failure is not None:
                raise DownstreamFailed(failure)
            return Snapshot(())

    with pytest.raises(NotFound):
        await Refresher(plane.store.ledger, Removing(), plane.store.servers).refresh(server.id, TIMER)


async def test_a_policy_that_cannot_be_read_is_refreshed_but_not_pruned(plane: ControlPlane) -> None:
    server = await plane.server(tools=["a"])
    plane.store.write(server.id, disabled_tools=frozenset("a"), fault="registryReadOnlyTools is null")
    plane.source.lists("b")
    after = await plane.refresher.refresh(server.id, TIMER)
    assert (after.tool_names, after.policy.disabled_tools) == ({"b"}, {"a"})
    assert after.policy.revision == server.policy.revision

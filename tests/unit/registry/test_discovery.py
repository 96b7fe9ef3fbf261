"""A search offers what its caller could use now, and nothing else."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from registry.callers import Caller
from registry.discovery import Discovery, Indexes, Wanted
from registry.entries import Tool
from registry.errors import Forbidden, IndexUnavailable, Invalid, NotFound, Unauthenticated
from registry.indexing import Hit, SearchQuery
from registry.model import VIEWER, Scope
from registry.refresh import Cause
from tests.control_plane import ControlPlane, caller_of
from tests.waiting import until

ALL = (Scope.MCP, Scope.READ, Scope.WRITE, Scope.MANAGE)


@pytest.fixture
def plane() -> ControlPlane:
    return ControlPlane()


async def names(plane: ControlPlane, caller: Caller, text: str = "tool", **wanted: Any) -> list[str]:
    answer = await plane.discovery.search(caller, Wanted(text, **wanted))
    return [found.tool.name for found in answer.found]


async def test_a_tool_is_found_by_what_it_does(plane: ControlPlane) -> None:
    await plane.server(tools=["delete_repository", "create_issue"])
    ann = await plane.caller("ann", *ALL)
    async with plane.indexed():
        assert await names(plane, ann, "removing or deleting repositories") == ["delete_repository"]


async def test_a_switch_that_the_index_has_not_heard_of_hides_the_tool(plane: ControlPlane) -> None:
    server = await plane.server(tools=["tool_a", "tool_b"])
    ann = await plane.caller("ann", *ALL)
    async with plane.indexed():
        pass
    plane.store.write(server.id, disabled_tools=frozenset({"tool_a"}))
    assert await names(plane, ann) == ["tool_b"]


async def test_the_limit_is_filled_although_the_best_hits_may_not_be_used(plane: ControlPlane) -> None:
    server = await plane.server(tools=[f"tool_{number}" for number in range(300)])
    ann = await plane.caller("ann", *ALL)
    async with plane.indexed():
        pass
    ranked = await names(plane, ann, limit=100)
    plane.store.write(server.id, disabled_tools=frozenset(ranked))
    rest = await names(plane, ann, limit=100)
    assert (len(rest), set(rest) & set(ranked)) == (100, set())


@pytest.mark.parametrize("enabled", [0, 1, 7])
async def test_fewer_than_the_limit_come_only_when_no_more_match(plane: ControlPlane, enabled: int) -> None:
    tools = [f"tool_{number}" for number in range(200)]
    server = await plane.server(tools=tools)
    ann = await plane.caller("ann", *ALL)
    async with plane.indexed():
        pass
    on = set(random.Random(enabled).sample(tools, enabled))
    plane.store.write(server.id, disabled_tools=frozenset(tools) - on)
    assert set(await names(plane, ann, limit=20)) == on


async def test_a_server_that_the_caller_may_not_see_does_not_show(plane: ControlPlane) -> None:
    await plane.server("/hers", tools=["tool_hers"])
    shared = await plane.server("/shared", tools=["tool_shared"], owner="bob")
    await plane.share(shared, "ann", VIEWER)
    await plane.server("/his", tools=["tool_his"], owner="bob")
    ann = await plane.caller("ann", *ALL)
    async with plane.indexed():
        assert set(await names(plane, ann)) == {"tool_hers", "tool_shared"}
        assert await names(plane, ann, server="/shared") == ["tool_shared"]
        with pytest.raises(NotFound):
            await names(plane, ann, server="/his")
        with pytest.raises(NotFound):
            await names(plane, ann, server="/none")


async def test_a_key_without_write_finds_read_only_tools_alone(plane: ControlPlane) -> None:
    server = await plane.server(tools=["tool_reads", "tool_writes"])
    plane.store.write(server.id, read_only_tools=frozenset({"tool_reads"}))
    reader = await plane.caller("ann", Scope.MCP, Scope.READ)
    async with plane.indexed():
        assert await names(plane, reader) == ["tool_reads"]


async def test_disabled_tools_are_shown_to_their_owner_with_the_reason(plane: ControlPlane) -> None:
    server = await plane.server(tools=["tool_a", "tool_b"])
    foreign = await plane.server("/bobs", tools=["tool_c"], owner="bob")
    await plane.share(foreign, "ann", VIEWER)
    plane.store.write(server.id, disabled_tools=frozenset({"tool_a"}))
    plane.store.write(foreign.id, disabled_tools=frozenset({"tool_c"}))
    ann = await plane.caller("ann", *ALL)
    async with plane.indexed():
        answer = await plane.discovery.search(ann, Wanted("tool", include_disabled=True))
    reasons = {found.tool.name: found.reason for found in answer.found}
    assert reasons == {"tool_a": "tool_disabled", "tool_b": None}


async def test_a_server_that_is_off_is_shown_to_an_admin_with_that_reason(plane: ControlPlane) -> None:
    server = await plane.server(tools=["tool_a"])
    plane.store.write(server.id, enabled=False)
    root = await plane.caller("root", *Scope)
    ann = await plane.caller("ann", *ALL)
    async with plane.indexed():
        assert await names(plane, root) == []
        for caller, where in ((root, None), (ann, server.id)):
            answer = await plane.discovery.search(caller, Wanted("tool", server=where, include_disabled=True))
            assert [found.reason for found in answer.found] == ["server_disabled"]
        with pytest.raises(NotFound):
            await names(plane, ann, server=server.id)


async def test_what_is_not_asked_rightly_is_refused(plane: ControlPlane) -> None:
    agent = await plane.caller("ann", Scope.MCP)
    for wanted in (Wanted(" \t"), Wanted("x" * 1001), Wanted("x", limit=0), Wanted("x", limit=101)):
        with pytest.raises(Invalid):
            await plane.discovery.search(agent, wanted)
    with pytest.raises(Unauthenticated):
        await plane.discovery.search(caller_of(None), Wanted("x"))
    with pytest.raises(Forbidden) as scope:
        await plane.discovery.search(agent, Wanted("x", include_disabled=True))
    assert scope.value.required_scope == Scope.MANAGE
    with pytest.raises(Forbidden) as scope:
        await plane.discovery.search(await plane.caller("ann", Scope.READ), Wanted("x"))
    assert scope.value.required_scope == Scope.MCP


async def test_an_entry_of_a_tool_that_is_gone_is_passed_over(plane: ControlPlane) -> None:
    await plane.server(tools=["tool_a"])
    ann = await plane.caller("ann", *ALL)
    async with plane.indexed():
        (entry,) = plane.index._entries.values()
        plane.index._put(replace(entry, tool="tool_gone", text="tool gone"), None)
        plane.index._put(replace(entry, server_id="nobody"), None)
        assert await names(plane, ann) == ["tool_a"]


class Broken:
    """A `ToolIndex` that searches only while `works`."""

    def __init__(self, hits: Sequence[Hit] = ()) -> None:
        self.hits, self.works, self.asked = hits, True, 0

    async def search(self, query: SearchQuery) -> Sequence[Hit]:
        self.asked += 1
        if not self.works:
            raise IndexUnavailable("down")
        return self.hits[: query.limit]

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


async def test_the_fallback_answers_while_the_primary_is_down_and_says_so(plane: ControlPlane) -> None:
    server = await plane.server(tools=["tool_a", "tool_b"])
    ann = await plane.caller("ann", *ALL)
    primary = Broken([Hit(server.id, "tool_b", 1.0)])
    ready, now = True, 1_000.0
    indexes = Indexes(plane.index, primary, is_ready=lambda: ready, clock=lambda: now)
    discovery = Discovery(indexes, plane.catalogue, plane.vectors, plane.freshness)

    async def search() -> tuple[set[str], bool]:
        answer = await discovery.search(ann, Wanted("tool"))
        return {found.tool.name for found in answer.found}, answer.degraded

    async with plane.indexed():
        assert (await search(), discovery.degraded) == (({"tool_b"}, False), False)
        primary.works = False
        assert (await search(), discovery.degraded) == (({"tool_a", "tool_b"}, True), True)
        asked = primary.asked
        assert await search() == ({"tool_a", "tool_b"}, True)
        assert primary.asked == asked, "it was asked again although it had just failed"
        primary.works, now = True, now + 2
        assert (await search(), discovery.degraded) == (({"tool_b"}, False), False)
        ready = False
        assert (await search(), discovery.degraded) == (({"tool_a", "tool_b"}, True), True)


async def test_a_tool_that_is_new_or_gone_is_followed(plane: ControlPlane) -> None:
    server = await plane.server(tools=["tool_a"])
    ann = await plane.caller("ann", *ALL)
    async with plane.indexed():
        plane.source.tools = (Tool("tool_b", {"description": "a new tool"}),)
        await plane.refresher.refresh(server.id, Cause("timer"))
        await until(lambda: [entry.tool for entry in plane.index._entries.values()] == ["tool_b"])
        assert await names(plane, ann) == ["tool_b"]


async def test_the_score_is_one_over_the_rank_whatever_others_hold(plane: ControlPlane) -> None:
    """Else a caller could tell from it that a server which it may not see has something that matches better."""
    await plane.server("/mine", tools=["merger_tool", "other_tool"])
    ann = await plane.caller("ann", *ALL)
    async with plane.indexed():
        alone = await plane.discovery.search(ann, Wanted("merger tool"))
        await plane.server("/secret", tools=["merger_tool_of_initech"], owner="bob")
        await until(lambda: len(plane.index._entries) == 3)
        beside = await plane.discovery.search(ann, Wanted("merger tool"))
    assert [found.score for found in alone.found] == [1.0, 0.5]
    assert [(found.tool.name, found.score) for found in beside.found] == [("merger_tool", 1.0), ("other_tool", 0.5)]

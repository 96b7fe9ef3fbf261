"""Where the planes meet: errors of one become those of the other."""

from typing import Any

import pytest

from config.bridges import DiscoveryFinder, DownstreamCaller, FactPolicies, for_proxy, for_registry
from proxy.errors import DownstreamUnusable, PolicyUnknown
from proxy.ports import FindRefused
from registry.access import Permit, use_tool
from registry.calls import CallError, CallResult, Progress, ToolCall
from registry.errors import DownstreamFailed
from registry.model import Scope
from tests import build
from tests.control_plane import ControlPlane

VALUES = {"SLUICEGATE_CREDENTIAL_X": "abc"}
WITH_CREDENTIALS = build.policy(credentials=(("Authorization", "Bearer ${SLUICEGATE_CREDENTIAL_X}"),))
WITH_UNSET = build.policy(credentials=(("Authorization", "Bearer ${SLUICEGATE_CREDENTIAL_Y}"),))


@pytest.fixture
def plane() -> ControlPlane:
    return ControlPlane()


async def test_an_authority_that_is_not_there_is_an_unknown_policy(plane: ControlPlane) -> None:
    plane.store.available = False
    with pytest.raises(PolicyUnknown):
        await FactPolicies(plane.freshness).facts(build.asked())
    finder = DiscoveryFinder(plane.discovery, "http://gate")
    with pytest.raises(PolicyUnknown):
        await finder.find("hash", "x", 1, None, include_disabled=False)


async def test_what_is_found_is_told_as_the_api_tells_it(plane: ControlPlane) -> None:
    await plane.server("/lab", tools=["tool_a"])
    caller = await plane.caller("ann", Scope.MCP, Scope.WRITE)
    finder = DiscoveryFinder(plane.discovery, "http://gate")
    async with plane.indexed():
        found = await finder.find(caller.key_hash, "tool", 5, "/lab", include_disabled=False)
        with pytest.raises(FindRefused, match="no such server"):
            await finder.find(caller.key_hash, "tool", 5, "/none", include_disabled=False)
    assert [(tool["server"], tool["proxyUrl"]) for tool in found["tools"]] == [("/lab", "http://gate/proxy/lab")]
    assert set(found) == {"tools", "degraded", "truncated"}


class Caller:
    def __init__(self, outcome: CallResult | CallError | DownstreamFailed) -> None:
        self.outcome = outcome

    async def call(self, permit: Permit, call: ToolCall, on_progress: Progress | None = None) -> CallResult | CallError:
        if isinstance(self.outcome, DownstreamFailed):
            raise self.outcome
        return self.outcome


async def test_a_downstream_that_fails_is_one_that_is_unusable() -> None:
    permit: Any = use_tool(build.facts(), "a")
    call = ToolCall({}, "session")
    result = CallResult({"content": []})
    assert await DownstreamCaller(Caller(result)).call(permit, call) == result
    with pytest.raises(DownstreamUnusable, match="too late"):
        await DownstreamCaller(Caller(DownstreamFailed("too late"))).call(permit, call)


def test_static_credentials_are_filled_in_from_the_environment() -> None:
    assert dict(for_registry(VALUES, "sluicegate-1", names_variable=True)(WITH_CREDENTIALS)) == {
        "Authorization": "Bearer abc",
        "Via": "1.1 sluicegate-1",
    }
    assert for_proxy(VALUES)(WITH_CREDENTIALS) == (("Authorization", "Bearer abc"),)


def test_a_credential_that_is_not_set_is_a_failure_that_shows_no_value() -> None:
    with pytest.raises(DownstreamFailed, match="SLUICEGATE_CREDENTIAL_Y is not set"):
        for_registry(VALUES, "sluicegate-1", names_variable=True)(WITH_UNSET)
    with pytest.raises(DownstreamFailed, match=r"^a credential of this server is missing$"):
        for_registry(VALUES, "sluicegate-1", names_variable=False)(WITH_UNSET)
    with pytest.raises(DownstreamUnusable) as told:
        for_proxy(VALUES)(WITH_UNSET)
    assert str(told.value) == "a credential of this server is missing"

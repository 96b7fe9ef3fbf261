"""Callers without a key, on the wire (DESIGN 2 and 3)."""

import pytest

from registry.model import PrincipalType
from tests import build
from tests.fake_downstream import FakeDownstream, answer
from tests.integration.conftest import Plane, running
from tests.raw_client import LIST, call, post

LISTED = b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"},{"name":"b"}],"cacheScope":"public"}}'
SEARCH = b"GET /api/v1/discovery/search?q=a HTTP/1.1\r\nHost: localhost\r\n\r\n"
MANAGED = b"GET /api/v1/servers HTTP/1.1\r\nHost: localhost\r\n\r\n"


def shown_to_public(plane: Plane) -> None:
    entry = build.entry(principal_type=PrincipalType.PUBLIC, principal_id="")
    plane.store.state.entries.append(entry)


async def test_without_the_setting_a_caller_without_a_key_is_401(plane: Plane) -> None:
    shown_to_public(plane)
    assert (await plane.ask(post(LIST, key=None))).status == 401


async def test_a_caller_without_a_key_sees_what_public_may_see(downstream: FakeDownstream) -> None:
    downstream.script = answer(LISTED)
    async with running(downstream, anonymous="write") as plane:
        assert (await plane.ask(post(LIST, key=None))).status == 404, "no entry names public"
        shown_to_public(plane)
        plane.disable("b")
        listed = (await plane.ask(post(LIST, key=None))).json["result"]
        assert listed == {"tools": [{"name": "a"}], "cacheScope": "public"}, "nobody was identified"
        assert (await plane.ask(post(LIST))).json["result"]["cacheScope"] == "private"
        before = downstream.connections
        assert (await plane.ask(post(call("b"), key=None))).json["error"]["message"] == "Unknown tool: b"
        assert downstream.connections == before
        assert (await plane.ask(post(call("a"), key=None))).status == 200


async def test_read_alone_runs_only_what_is_read_only(downstream: FakeDownstream) -> None:
    async with running(downstream, anonymous="read") as plane:
        shown_to_public(plane)
        plane.policy(read_only_tools=frozenset({"a"}))
        assert (await plane.ask(post(call("a"), key=None))).status == 200
        assert (await plane.ask(post(call("b"), key=None))).json["error"]["message"] == "Unknown tool: b"


@pytest.mark.parametrize("key", ["sg_" + "w" * 43, "nonsense"])
async def test_a_wrong_key_is_401_although_none_is_needed(downstream: FakeDownstream, key: str) -> None:
    async with running(downstream, anonymous="write") as plane:
        shown_to_public(plane)
        reply = await plane.ask(post(LIST, f"X-Sluicegate-Key: {key}", key=None))
        assert (reply.status, reply.json["code"]) == (401, "key_invalid")


async def test_the_gateway_and_search_are_open_and_the_rest_of_the_api_is_not(downstream: FakeDownstream) -> None:
    async with running(downstream, anonymous="read") as plane:
        shown_to_public(plane)
        version = "MCP-Protocol-Version: 2025-11-25"
        listed = (await plane.ask(post(LIST, version, path="/mcp", key=None))).json["result"]
        assert {tool["name"] for tool in listed["tools"]} == {"discover_servers", "execute_tool"}
        assert (await plane.ask(SEARCH)).status == 200
        assert (await plane.ask(MANAGED)).status == 401

"""Callers without a key, on the wire (DESIGN 2 and 3)."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from registry.api.rights import Line, rights
from registry.model import OWNER, VIEWER, PrincipalType
from tests import build
from tests.fake_downstream import FakeDownstream, answer
from tests.integration.conftest import Plane, running
from tests.integration.test_api_rights import BODIES, QUERIES
from tests.raw_client import LIST, call, post, request
from tests.speaking import speaks_mcp
from tests.waiting import asked_until

LISTED = b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"},{"name":"b"}],"cacheScope":"public"}}'
VERSION = "MCP-Protocol-Version: 2025-11-25"
ENDS = datetime(2030, 1, 1, tzinfo=UTC)


def shown_to_public(plane: Plane, **changes: Any) -> None:
    entry = build.entry(principal_type=PrincipalType.PUBLIC, principal_id="", permissions=VIEWER, **changes)
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


async def test_an_entry_for_public_ends_by_the_stores_clock(downstream: FakeDownstream) -> None:
    async with running(downstream, anonymous="write") as plane:
        shown_to_public(plane, expires_at=ENDS)
        plane.store.clock = lambda: ENDS - timedelta(milliseconds=1)
        assert (await plane.ask(post(call("a"), key=None))).status == 200
        plane.store.clock = lambda: ENDS
        before = downstream.connections
        assert (await plane.ask(post(call("a"), key=None))).status == 404
        assert "There is no such server" in str(await gateway(plane, "execute_tool", server="/lab", tool="a"))
        assert downstream.connections == before


BAD_KEYS: dict[str, tuple[str, dict[str, Any]]] = {
    "a stranger's": ("sg_" + "w" * 43, {}),
    "no key at all": ("nonsense", {}),
    "empty": ("", {}),
    "disabled": (build.KEY, {"enabled": False}),
    "expired": (build.KEY, {"expires_at": build.NOW}),
}


@pytest.mark.parametrize("bad", BAD_KEYS)
async def test_a_wrong_key_is_401_everywhere_although_none_is_needed(downstream: FakeDownstream, bad: str) -> None:
    text, changes = BAD_KEYS[bad]
    async with running(downstream, anonymous="write") as plane:
        shown_to_public(plane)
        plane.store.state.keys["key-1"] = build.key(**changes)
        presented = f"X-Sluicegate-Key: {text}"
        search = request("GET", presented, path="/api/v1/discovery/search?q=a", key=None)
        for asking in (post(LIST, presented, key=None), post(LIST, VERSION, presented, path="/mcp", key=None), search):
            reply = await plane.ask(asking)
            assert (reply.status, reply.json["code"]) == (401, "key_invalid")
    assert downstream.connections == 0


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/proxy/lab", ["Authorization: Bearer the-downstreams"]),
        ("/proxy/lab", ["X-Api-Key: the-downstreams"]),
        ("/proxy/lab", ["Mcp-Session-Id: somebodys"]),
        ("/proxy/lab?token=x", []),
    ],
)
async def test_a_list_for_whom_the_downstream_may_know_is_private(
    downstream: FakeDownstream, path: str, fields: list[str]
) -> None:
    """DESIGN 3: `cacheScope` becomes `private` whenever the caller was identified in any way."""
    downstream.script = answer(LISTED)
    async with running(downstream, anonymous="write") as plane:
        shown_to_public(plane)
        listed = (await plane.ask(post(LIST, *fields, path=path, key=None))).json["result"]
        assert listed["cacheScope"] == "private"


async def test_a_callers_own_authorization_passes_on_and_is_no_key(downstream: FakeDownstream) -> None:
    async with running(downstream, anonymous="write") as plane:
        shown_to_public(plane)
        reply = await plane.ask(post(call("a"), "Authorization: Bearer the-downstreams", key=None))
        assert reply.status == 200
    assert b"\r\nAuthorization: Bearer the-downstreams\r\n" in downstream.received[0].head + b"\r\n"


async def test_the_gateway_finds_and_runs_for_public_what_public_may_use(downstream: FakeDownstream) -> None:
    downstream.script = speaks_mcp
    async with running(downstream, anonymous="read") as plane:
        await until_indexed(plane)
        listed = (await plane.ask(post(LIST, VERSION, path="/mcp", key=None))).json["result"]["tools"]
        assert {tool["name"] for tool in listed} == {"discover_servers", "execute_tool"}
        assert await found(plane) == [], "no entry names public"
        shown_to_public(plane)
        plane.policy(read_only_tools=frozenset({"a"}))
        assert await found(plane) == ["a"], "b is not read-only"
        plane.policy(read_only_tools=frozenset("ab"), disabled_tools=frozenset("b"))
        assert await found(plane) == ["a"], "b is disabled"
        before = downstream.connections
        refused = await gateway(plane, "execute_tool", server="/lab", tool="b")
        assert (refused["isError"], refused["content"][0]["text"]) == (True, "Unknown tool: b")
        assert downstream.connections == before
        ran = await gateway(plane, "execute_tool", server="/lab", tool="a")
        assert (ran.get("isError"), ran["content"][0]["text"]) == (None, "done")
        hidden = await gateway(plane, "discover_servers", query="a b", include_disabled=True)
        assert hidden["isError"], "disabled tools are for owners"


async def until_indexed(plane: Plane) -> None:
    async def is_whole() -> bool:
        return not (await plane.ask(request("GET", path="/api/v1/discovery/search?q=a"))).json["degraded"]

    await asked_until(is_whole)


async def found(plane: Plane) -> list[str]:
    """What both ways of searching find for a caller without a key."""
    by_model = (await gateway(plane, "discover_servers", query="a b"))["structuredContent"]
    search = request("GET", path="/api/v1/discovery/search?q=a%20b", key=None)
    assert (await plane.ask(search)).json == by_model
    return sorted(tool["tool"] for tool in by_model["tools"])


async def gateway(plane: Plane, name: str, **arguments: Any) -> Any:
    """The result of one tool of ours, for a caller without a key."""
    params = {"name": name, "arguments": arguments}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    return (await plane.ask(post(body, VERSION, path="/mcp", key=None))).json["result"]


@pytest.mark.parametrize("setting", ["read", "write"])
async def test_the_rest_of_the_api_is_for_keys_alone(downstream: FakeDownstream, setting: str) -> None:
    async with running(downstream, anonymous=setting) as plane:
        plane.store.state.entries.append(
            build.entry(principal_type=PrincipalType.PUBLIC, principal_id="", permissions=OWNER)
        )
        for line in set(rights()) - {Line("GET", "/discovery/search")}:
            reply = await plane.ask(keyless(line))
            assert reply.status == (403 if line.member == "include_disabled" else 401), line
    assert downstream.connections == 0


def keyless(line: Line) -> bytes:
    """One request of the API without a key."""
    path = line.pattern.replace("{server}", "%2Flab").replace("{tool}", "a").replace("{key}", "key-1")
    body = json.dumps(BODIES[line]).encode() if line in BODIES else b""
    head = ("Content-Type: application/json", f"Content-Length: {len(body)}")
    return request(line.method, *head, path=f"/api/v1{path}{QUERIES.get(line, '')}", key=None) + body

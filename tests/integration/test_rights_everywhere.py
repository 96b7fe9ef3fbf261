"""An access entry binds on every surface alike, whomever it names, and until the store's clock says that it ends."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from registry.model import EDITOR, VIEWER, AccessEntry, PrincipalType, Scope
from tests import build
from tests.build import KEY
from tests.fake_downstream import Connection, FakeDownstream, Received, answer
from tests.integration.conftest import Plane, running
from tests.raw_client import LIST, call, post, request

ENDS = datetime(2030, 1, 1, tzinfo=UTC)
VERSION = "MCP-Protocol-Version: 2025-11-25"
NAMED = [
    (PrincipalType.USER, "ann"),
    (PrincipalType.GROUP, "qa"),
    (PrincipalType.ROLE, "ops"),
    (PrincipalType.PUBLIC, ""),
]
"""Whom the key acts for."""

OTHERS = [
    (PrincipalType.USER, "bob"),
    (PrincipalType.USER, "qa"),
    (PrincipalType.GROUP, "ann"),
    (PrincipalType.GROUP, "ops"),
    (PrincipalType.ROLE, "qa"),
]

OPEN = {
    "proxy list": 200,
    "proxy call": 200,
    "gateway finds": ["a", "b"],
    "gateway runs": True,
    "API server": 200,
    "API tools": 200,
    "API list": ["/lab"],
    "API search": ["a", "b"],
}
CLOSED = {
    "proxy list": 404,
    "proxy call": 404,
    "gateway finds": [],
    "gateway runs": False,
    "API server": 404,
    "API tools": 404,
    "API list": [],
    "API search": [],
}


@pytest.fixture
async def plane(downstream: FakeDownstream) -> AsyncIterator[Plane]:
    """Sluicegate, indexed, with a key that acts for ann of the group qa in the role ops, whom no entry names."""
    downstream.script = no_sessions
    async with running(downstream) as plane:
        scopes = frozenset({Scope.MCP, Scope.READ, Scope.WRITE, Scope.MANAGE})
        plane.store.state.keys["key-1"] = build.key(groups=frozenset({"qa"}), roles=frozenset({"ops"}), scopes=scopes)
        while (await search(plane))["degraded"]:
            pass  # each question lets the index go on
        plane.store.state.entries.clear()
        yield plane


async def no_sessions(received: Received, connection: Connection) -> None:
    """Answers what is relayed, and lets the gateway, which begins a session first, fail at once."""
    is_relayed = b'"initialize"' not in received.body
    reply = answer(b'{"jsonrpc":"2.0","id":1,"result":{}}', status="200 OK" if is_relayed else "404 Not Found")
    await reply(received, connection)


async def search(plane: Plane) -> Any:
    return (await plane.ask(request("GET", path="/api/v1/discovery/search?q=a%20b"))).json


async def gateway(plane: Plane, name: str, arguments: dict[str, Any]) -> Any:
    params = {"name": name, "arguments": arguments}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    reply = await plane.ask(post(body.encode(), VERSION, path="/mcp"))
    return json.loads(reply.body.decode().partition("data: ")[2] or reply.body)["result"]


async def everywhere(plane: Plane) -> dict[str, Any]:
    """What each surface says of the server."""

    async def status(path: str) -> int:
        return (await plane.ask(request("GET", path=f"/api/v1{path}"))).status

    found = await gateway(plane, "discover_servers", {"query": "a b"})
    run = await gateway(plane, "execute_tool", {"server": "/lab", "tool": "a", "arguments": {}})
    listed = (await plane.ask(request("GET", path="/api/v1/servers"))).json
    return {
        "proxy list": (await plane.ask(post(LIST))).status,
        "proxy call": (await plane.ask(post(call("a")))).status,
        "gateway finds": sorted(tool["tool"] for tool in found["structuredContent"]["tools"]),
        "gateway runs": "There is no such server" not in json.dumps(run),
        "API server": await status("/servers/%2Flab"),
        "API tools": await status("/servers/%2Flab/tools"),
        "API list": [server["path"] for server in listed["servers"]],
        "API search": sorted(tool["tool"] for tool in (await search(plane))["tools"]),
    }


@pytest.mark.parametrize(("kind", "name"), NAMED, ids=[kind for kind, _ in NAMED])
async def test_an_entry_opens_every_surface_until_the_stores_clock_ends_it(
    plane: Plane, kind: PrincipalType, name: str
) -> None:
    assert await everywhere(plane) == CLOSED
    plane.store.state.entries.append(AccessEntry("srv-1", kind, name, VIEWER, ENDS))
    plane.store.clock = lambda: ENDS - timedelta(milliseconds=1)
    assert await everywhere(plane) == OPEN
    plane.store.clock = lambda: ENDS
    before = plane.downstream.connections
    assert await everywhere(plane) == CLOSED
    assert plane.downstream.connections == before


async def test_an_entry_for_somebody_else_opens_nothing(plane: Plane) -> None:
    plane.store.state.entries += [AccessEntry("srv-1", kind, name, VIEWER) for kind, name in OTHERS]
    plane.store.state.entries.append(AccessEntry("srv-2", PrincipalType.USER, "ann", VIEWER))
    assert await everywhere(plane) == CLOSED
    assert plane.downstream.connections == 0


@pytest.mark.parametrize(("kind", "name"), NAMED, ids=[kind for kind, _ in NAMED])
async def test_an_editor_edits_and_switches_nothing_whoever_it_is(plane: Plane, kind: PrincipalType, name: str) -> None:
    entry = AccessEntry("srv-1", kind, name, EDITOR, ENDS)
    plane.store.state.entries.append(entry)
    plane.store.clock = lambda: ENDS - timedelta(milliseconds=1)
    assert (await patch(plane, "", {"title": "New"}))[0] == 200
    refused = await patch(plane, "/tools", {"disabledTools": ["a"]})
    assert (refused[0], refused[1]["required_permission"]) == (403, "SHARE")
    plane.store.state.entries[:] = [replace(entry, permissions=VIEWER)]
    refused = await patch(plane, "", {"title": "Newer"})
    assert (refused[0], refused[1]["required_permission"]) == (403, "EDIT")
    plane.store.clock = lambda: ENDS
    assert (await patch(plane, "", {"title": "Newest"}))[0] == 404


async def patch(plane: Plane, below: str, body: dict[str, Any]) -> tuple[int, Any]:
    data = json.dumps(body).encode()
    head = ("Content-Type: application/json", f"Content-Length: {len(data)}")
    reply = await plane.ask(request("PATCH", *head, path=f"/api/v1/servers/%2Flab{below}", key=KEY) + data)
    return reply.status, reply.json

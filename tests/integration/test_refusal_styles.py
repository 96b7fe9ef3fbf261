"""Each style of a refusal, as the official client and a raw one see it (DESIGN 3, Block)."""

import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from registry.model import Grant, Scope, Switch
from tests import build
from tests.build import KEY
from tests.fake_downstream import FakeDownstream
from tests.integration.conftest import Plane, running
from tests.raw_client import call, post
from tests.speaking import speaks_mcp

VERSION = "MCP-Protocol-Version: 2025-11-25"
STYLES = ("unknown", "explain", "legacy")
DISABLED = {
    "unknown": "Unknown tool: b",
    "explain": "Tool b is disabled on this server by its owner.",
    "legacy": "tool 'b' is switched off",
}
REASONS = {
    "unknown": ["Unknown tool: b"] * 4,
    "explain": [
        DISABLED["explain"],
        "Tool b is switched off by the operator of this gateway.",
        "Tool b is not among the tools that this API key may use.",
        "Tool b may change something, and this caller may only read: it lacks the 'write' scope.",
    ],
    "legacy": [
        DISABLED["legacy"],
        DISABLED["legacy"],
        "API key may not use tool 'b'",
        "tool 'b' needs the 'write' scope",
    ],
}
CODES = {"unknown": -32602, "legacy": -32003}


@contextlib.asynccontextmanager
async def official(plane: Plane, mode: Any) -> AsyncIterator[Client]:
    """The official client, straight through the proxy."""
    url = f"http://127.0.0.1:{plane.port}/proxy/lab"
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {KEY}"}, timeout=5) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        ("unknown", {"error": {"code": -32602, "message": "Unknown tool: b"}}),
        (
            "explain",
            {
                "result": {
                    "resultType": "complete",
                    "content": [{"type": "text", "text": "Tool b is disabled on this server by its owner."}],
                    "isError": True,
                }
            },
        ),
        ("legacy", {"error": {"code": -32003, "message": "tool 'b' is switched off"}}),
    ],
)
async def test_a_refusal_has_the_style_of_the_setting(
    downstream: FakeDownstream, style: str, expected: dict[str, object]
) -> None:
    async with running(downstream, refusal_style=style) as plane:
        plane.disable("b")
        reply = await plane.ask(post(call("b")))
        assert (reply.status, json.loads(reply.body)) == (200, {"jsonrpc": "2.0", "id": 7, **expected})
        assert downstream.connections == 0


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("style", STYLES)
async def test_the_official_client_takes_a_refusal_and_goes_on(
    downstream: FakeDownstream, style: str, mode: str
) -> None:
    downstream.script = speaks_mcp
    async with running(downstream, refusal_style=style) as plane, official(plane, mode) as client:
        plane.disable("b")
        assert await outcome(client, "b") == (CODES.get(style, "result"), DISABLED[style])
        assert (await client.call_tool("a", {})).content[0].text == "done"  # type: ignore[union-attr]
    assert not any(b'"name":"b"' in body.replace(b" ", b"") for body in downstream.bodies)


async def outcome(client: Client, tool: str) -> tuple[object, str]:
    """What a program is handed: the code of an error, or `result`; and the text."""
    try:
        result = await client.call_tool(tool, {})
    except MCPError as error:
        return error.error.code, error.error.message
    assert result.is_error
    return "result", result.content[0].text  # type: ignore[union-attr]


@pytest.mark.parametrize("style", STYLES)
async def test_each_reason_reaches_the_client_in_words_where_the_style_has_them(
    downstream: FakeDownstream, style: str
) -> None:
    async with running(downstream, refusal_style=style) as plane:
        before = plane.store.state
        changed = [before.copied() for _ in range(4)]
        off = build.policy(disabled_tools=frozenset({"b"}))
        changed[0].servers["srv-1"] = replace(before.servers["srv-1"], policy=off)
        changed[1].switches.append(Switch("srv-1", "b"))
        changed[2].keys["key-1"] = build.key(tools=(Grant("srv-1", frozenset({"a"})),))
        changed[3].keys["key-1"] = build.key(scopes=frozenset({Scope.MCP, Scope.READ}))
        said: list[str] = []
        for state in changed:
            plane.store.state = state
            said.append(text_of((await plane.ask(post(call("b")))).json))
    assert said == REASONS[style]
    assert downstream.connections == 0


def text_of(reply: Any) -> str:
    text: str = reply["error"]["message"] if "error" in reply else reply["result"]["content"][0]["text"]
    return text


@pytest.mark.parametrize("style", STYLES)
async def test_a_batch_is_refused_whole_and_a_notification_dropped(downstream: FakeDownstream, style: str) -> None:
    async with running(downstream, refusal_style=style) as plane:
        plane.disable("b")
        notification = call("b").replace(b'"id":7,', b"")
        batch = await plane.ask(post(b"[" + b",".join([call("a", '"i"'), notification, call("b")]) + b"]"))
        innocent, refused = batch.json
        assert (batch.status, innocent["id"], innocent["error"]["code"]) == (200, "i", -32600)
        assert (refused["id"], text_of(refused)) == (7, DISABLED[style])
        dropped = await plane.ask(post(notification))
        assert (dropped.status, dropped.body) == (202, b"")
    assert downstream.connections == 0


@pytest.mark.parametrize("tool", ["d\u00e9ng\u00e9r", "\U0001f600", "nul\0", '"\\{}%', " "])
@pytest.mark.parametrize("style", STYLES)
async def test_any_name_comes_back_as_it_was_asked_for(downstream: FakeDownstream, style: str, tool: str) -> None:
    async with running(downstream, refusal_style=style) as plane:
        plane.store.state.keys["key-1"] = build.key(tools=())
        reply = await plane.ask(post(call(tool)))
        assert (reply.status, reply.body.isascii()) == (200, True)
        assert tool in text_of(reply.json)
    assert downstream.connections == 0


@pytest.mark.parametrize("style", STYLES)
async def test_a_name_that_is_no_text_is_refused_unread_in_every_style(downstream: FakeDownstream, style: str) -> None:
    """No store can hold a lone surrogate, so no switch could name it."""
    async with running(downstream, refusal_style=style) as plane:
        reply = await plane.ask(post(call("a\udc00b")))
        assert (reply.status, reply.json["id"], reply.json["error"]["code"]) == (400, 7, -32600)
    assert downstream.connections == 0


@pytest.mark.parametrize("style", STYLES)
async def test_execute_tool_says_the_same_in_a_result(downstream: FakeDownstream, style: str) -> None:
    async with running(downstream, refusal_style=style) as plane:
        plane.disable("b")
        body = call("execute_tool", server="/lab").replace(b'"/lab"', b'"/lab", "tool": "b"')
        result = (await plane.ask(post(body, VERSION, path="/mcp"))).json["result"]
        content = [{"type": "text", "text": DISABLED[style]}]
        assert (result["isError"], result["resultType"], result["content"]) == (True, "complete", content)
    assert downstream.connections == 0

"""The methods that the gateway answers."""

import json
from typing import Any

import pytest

from proxy.errors import InvalidParams, MethodNotFound, ProxyError
from proxy.gateway.answers import Identity
from proxy.gateway.asking import Asking
from proxy.gateway.discover import Discoverer
from proxy.gateway.execute import Executor
from proxy.gateway.methods import Methods
from proxy.jsonrpc import Request
from proxy.jsontext import Number
from registry.calls import CallError, CallResult
from registry.credentials import key_hash
from tests.build import KEY
from tests.unit.proxy.gateway.test_discover import ScriptedFinder
from tests.unit.proxy.gateway.test_execute import KnownPolicies, ScriptedCaller

HANDSHAKE = ("2025-03-26", "2025-06-18", "2025-11-25")
ALL = (*HANDSHAKE, "2026-07-28")


def methods(caller: ScriptedCaller | None = None) -> Methods:
    executor = Executor(KnownPolicies(), caller or ScriptedCaller())
    return Methods(Identity("1"), Discoverer(ScriptedFinder()), executor, list_ttl_ms=5)


async def answer(revision: str, method: str, caller: ScriptedCaller | None = None, **params: Any) -> Any:
    """The decoded response to a request with the id 7."""
    asking = Asking(key_hash(KEY), revision)
    return json.loads(await methods(caller).answer(asking, Request("7", method, params)))


async def failure(revision: str, method: str, **params: Any) -> tuple[type[ProxyError], str | None]:
    with pytest.raises(ProxyError) as caught:
        await answer(revision, method, **params)
    return type(caught.value), caught.value.id


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_handshake_answers_with_its_revision(revision: str) -> None:
    got = await answer("2025-03-26", "initialize", protocolVersion=revision, capabilities={}, clientInfo={})

    assert (got["jsonrpc"], got["id"]) == ("2.0", 7)
    assert got["result"] == Identity("1").initialized(revision)


@pytest.mark.parametrize("asked", ["2026-07-28", "1999-01-01", None, Number("5"), []])
async def test_a_handshake_for_an_unknown_revision_answers_with_the_newest(asked: Any) -> None:
    got = await answer("2025-03-26", "initialize", protocolVersion=asked)

    assert got["result"]["protocolVersion"] == "2025-11-25"


async def test_a_handshake_that_names_no_revision_answers_with_the_newest() -> None:
    assert (await answer("2025-03-26", "initialize"))["result"]["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_ping_is_answered(revision: str) -> None:
    assert await answer(revision, "ping") == {"jsonrpc": "2.0", "id": 7, "result": {}}


async def test_2026_tells_about_the_server_on_request() -> None:
    got = await answer("2026-07-28", "server/discover")

    assert got["result"] == Identity("1").discovered(("2026-07-28",), 5)


@pytest.mark.parametrize("revision", ALL)
async def test_the_tools_are_listed_with_cache_hints_where_these_exist(revision: str) -> None:
    """MCP 2026-07-28: ttlMs, cacheScope and resultType are required."""
    result = (await answer(revision, "tools/list"))["result"]

    assert [tool["name"] for tool in result.pop("tools")] == ["discover_servers", "execute_tool"]
    hints = {"ttlMs": 5, "cacheScope": "private", "resultType": "complete"}
    assert result == (hints if revision == "2026-07-28" else {})


@pytest.mark.parametrize("revision", ALL)
async def test_there_is_one_page_of_tools(revision: str) -> None:
    assert await failure(revision, "tools/list", cursor="2") == (InvalidParams, "7")
    assert "tools" in (await answer(revision, "tools/list", cursor=None))["result"]


@pytest.mark.parametrize(
    ("revision", "method"),
    [
        *((revision, "server/discover") for revision in HANDSHAKE),
        *((revision, "prompts/list") for revision in ALL),
        *((revision, "Tools/List") for revision in ALL),
        ("2026-07-28", "initialize"),
        ("2026-07-28", "ping"),
    ],
)
async def test_a_method_of_another_revision_or_of_none_is_unknown(revision: str, method: str) -> None:
    assert await failure(revision, method) == (MethodNotFound, "7")


@pytest.mark.parametrize("revision", ALL)
async def test_both_tools_are_run(revision: str) -> None:
    found = await answer(revision, "tools/call", name="discover_servers", arguments={"query": "q"})
    assert found["result"]["structuredContent"]["tools"] == []
    caller = ScriptedCaller()
    call = {"server": "/lab", "tool": "t"}
    ran = await answer(revision, "tools/call", caller, name="execute_tool", arguments=call)
    assert ran["result"]["content"] == [{"type": "text", "text": "done"}]
    assert [permit.tool for permit, _ in caller.calls] == ["t"]


@pytest.mark.parametrize("name", ["nothing", "", "Execute_tool", "admin_set_tool", "\u00e9"])
async def test_an_unknown_tool_is_a_result(name: str) -> None:
    """DESIGN 6: an unknown tool of /mcp itself."""
    got = await answer("2025-11-25", "tools/call", name=name)

    assert got["result"]["isError"] is True
    assert got["result"]["content"] == [{"type": "text", "text": f"unknown tool: {name}"}]


async def test_an_error_that_only_the_protocol_can_carry_is_one() -> None:
    error = CallError(-32042, "go there", {"elicitations": []})
    call = {"server": "/lab", "tool": "t"}
    got = await answer("2025-11-25", "tools/call", ScriptedCaller(error), name="execute_tool", arguments=call)

    assert got["error"] == {"code": -32042, "message": "go there", "data": {"elicitations": []}}


async def test_an_id_is_repeated_as_spelled() -> None:
    request = Request('"\\u0061\\/"', "ping", {})
    got = await methods().answer(Asking(None, "2025-11-25"), request)

    assert got == b'{"jsonrpc":"2.0","id":"\\u0061\\/","result":{}}'


async def test_a_result_with_a_number_out_of_range_leaves_as_json() -> None:
    """RFC 8259 section 6: JSON has no infinity; the MCP library reads 1e999 as one."""
    call = {"server": "/lab", "tool": "t"}
    request = Request("7", "tools/call", {"name": "execute_tool", "arguments": call})
    caller = ScriptedCaller(CallResult({"content": [], "structuredContent": {"n": float("inf")}}))
    got = await methods(caller).answer(Asking(key_hash(KEY), "2025-11-25"), request)

    assert b"Infinity" not in got

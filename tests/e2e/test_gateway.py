"""The gateway with processes and no twin: an agent that knows no server finds a tool and runs it."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.e2e.test_story import Deployment, deployed, sdk_server
from tests.raw_client import ask
from tests.waiting import asked_until


async def found(deployment: Deployment, query: str, **more: Any) -> list[dict[str, Any]]:
    """What the API finds for the admin."""
    parameters = "".join(f"&{name}={value}" for name, value in more.items())
    answer = await deployment.api("GET", f"/discovery/search?q={query}{parameters}")
    tools: list[dict[str, Any]] = answer["tools"]
    return tools


async def until_found(deployment: Deployment, names: set[str]) -> None:
    """Wait until the local index has followed the registration."""

    async def are_found() -> bool:
        return {tool["tool"] for tool in await found(deployment, "destroy+something+nonce")} == names

    await asked_until(are_found)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("mode", ["auto", "legacy", "2026-07-28"])
@pytest.mark.parametrize("options", [[], ["--json", "--stateless"]], ids=" ".join)
async def test_an_official_client_finds_a_tool_and_runs_it(
    database_url: str, tmp_path: Path, mode: Any, options: list[str]
) -> None:
    async with (
        sdk_server(tmp_path, *options) as downstream,
        deployed(database_url, tmp_path, embeddings="auto") as deployment,
    ):
        await deployment.register(downstream)
        await until_found(deployment, {"safe", "danger", "da\u00f1ger"})
        fields = {"Authorization": f"Bearer {deployment.agent_key}"}
        url = f"{deployment.replicas[0].base_url}/mcp"
        async with (
            httpx2.AsyncClient(headers=fields, timeout=10) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            assert [tool.name for tool in (await client.list_tools()).tools] == ["discover_servers", "execute_tool"]
            hits = await client.call_tool("discover_servers", {"query": "give a nonce back"})
            assert hits.structured_content is not None
            best = hits.structured_content["tools"][0]
            assert (best["server"], best["tool"], best["enabled"]) == ("/lab", "safe", True)
            assert best["inputSchema"]["required"] == ["nonce"]

            call = {"server": best["server"], "tool": best["tool"], "arguments": {"nonce": "1"}}
            result = await client.call_tool("execute_tool", call)
            assert (result.is_error, result.content[0].text) == (False, "safe:1")  # type: ignore[union-attr]

            await deployment.switch_off("safe")
            before = downstream.heard()
            result = await client.call_tool("execute_tool", call)
            assert (result.is_error, result.content[0].text) == (True, "Unknown tool: safe")  # type: ignore[union-attr]
            hits = await client.call_tool("discover_servers", {"query": "a nonce to destroy something"})
            assert hits.structured_content is not None
            assert {tool["tool"] for tool in hits.structured_content["tools"]} == {"danger", "da\u00f1ger"}
            assert downstream.heard() == before

    assert [fact for fact in downstream.heard() if "tool" in fact] == [{"tool": "safe", "nonce": "1"}]


def request(deployment: Deployment, revision: str | None, body: Any) -> bytes:
    """One POST to /mcp as raw bytes."""
    content = json.dumps(body).encode()
    lines = [
        "POST /mcp HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {deployment.agent_key}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"Content-Length: {len(content)}",
        *([f"MCP-Protocol-Version: {revision}"] if revision else []),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


@pytest.mark.timeout(60)
@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18"])
async def test_a_raw_client_of_an_older_revision_finds_a_tool_and_runs_it(
    database_url: str, tmp_path: Path, revision: str
) -> None:
    async with sdk_server(tmp_path) as downstream, deployed(database_url, tmp_path) as deployment:
        await deployment.register(downstream)
        await until_found(deployment, {"safe", "danger", "da\u00f1ger"})
        port = int(deployment.replicas[0].base_url.rpartition(":")[2])

        async def said(body: Any, version: str | None = revision) -> Any:
            answer = await ask(port, request(deployment, version, body))
            return answer.status, json.loads(answer.body) if answer.body else None

        initialize = {
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"},
        }
        status, first = await said({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize}, None)
        assert (status, first["result"]["protocolVersion"]) == (200, revision)
        assert await said({"jsonrpc": "2.0", "method": "notifications/initialized"}) == (202, None)
        _, listed = await said({"jsonrpc": "2.0", "id": "l", "method": "tools/list"})
        assert [tool["name"] for tool in listed["result"]["tools"]] == ["discover_servers", "execute_tool"]

        find = {"name": "discover_servers", "arguments": {"query": "destroy something", "limit": 1}}
        _, hits = await said({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": find})
        best = hits["result"]["structuredContent"]["tools"][0]
        run = {"name": "execute_tool", "arguments": {"server": best["serverId"], "tool": best["tool"]}}
        run["arguments"]["arguments"] = {"nonce": "7"}  # type: ignore[index]
        call = {"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": run}
        _, ran = await said([call] if revision == "2025-03-26" else call)
        ran = ran[0] if revision == "2025-03-26" else ran
        assert (ran["id"], ran["result"]["isError"]) == (4, False)

    assert [fact["nonce"] for fact in downstream.heard() if "tool" in fact] == ["7"]

"""Weaviate in its other parts: looked after from the command line, the index of another registry, and a downstream."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from tests import weaviate_server
from tests.e2e.processes import ROOT, environment
from tests.e2e.test_mirror import MANY, watched
from tests.e2e.test_story import Deployment, deployed, sdk_server
from tests.waiting import asked_until
from tests.weaviate_server import KEYS, WITH_KEYS, WITH_MCP, WeaviateServer, running_weaviate

weaviate_process, weaviate, collection = weaviate_server.FIXTURES


async def command(deployment: Deployment, *arguments: str) -> tuple[int, str, str]:
    """Run `sluicegate ARGUMENTS` as the admin; its exit code, output and errors."""
    variables = environment({"url": deployment.replicas[0].base_url, "key": deployment.admin_key})
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "config.main", *arguments),
        cwd=ROOT,
        env=variables,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


@pytest.mark.timeout(90)
async def test_the_command_line_shows_the_mirror_and_has_it_rebuilt(
    database_url: str, tmp_path: Path, weaviate: WeaviateServer
) -> None:
    async with (
        sdk_server(tmp_path, program=MANY) as downstream,
        watched(database_url, tmp_path, weaviate, downstream) as seen,
    ):
        await seen.until_mirrored(set(), 100)
        await seen.until_state("up")
        code, out, err = await command(seen.deployment, "mirror", "status", "--json")
        assert (code, err) == (0, "")
        (mirror,) = json.loads(out)["mirrors"]
        assert (mirror["name"], mirror["state"], mirror["objects"]) == ("weaviate", "up", 100)

        object_ids = weaviate.ask("GET", "/v1/objects?class=SluicegateTool&limit=2")["objects"]
        weaviate.ask("PATCH", f"/v1/objects/SluicegateTool/{object_ids[0]['id']}", _tampered(object_ids[0]))
        code, _, err = await command(seen.deployment, "mirror", "reconcile")
        assert (code, err) == (0, "")
        await seen.until_mirrored(set(), 100)

        code, _, err = await command(seen.deployment, "mirror", "rebuild", "--yes")
        assert (code, err) == (0, "")

        async def is_rebuilt() -> bool:
            return (await seen.state())["objects"] == 100 and bool(await seen._is_mirrored(set(), 100))

        await asked_until(is_rebuilt)
        assert (await command(seen.deployment, "mirror", "prepare"))[:1] == (1,)


def _tampered(stored: dict[str, Any]) -> dict[str, Any]:
    return {"class": "SluicegateTool", "id": stored["id"], "properties": {"tool_enabled": False}}


@pytest.mark.timeout(90)
async def test_the_collection_of_another_registry_has_its_flag_kept_and_nothing_else(
    database_url: str, tmp_path: Path, weaviate: WeaviateServer, collection: str
) -> None:
    text = [{"name": name, "dataType": ["text"], "tokenization": "field"} for name in ("where", "what", "note")]
    weaviate.ask("POST", "/v1/schema", {"class": collection, "vectorizer": "none", "properties": text})
    known = {name: _foreign(weaviate, collection, "/lab", name) for name in ("safe", "danger")}
    other = _foreign(weaviate, collection, "/elsewhere", "danger")
    mode = {
        "weaviate_existing_collection": collection,
        "weaviate_existing_server_property": "where",
        "weaviate_existing_server_by": "path",
        "weaviate_existing_tool_property": "what",
    }

    def flag(object_id: str) -> Any:
        found = weaviate.ask("GET", f"/v1/objects/{collection}/{object_id}")
        assert found["properties"].pop("note") == "theirs"
        return found["properties"].get("tool_enabled")

    async with (
        sdk_server(tmp_path) as downstream,
        watched(database_url, tmp_path, weaviate, downstream, **mode) as seen,
    ):

        async def existing() -> dict[str, Any]:
            mirrors = (await seen.deployment.api("GET", "/mirror"))["mirrors"]
            return next((found for found in mirrors if found["name"] == "existing"), {})

        async def is_unusable() -> bool:
            return (await existing()).get("state") == "unusable"

        await asked_until(is_unusable)
        assert "sluicegate mirror prepare" in (await existing())["error"]
        assert (await command(seen.deployment, "mirror", "prepare"))[::2] == (0, "")
        await seen.deployment.switch_off("danger")

        async def is_kept() -> bool:
            return (flag(known["safe"]), flag(known["danger"])) == (True, False)

        await asked_until(is_kept)
        assert flag(other) is None

        async def is_told() -> bool:
            found = await existing()
            return (found["state"], found["objects"], found["missing"]) == ("up", 2, 1)

        await asked_until(is_told)
        assert len(weaviate.ask("GET", f"/v1/objects?class={collection}&limit=10")["objects"]) == 3


def _foreign(weaviate: WeaviateServer, collection: str, where: str, what: str) -> str:
    properties = {"where": where, "what": what, "note": "theirs"}
    made: str = weaviate.ask("POST", "/v1/objects", {"class": collection, "properties": properties})["id"]
    return made


@pytest.mark.timeout(90)
async def test_a_collection_that_is_not_ours_is_told_and_when_it_is_gone_the_mirror_comes_up(
    database_url: str, tmp_path: Path, weaviate: WeaviateServer, collection: str
) -> None:
    weaviate.ask("POST", "/v1/schema", {"class": collection, "vectorizer": "none"})
    own = {"weaviate_url": weaviate.url, "weaviate_grpc": weaviate.grpc, "weaviate_collection": collection}
    async with (
        sdk_server(tmp_path) as downstream,
        deployed(database_url, tmp_path, **dict[str, Any](own)) as deployment,
    ):
        await deployment.register(downstream)

        async def state() -> str:
            mirrors = (await deployment.api("GET", "/mirror"))["mirrors"]
            return str(mirrors[0]["state"]) if mirrors else ""

        async def is_unusable() -> bool:
            return await state() == "unusable"

        async def is_up() -> bool:
            return await state() == "up" and await _ready(deployment) == "available"

        await asked_until(is_unusable)
        (mirror,) = (await deployment.api("GET", "/mirror"))["mirrors"]
        assert "SLUICEGATE_WEAVIATE_COLLECTION" in mirror["error"]
        assert await _ready(deployment) == "degraded"
        found = await deployment.api("GET", "/discovery/search?q=nonce+destroy")
        assert (found["degraded"], len(found["tools"])) == (True, 3)
        await deployment.switch_off("safe")
        found = await deployment.api("GET", "/discovery/search?q=nonce+destroy")
        assert {tool["tool"] for tool in found["tools"]} == {"danger", "da\u00f1ger"}

        weaviate.ask("DELETE", f"/v1/schema/{collection}")
        await asked_until(is_up)
        found = await deployment.api("GET", "/discovery/search?q=nonce+destroy")
        assert (found["degraded"], {tool["tool"] for tool in found["tools"]}) == (False, {"danger", "da\u00f1ger"})
        said = deployment.replicas[0].said()
        assert (said.count("mirror.failed"), said.count("mirror.up")) == (1, 2)  # the local index came up too


async def _ready(deployment: Deployment) -> str:
    url = f"{deployment.replicas[0].base_url}/readyz"
    async with aiohttp.ClientSession() as http, http.get(url) as response:
        assert response.status == 200
        return str((await response.json())["discovery"])


UPSERT = "weaviate-objects-upsert"


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_weaviates_own_mcp_server_has_its_writing_tool_switched_off(database_url: str, tmp_path: Path) -> None:
    (tmp_path / "weaviate").mkdir()
    own: dict[str, Any] = {"credential_weaviate": next(key for key, user in _users().items() if user == "admin")}
    with running_weaviate(tmp_path / "weaviate", WITH_KEYS | WITH_MCP) as weaviate:
        assert UPSERT in await _listed_by_itself(weaviate, own["credential_weaviate"])
        async with deployed(database_url, tmp_path, **own) as deployment:
            await _switched_off_everywhere(deployment, weaviate)


def _users() -> dict[str, str]:
    return {key: user for user, key in KEYS.items()}


async def _listed_by_itself(weaviate: WeaviateServer, key: str) -> set[str]:
    fields = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=fields, timeout=10) as http,
        Client(streamable_http_client(f"{weaviate.url}/v1/mcp", http_client=http), mode="legacy") as client,
    ):
        return {tool.name for tool in (await client.list_tools()).tools}


async def _switched_off_everywhere(deployment: Deployment, weaviate: WeaviateServer) -> None:
    server = {
        "serverName": "weaviate",
        "path": "/weaviate",
        "type": "streamable-http",
        "url": f"{weaviate.url}/v1/mcp",
        "credentials": {"Authorization": "Bearer ${SLUICEGATE_CREDENTIAL_WEAVIATE}"},
    }
    made = await deployment.api("POST", "/servers", server)
    assert made["refreshError"] is None
    assert any(function["mcpToolName"] == UPSERT for function in made["toolFunctions"].values())
    await deployment.api("PATCH", "/servers/%2Fweaviate/tools", {"disabledTools": [UPSERT]})
    reader = (await deployment.api("POST", "/keys", {"name": "reader", "scopes": ["mcp", "read"]}))["key"]
    writer = (await deployment.api("POST", "/keys", {"name": "agent"}))["key"]
    await _out_of_reach(deployment, writer)
    await _out_of_reach(deployment, reader)
    await deployment.api("PATCH", "/servers/%2Fweaviate/tools", {"disabledTools": []})
    await _out_of_reach(deployment, reader)
    async with client_of(deployment, writer, "/mcp") as client:
        call = {"server": "/weaviate", "tool": UPSERT, "arguments": {"collection_name": "Nothing", "objects": []}}
        answer = await client.call_tool("execute_tool", call)
        assert "Unknown tool" not in str(answer.content)


async def _out_of_reach(deployment: Deployment, key: str) -> None:
    """The tool is on no surface for this key."""
    async with client_of(deployment, key, "/proxy/weaviate") as client:
        assert UPSERT not in {tool.name for tool in (await client.list_tools()).tools}
        with pytest.raises(MCPError) as refused:
            await client.call_tool(UPSERT, {})
        assert refused.value.message == f"Unknown tool: {UPSERT}"
    async with client_of(deployment, key, "/mcp") as client:
        call = {"server": "/weaviate", "tool": UPSERT, "arguments": {}}
        answer = await client.call_tool("execute_tool", call)
        assert (answer.is_error, answer.content[0].text) == (True, f"Unknown tool: {UPSERT}")  # type: ignore[union-attr]
        found = await client.call_tool("discover_servers", {"query": "upsert objects", "limit": 50})
        assert UPSERT not in str(found.structured_content)


@contextlib.asynccontextmanager
async def client_of(deployment: Deployment, key: str, path: str) -> AsyncIterator[Client]:
    """The official client at one address of the deployment, with this key."""
    url = f"{deployment.replicas[0].base_url}{path}"
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=10) as http,
        Client(streamable_http_client(url, http_client=http), mode="legacy") as client,
    ):
        yield client

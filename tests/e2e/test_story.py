"""The story of the main job, with processes and no twin: the real store, a real SDK downstream, the official client."""

import asyncio
import contextlib
import json
import sys
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import httpx2
import pytest
from bson import ObjectId
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from motor.motor_asyncio import AsyncIOMotorClient

from registry.credentials import new_key
from tests.e2e.processes import Sluicegate, started

TOOLS = {"safe", "danger", "da\u00f1ger"}
SDK_SERVER = Path(__file__).with_name("sdk_server.py")
ROOT = Path(__file__).parents[2]


@dataclass
class SdkServer:
    """The downstream's process and what it wrote down."""

    url: str
    journal: Path

    def heard(self) -> list[dict[str, str]]:
        """Every HTTP request and every run of a tool, in order."""
        return [json.loads(line) for line in self.journal.read_text().splitlines()] if self.journal.exists() else []


@contextlib.asynccontextmanager
async def sdk_server(folder: Path, *options: str, program: Path = SDK_SERVER) -> AsyncIterator[SdkServer]:
    """Start a downstream, and end it."""
    journal = folder / f"{uuid.uuid4().hex}.jsonl"
    command = (sys.executable, "-m", f"tests.e2e.{program.stem}", "--journal", str(journal), *options)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, cwd=ROOT)
    assert process.stdout is not None
    try:
        port = int(await process.stdout.readline())
        yield SdkServer(f"http://127.0.0.1:{port}/mcp", journal)
    finally:
        process.terminate()
        await process.communicate()


@dataclass
class Deployment:
    """One or more replicas on one store, and the first admin key."""

    admin_key: str
    database_url: str
    replicas: list[Sluicegate] = field(default_factory=list)
    agent_key: str = ""
    server_id: str = ""

    async def api(self, method: str, path: str, body: Any = None, *, replica: int = 0) -> Any:
        """Ask the registry API as the admin."""
        url = f"{self.replicas[replica].base_url}/api/v1{path}"
        fields = {"Authorization": f"Bearer {self.admin_key}"}
        async with (
            aiohttp.ClientSession(headers=fields) as session,
            session.request(method, url, json=body) as response,
        ):
            assert response.status < 300, await response.text()
            return await response.json()

    async def register(self, downstream: SdkServer) -> None:
        """Put the downstream behind /lab, and make an agent's key for the same user."""
        server = {"serverName": "lab", "path": "/lab", "type": "streamable-http", "url": downstream.url}
        self.server_id = (await self.api("POST", "/servers", server))["id"]
        self.agent_key = (await self.api("POST", "/keys", {"name": "agent"}))["key"]

    async def switch_off(self, *names: str, replica: int = 0) -> Any:
        """PATCH the whole list."""
        return await self.api("PATCH", "/servers/%2Flab/tools", {"disabledTools": names}, replica=replica)

    @contextlib.asynccontextmanager
    async def client(self, mode: Any, *, replica: int = 0) -> AsyncIterator[Client]:
        """The official client, straight through the proxy."""
        fields = {"Authorization": f"Bearer {self.agent_key}"}
        async with httpx2.AsyncClient(headers=fields, timeout=10) as http:
            url = f"{self.replicas[replica].base_url}/proxy/lab"
            async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
                yield client


@contextlib.asynccontextmanager
async def deployed(database_url: str, folder: Path, *, replicas: int = 1, **more: object) -> AsyncIterator[Deployment]:
    """Start replicas one after another on one database; `more` are further settings."""
    deployment = Deployment(new_key(), database_url)
    own = {"mongodb_url": database_url, "bootstrap_admin_key": deployment.admin_key, "data_dir": folder / "data"}
    settings = {"embeddings": "none", **own, **more}
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(replicas):
            replica = await stack.enter_async_context(started("serve", **settings))
            await replica.ready()
            deployment.replicas.append(replica)
        yield deployment


async def names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("mode", ["auto", "legacy", "2026-07-28"])
@pytest.mark.parametrize("options", [[], ["--json"], ["--stateless"], ["--json", "--stateless"]], ids=" ".join)
async def test_a_switch_holds_for_a_client_that_connects_straight_through(
    database_url: str, tmp_path: Path, mode: str, options: list[str]
) -> None:
    async with sdk_server(tmp_path, *options) as downstream, deployed(database_url, tmp_path) as deployment:
        await deployment.register(downstream)
        async with deployment.client(mode) as client:
            assert await names(client) == TOOLS

            changed = await deployment.switch_off("danger", "da\u00f1ger", "no such tool")
            assert (set(changed["disabledTools"]), changed["ignoredTools"]) == (TOOLS - {"safe"}, ["no such tool"])
            assert await names(client) == {"safe"}
            before = downstream.heard()
            for name in ("danger", "da\u00f1ger"):
                with pytest.raises(MCPError) as refused:
                    await client.call_tool(name, {"nonce": "1"})
                assert (refused.value.code, refused.value.message) == (-32602, f"Unknown tool: {name}")
            assert downstream.heard() == before

            await deployment.api("PUT", "/servers/%2Flab/tools/danger", {"enabled": True})
            assert await names(client) == {"safe", "danger"}
            result = await client.call_tool("danger", {"nonce": "2"})
            assert not result.is_error

    assert [fact for fact in downstream.heard() if "tool" in fact] == [{"tool": "danger", "nonce": "2"}]


@pytest.mark.timeout(60)
async def test_a_change_through_one_replica_or_by_a_stranger_binds_the_next_call_on_the_other(
    database_url: str, tmp_path: Path
) -> None:
    driver: AsyncIOMotorClient[Any] = AsyncIOMotorClient(database_url)
    stored = driver.get_default_database().mcpservers
    async with sdk_server(tmp_path) as downstream, deployed(database_url, tmp_path, replicas=2) as deployment:
        await deployment.register(downstream)
        async with deployment.client("legacy", replica=0) as first, deployment.client("auto", replica=1) as second:
            for round_ in range(10):
                here, there = (first, second) if round_ % 2 else (second, first)
                await deployment.switch_off("danger", replica=round_ % 2)
                for client in (here, there):
                    with pytest.raises(MCPError):
                        await client.call_tool("danger", {"nonce": f"off {round_}"})

                foreign = {"$set": {"registryDisabledTools": ["safe"]}}
                await stored.update_one({"_id": ObjectId(deployment.server_id)}, foreign)
                for client in (there, here):
                    assert not (await client.call_tool("danger", {"nonce": f"on {round_}"})).is_error
                    with pytest.raises(MCPError):
                        await client.call_tool("safe", {"nonce": f"off {round_}"})
    driver.close()

    ran = [fact["nonce"] for fact in downstream.heard() if "tool" in fact]
    assert ran == [f"on {round_}" for round_ in range(10) for _ in range(2)]

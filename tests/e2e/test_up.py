"""`sluicegate up --demo`, the way that a person meets Sluicegate: one process, the real store, a real client."""

import contextlib
import signal
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

from tests.e2e.processes import Sluicegate, gone, started
from tests.need import need

pytestmark = pytest.mark.timeout(60)
"""Each starts and ends several processes, up to twice."""

LINUX = sys.platform == "linux"
TOOLS = {
    "create_issue",
    "delete_branch",
    "delete_repository",
    "get_file",
    "list_repositories",
    "merge_pull_request",
    "search_code",
    "send_announcement",
}


@pytest.fixture(autouse=True)
def _needs() -> None:
    need("embedded", present=Path(sys.executable).with_name("secantusd-py").is_file())


async def test_what_the_greeting_says_works_and_a_ctrl_c_ends_all_of_it(tmp_path: Path) -> None:
    async with started("up", "--demo", data_dir=tmp_path / "data") as sluicegate:
        await sluicegate.ready()
        async with _client(sluicegate) as client:
            assert await _tools(client) == TOOLS
            assert await _patch(sluicegate, sluicegate.admin_key, ["delete_repository"]) == (200, ["delete_repository"])
            assert await _tools(client) == TOOLS - {"delete_repository"}
            with pytest.raises(MCPError) as refused:
                await client.call_tool("delete_repository", {"repository": "website"})
            listed = await client.call_tool("list_repositories", {})
        children = sluicegate.children() if LINUX else []

        ended = await sluicegate.end(signal.SIGINT)

    assert (refused.value.code, refused.value.message) == (-32602, "Unknown tool: delete_repository")
    assert listed.structured_content == {"result": ["payments", "website"]}
    assert ended.code == 0
    assert "Traceback" not in ended.stderr
    await gone(children)


async def test_the_agents_key_cannot_undo_a_switch(tmp_path: Path) -> None:
    async with started("up", "--demo", data_dir=tmp_path / "data") as sluicegate:
        await sluicegate.ready()

        assert (await _patch(sluicegate, sluicegate.agent_key, []))[0] == 403

        await sluicegate.end()


async def test_a_second_start_finds_the_data_and_the_agents_key_and_shows_no_admin_key(tmp_path: Path) -> None:
    async with started("up", "--demo", data_dir=tmp_path / "data") as first:
        await first.ready()
        await _patch(first, first.admin_key, ["delete_repository"])
        await first.end()
    async with started("up", "--demo", data_dir=tmp_path / "data") as second:
        await second.ready()
        async with _client(second) as client:
            assert await _tools(client) == TOOLS - {"delete_repository"}
        await second.end(signal.SIGTERM)

    assert first.agent_key == second.agent_key
    assert second.admin_key is None
    assert "The admin key is that of the first start." in second.greeting
    assert (tmp_path / "data/demo-agent.key").stat().st_mode & 0o777 == 0o600


async def test_after_a_kill_store_and_demonstration_die_too_and_the_next_start_has_what_was_acknowledged(
    tmp_path: Path,
) -> None:
    need("linux", present=LINUX)
    async with started("up", "--demo", data_dir=tmp_path / "data") as first:
        await first.ready()
        await _patch(first, first.admin_key, ["delete_branch"])
        children = first.children()
        assert len(children) == 2

        await first.end(signal.SIGKILL)
        await gone(children)

    async with started("up", "--demo", data_dir=tmp_path / "data") as second:
        await second.ready()
        async with _client(second) as client:
            assert await _tools(client) == TOOLS - {"delete_branch"}
        await second.end()


async def test_without_the_demonstration_the_address_and_the_admin_key_are_shown(tmp_path: Path) -> None:
    async with started("up", data_dir=tmp_path / "data") as sluicegate:
        await sluicegate.ready()
        async with aiohttp.ClientSession() as http, http.get(f"{sluicegate.base_url}/readyz") as response:
            told = await response.json()
            assert (response.status, told["status"], told["store"]) == (200, "ready", "available")
        ended = await sluicegate.end(signal.SIGTERM)

    assert ended.code == 0
    assert "  sg_" in sluicegate.greeting


@contextlib.asynccontextmanager
async def _client(sluicegate: Sluicegate) -> AsyncIterator[Client]:
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {sluicegate.agent_key}"}) as http:
        transport = streamable_http_client(f"{sluicegate.base_url}/proxy/demo", http_client=http)
        async with Client(transport) as client:
            yield client


async def _tools(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


async def _patch(sluicegate: Sluicegate, key: str | None, disabled: list[str]) -> tuple[int, Any]:
    address = f"{sluicegate.base_url}/api/v1/servers/%2Fdemo/tools"
    fields = {"Authorization": f"Bearer {key}"}
    async with (
        aiohttp.ClientSession() as http,
        http.patch(address, json={"disabledTools": disabled}, headers=fields) as answer,
    ):
        return answer.status, (await answer.json()).get("disabledTools")

"""With processes and no twin: callers without a key, refusals in words, and names that only callers are listed."""

from pathlib import Path
from typing import Any

import httpx2
import pytest
from bson import ObjectId
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from motor.motor_asyncio import AsyncIOMotorClient

from tests.e2e.test_story import TOOLS, Deployment, deployed, names, sdk_server
from tests.waiting import asked_until

PERMISSIONS = "/servers/%2Flab/permissions"
TOOLS_OF_LAB = "/servers/%2Flab/tools"


async def show_to_public(deployment: Deployment) -> None:
    """Beside the entries that are there."""
    entries = (await deployment.api("GET", PERMISSIONS))["permissions"]
    public = {"principalType": "public", "role": "viewer"}
    await deployment.api("PUT", PERMISSIONS, {"permissions": [*entries, public]})


@pytest.mark.timeout(60)
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_an_official_client_without_a_key_runs_what_is_read_only(
    database_url: str, tmp_path: Path, mode: Any
) -> None:
    async with (
        sdk_server(tmp_path) as downstream,
        deployed(database_url, tmp_path, anonymous="read", refusal_style="explain") as deployment,
    ):
        await deployment.register(downstream)
        await deployment.api("PATCH", TOOLS_OF_LAB, {"readOnlyTools": ["safe"]})
        url = f"{deployment.replicas[0].base_url}/proxy/lab"
        async with httpx2.AsyncClient(timeout=10) as http:
            hidden = await http.post(url, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
            assert hidden.status_code == 404
            await show_to_public(deployment)
            async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
                assert await names(client) == {"safe"}
                result = await client.call_tool("safe", {"nonce": "1"})
                assert (result.is_error, result.content[0].text) == (False, "safe:1")  # type: ignore[union-attr]
                refused = await client.call_tool("danger", {"nonce": "2"})
                assert refused.is_error
                assert refused.content[0].text == (  # type: ignore[union-attr]
                    "Tool danger may change something, and this caller may only read: it lacks the 'write' scope."
                )
    assert [fact["nonce"] for fact in downstream.heard() if "tool" in fact] == ["1"]


@pytest.mark.timeout(60)
async def test_a_name_that_only_callers_are_listed_is_shown_until_a_refresh_gets_it(
    database_url: str, tmp_path: Path
) -> None:
    driver: AsyncIOMotorClient[Any] = AsyncIOMotorClient(database_url)
    stored = driver.get_default_database().mcpservers
    async with sdk_server(tmp_path) as downstream, deployed(database_url, tmp_path, replicas=2) as deployment:
        await deployment.register(downstream)
        forgotten: dict[str, Any] = {"$set": {"registryTools": [], "config.toolFunctions": {}}}
        await stored.update_one({"_id": ObjectId(deployment.server_id)}, forgotten)

        async def observed(replica: int) -> set[str]:
            shown = await deployment.api("GET", TOOLS_OF_LAB, replica=replica)
            return {tool["name"] for tool in shown["observedTools"]}

        async def are_observed() -> bool:
            return await observed(1) == TOOLS

        assert await observed(0) == set()
        for replica in (0, 1):
            async with deployment.client("legacy", replica=replica) as client:
                assert await names(client) == TOOLS
        await asked_until(are_observed)
        await deployment.api("POST", "/servers/%2Flab/refresh")
        assert (await observed(0), await observed(1)) == (set(), set())
    driver.close()

"""How soon a switch binds, whoever flips it: two replicas and a stranger take turns (DESIGN 4).

One replica decides on what it reads after the request's last byte, the other on what may be a second old.
"""

import itertools
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from bson import ObjectId
from motor.motor_asyncio import AsyncIOMotorClient

from tests.e2e.processes import started
from tests.e2e.test_mirror import MANY
from tests.e2e.test_story import Deployment, deployed, sdk_server

FLIPS = 1_000
STALENESS_S = 1.0
SLACK_S = 0.05
"""What the question itself may take."""

Flip = Callable[[bool], Awaitable[object]]


class Asker:
    """Calls one tool straight through one replica."""

    def __init__(self, http: httpx2.AsyncClient, base_url: str) -> None:
        self._http = http
        self._url = f"{base_url}/proxy/lab"
        self._ids = itertools.count(1)

    async def runs(self, tool: str) -> bool:
        params = {"name": tool, "arguments": {"nonce": "x"}}
        body = {"jsonrpc": "2.0", "id": next(self._ids), "method": "tools/call", "params": params}
        answer = (await self._http.post(self._url, json=body)).json()
        assert "result" in answer or answer["error"]["code"] == -32602, answer
        return "result" in answer


def flips_of(deployment: Deployment, stored: Any) -> list[Flip]:
    """Through either replica, and past both."""

    def through(replica: int) -> Flip:
        path = "/servers/%2Flab/tools/tool_0001"
        return lambda enabled: deployment.api("PUT", path, {"enabled": enabled}, replica=replica)

    async def elsewhere(enabled: bool) -> None:
        change = "$pull" if enabled else "$addToSet"
        found = {"_id": ObjectId(deployment.server_id)}
        await stored.update_one(found, {change: {"registryDisabledTools": "tool_0001"}})

    return [through(0), through(1), elsewhere]


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_no_decision_is_late_at_staleness_0_and_none_is_older_than_a_second_at_1(
    database_url: str, tmp_path: Path
) -> None:
    driver: AsyncIOMotorClient[Any] = AsyncIOMotorClient(database_url)
    stored = driver.get_default_database().mcpservers
    more = {"mongodb_url": database_url, "embeddings": "none", "data_dir": tmp_path / "data"}
    async with (
        sdk_server(tmp_path, "--tools", "3", program=MANY) as downstream,
        deployed(database_url, tmp_path) as deployment,
        started("serve", **more, max_staleness_s=STALENESS_S) as bounded,
    ):
        await bounded.ready()
        deployment.replicas.append(bounded)
        await deployment.register(downstream)
        fields = {"Authorization": f"Bearer {deployment.agent_key}", "Accept": "application/json, text/event-stream"}
        async with httpx2.AsyncClient(headers=fields, timeout=10) as http:
            fresh, old = (Asker(http, replica.base_url) for replica in deployment.replicas)
            assert [await fresh.runs("tool_0001"), await old.runs("tool_0001")] == [True, True]
            took = await _flipped(flips_of(deployment, stored), fresh, old)
    driver.close()
    ages = sorted(took)
    print(f"staleness 1: median {statistics.median(ages) * 1000:.1f} ms, p99 {ages[-10] * 1000:.1f} ms of {FLIPS}")
    assert len(ages) == FLIPS
    assert ages[-1] < STALENESS_S + SLACK_S


async def _flipped(flips: list[Flip], fresh: Asker, old: Asker) -> list[float]:
    """Flip in turn; returns how long after each acknowledgement the other replica obeyed."""
    took = []
    for number, flip in zip(range(FLIPS), itertools.cycle(flips), strict=False):
        enabled = number % 2 == 1
        await flip(enabled)
        acknowledged = time.monotonic()
        assert await fresh.runs("tool_0001") is enabled, f"flip {number} was late"
        while await old.runs("tool_0001") is not enabled:
            assert time.monotonic() - acknowledged < STALENESS_S + SLACK_S, f"flip {number} was too old"
        took.append(time.monotonic() - acknowledged)
    return took

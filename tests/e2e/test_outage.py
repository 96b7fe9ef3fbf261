"""The store freezes or dies under a running process: refused in time, and back by itself."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from registry.credentials import new_key
from tests.conftest import StoreProcess, running_store
from tests.e2e.processes import started

CALL = {"jsonrpc": "2.0", "id": "an id", "method": "tools/call", "params": {"name": "t"}}
DEADLINE_S = 0.5
PATIENCE_S = 8 * DEADLINE_S
"""What a shared machine may add."""


class Gate:
    """A running Sluicegate on a store that the test may freeze."""

    def __init__(self, url: str, session: aiohttp.ClientSession, store: StoreProcess) -> None:
        self.url = url
        self.store = store
        self._session = session

    async def call(self) -> tuple[int, object]:
        """A tools/call of a server that is not there: its status and the id of its JSON-RPC error, if it is one."""
        async with self._session.post(f"{self.url}/proxy/nobody", json=CALL) as response:
            return response.status, (await response.json()).get("id")

    async def get(self, path: str) -> int:
        """The status of a GET."""
        async with self._session.get(f"{self.url}{path}") as response:
            return response.status


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncIterator[Gate]:
    """Serve with a short deadline."""
    key = new_key()
    with running_store(tmp_path) as store:
        settings = {"mongodb_url": store.url("gate"), "bootstrap_admin_key": key, "policy_timeout_s": DEADLINE_S}
        async with (
            started("serve", data_dir=tmp_path / "data", **settings) as sluicegate,
            aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}) as session,
        ):
            await sluicegate.ready()
            yield Gate(sluicegate.base_url, session, store)


async def refused_in_time(gate: Gate) -> None:
    begun = time.monotonic()
    answers = await asyncio.gather(*(gate.call() for _ in range(20)), gate.get("/api/v1/me"), gate.get("/readyz"))
    assert time.monotonic() - begun < PATIENCE_S
    assert answers == [(503, "an id")] * 20 + [503, 503]
    assert await gate.get("/healthz") == 200


@pytest.mark.timeout(60)
async def test_a_store_that_freezes_is_503_in_time_and_all_is_well_once_it_goes_on(gate: Gate) -> None:
    assert (await gate.call(), await gate.get("/api/v1/me"), await gate.get("/readyz")) == ((404, None), 200, 200)

    gate.store.freeze()
    await refused_in_time(gate)
    gate.store.thaw()

    while await gate.get("/readyz") != 200:
        pass
    while await gate.get("/api/v1/me") != 200:
        pass
    assert await gate.call() == (404, None)


@pytest.mark.timeout(60)
async def test_a_store_that_dies_is_503_in_time(gate: Gate) -> None:
    gate.store.process.kill()
    gate.store.process.wait()

    await refused_in_time(gate)

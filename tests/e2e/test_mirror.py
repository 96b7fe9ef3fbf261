"""The mirror with processes and no twin: what Weaviate holds follows MongoDB, whatever is killed or frozen."""

import asyncio
import contextlib
import random
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from registry.errors import IndexUnavailable
from registry.weaviate import WeaviateIndex
from tests.e2e.processes import started
from tests.e2e.test_story import Deployment, SdkServer, deployed, sdk_server
from tests.waiting import asked_until
from tests.weaviate_server import WeaviateServer, running_weaviate

MANY = Path(__file__).with_name("many_tools.py")
COLLECTION = "SluicegateTool"


@pytest.fixture
def weaviate(tmp_path: Path) -> Iterator[WeaviateServer]:
    folder = tmp_path / "weaviate"
    folder.mkdir()
    with running_weaviate(folder) as server:
        yield server


def settings(weaviate: WeaviateServer, **more: object) -> dict[str, Any]:
    return {"weaviate_url": weaviate.url, "weaviate_grpc": weaviate.grpc, "mirror_reconcile_s": 5, **more}


class Watched:
    """A deployment and what Weaviate says of it, asked by a client of the test's own."""

    def __init__(self, deployment: Deployment, index: WeaviateIndex) -> None:
        self.deployment = deployment
        self._index = index

    async def mirrored(self) -> dict[str, bool]:
        """Whether each tool is enabled, as Weaviate has it."""
        stored = await self._index.stored(self.deployment.server_id)
        return {entry.tool: entry.tool_enabled for entry in stored.values()}

    async def until_mirrored(self, off: set[str], tools: int) -> float:
        """Wait until exactly `off` are off; returns how long it took, in seconds."""
        began = time.monotonic()
        await asked_until(lambda: self._is_mirrored(off, tools), 0.005)
        return time.monotonic() - began

    async def _is_mirrored(self, off: set[str], tools: int) -> bool:
        try:
            now = await self.mirrored()
        except IndexUnavailable:  # not there yet, or not yet again
            return False
        return len(now) == tools and {tool for tool, on in now.items() if not on} == off

    async def state(self) -> dict[str, Any]:
        """The mirror, as the API tells."""
        answer = await self.deployment.api("GET", "/mirror")
        found = [mirror for mirror in answer["mirrors"] if mirror["name"] == "weaviate"]
        return found[0] if found else {"state": "unknown"}

    async def until_state(self, state: str) -> dict[str, Any]:
        async def is_so() -> bool:
            return bool((await self.state())["state"] == state)

        await asked_until(is_so, 0.05)
        return await self.state()


@contextlib.asynccontextmanager
async def watched(
    database_url: str, folder: Path, weaviate: WeaviateServer, downstream: SdkServer, **more: object
) -> AsyncIterator[Watched]:
    index = WeaviateIndex(weaviate.url, weaviate.grpc, collection=COLLECTION)
    try:
        async with deployed(database_url, folder, **settings(weaviate, **more)) as deployment:
            await deployment.register(downstream)
            yield Watched(deployment, index)
    finally:
        await index.close()


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_a_flipped_tool_is_mirrored_within_a_second(
    database_url: str, tmp_path: Path, weaviate: WeaviateServer
) -> None:
    async with (
        sdk_server(tmp_path, program=MANY) as downstream,
        watched(database_url, tmp_path, weaviate, downstream) as seen,
    ):
        await seen.until_mirrored(set(), 100)
        took = []
        for round_ in range(100):
            name = f"tool_{round_:04}"
            await seen.deployment.switch_off(name)
            took.append(await seen.until_mirrored({name}, 100))
        print(f"mirrored after: median {statistics.median(took) * 1000:.0f} ms, most {max(took) * 1000:.0f} ms")
        assert sorted(took)[98] < 1.0


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_after_a_kill_of_both_in_the_middle_of_500_flips_nothing_differs(
    database_url: str, tmp_path: Path, weaviate: WeaviateServer
) -> None:
    chance = random.Random(4)
    tools = [f"tool_{number:04}" for number in range(100)]
    off: set[str] = set()
    async with (
        sdk_server(tmp_path, program=MANY) as downstream,
        watched(database_url, tmp_path, weaviate, downstream) as seen,
    ):
        await seen.until_mirrored(set(), 100)
        own = seen.deployment.replicas[0]
        for flip in range(500):
            if flip == 150:
                weaviate.kill()
            if flip == 250:
                await asyncio.to_thread(weaviate.start)
            if flip == 350:
                own.process.kill()
                await own.process.wait()
                weaviate.kill()
                replica = await stack_started(seen, database_url, tmp_path, weaviate)
            name = chance.choice(tools)
            off ^= {name}
            await seen.deployment.api("PUT", f"/servers/%2Flab/tools/{name}", {"enabled": name not in off})
        await asyncio.to_thread(weaviate.start)
        took = await seen.until_mirrored(off, 100)
        print(f"0 drift {took:.2f} s after both were back")
        assert took < 10
        await replica.aclose()


async def stack_started(
    seen: Watched, database_url: str, folder: Path, weaviate: WeaviateServer
) -> contextlib.AsyncExitStack:
    """Start a replica in place of the one that was killed."""
    stack = contextlib.AsyncExitStack()
    own = {"mongodb_url": database_url, "data_dir": folder / "data", "embeddings": "none"}
    replica = await stack.enter_async_context(started("serve", **own, **settings(weaviate)))
    await replica.ready()
    seen.deployment.replicas[0] = replica
    return stack


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_a_frozen_weaviate_changes_no_calls_latency(
    database_url: str, tmp_path: Path, weaviate: WeaviateServer
) -> None:
    async with (
        sdk_server(tmp_path, program=MANY) as downstream,
        watched(database_url, tmp_path, weaviate, downstream) as seen,
        seen.deployment.client("legacy") as client,
    ):
        await seen.until_mirrored(set(), 100)

        async def times(seconds: float) -> tuple[list[float], list[float]]:
            calls: list[float] = []
            changes: list[float] = []
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                name = f"tool_{len(calls) % 100:04}"
                began = time.monotonic()
                await client.call_tool("tool_0000", {"nonce": "x"})
                calls.append(time.monotonic() - began)
                began = time.monotonic()
                await seen.deployment.api("PUT", f"/servers/%2Flab/tools/{name}x", {"enabled": False})
                changes.append(time.monotonic() - began)
                answer = await seen.deployment.api("GET", "/discovery/search?q=thing")
                assert len(answer["tools"]) == 10
            return calls, changes

        up = await times(10)
        weaviate.freeze()
        frozen = await times(60)
        weaviate.thaw()
        for kind, with_it, without in (("call", up[0], frozen[0]), ("PATCH", up[1], frozen[1])):
            print(
                f"{kind}: up median {statistics.median(with_it) * 1000:.1f} ms, "
                f"frozen median {statistics.median(without) * 1000:.1f} ms, most {max(without) * 1000:.0f} ms"
            )
            assert statistics.median(without) < 2 * statistics.median(with_it) + 0.005
            assert max(without) < 1.0
        assert (await seen.until_state("up"))["drift"] == 0

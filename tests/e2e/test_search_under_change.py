"""While switches are flipped all the time, no search returns a tool that is off, and each is as long as it can be.

Processes, the real store, the real Weaviate. A tool is surely off from the moment that its switch was acknowledged
until somebody asks for it to be on again; what a search returns must not have been surely off for all its time.
"""

import asyncio
import random
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from tests.e2e.test_mirror import MANY, watched
from tests.e2e.test_story import Deployment, sdk_server
from tests.weaviate_server import WeaviateServer, running_weaviate

SEARCHES = 10_000
AT_ONCE = 8
TOOLS = [f"tool_{number:04}" for number in range(120)]
LIMIT = 10


class Switches:
    """Flips tools, and remembers when each was surely off."""

    def __init__(self, deployment: Deployment, off: set[str]) -> None:
        self._deployment = deployment
        self._chance = random.Random(7)
        now = time.monotonic()
        self.off_since = dict.fromkeys(off, now)
        self.was_off: dict[str, list[tuple[float, float]]] = defaultdict(list)
        self.flips = self.degraded = 0

    async def flip_for_ever(self) -> None:
        """One that is off goes on, and one that is on goes off."""
        while True:
            going_on = self._chance.choice(sorted(self.off_since))
            self.was_off[going_on].append((self.off_since.pop(going_on), time.monotonic()))
            await self._set(going_on, enabled=True)
            going_off = self._chance.choice(sorted(set(TOOLS) - self.off_since.keys()))
            await self._set(going_off, enabled=False)
            self.off_since[going_off] = time.monotonic()
            self.flips += 2

    async def _set(self, name: str, *, enabled: bool) -> None:
        await self._deployment.api("PUT", f"/servers/%2Flab/tools/{name}", {"enabled": enabled})

    def was_surely_off(self, name: str, began: float, ended: float) -> bool:
        """True when it was off for all of that time."""
        since = self.off_since.get(name)
        if since is not None and since <= began:
            return True
        return any(start <= began and ended <= end for start, end in self.was_off[name])


@pytest.mark.slow
@pytest.mark.timeout(1200)
async def test_ten_thousand_searches_beside_a_writer_return_no_tool_that_is_off(
    database_url: str, tmp_path: Path
) -> None:
    (tmp_path / "weaviate").mkdir()
    with running_weaviate(tmp_path / "weaviate") as weaviate:
        await _searched(database_url, tmp_path, weaviate)


async def _searched(database_url: str, tmp_path: Path, weaviate: WeaviateServer) -> None:
    async with (
        sdk_server(tmp_path, "--tools", str(len(TOOLS)), program=MANY) as downstream,
        watched(database_url, tmp_path, weaviate, downstream) as seen,
    ):
        off = set(random.Random(3).sample(TOOLS, len(TOOLS) * 3 // 10))
        await seen.deployment.switch_off(*off)
        await seen.until_mirrored(off, len(TOOLS))
        switches = Switches(seen.deployment, off)
        flipping = asyncio.create_task(switches.flip_for_ever())
        numbers = iter(range(SEARCHES))
        counts = await asyncio.gather(*(_search_all(seen.deployment, switches, numbers) for _ in range(AT_ONCE)))
        flipping.cancel()
        print(f"{sum(counts)} searches beside {switches.flips} flips, {switches.degraded} by the fallback")
        assert sum(counts) == SEARCHES
        assert switches.flips > 100


async def _search_all(deployment: Deployment, switches: Switches, numbers: Iterator[int]) -> int:
    base = f"{deployment.replicas[0].base_url}/api/v1/discovery/search?limit={LIMIT}&q=does+the+thing+number+"
    done = 0
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {deployment.agent_key}"}) as http:
        for number in numbers:
            began = time.monotonic()
            async with http.get(base + str(number % len(TOOLS))) as response:
                answer = await response.json()
            ended = time.monotonic()
            found = [tool["tool"] for tool in answer["tools"]]
            assert len(set(found)) == LIMIT, answer
            assert not [name for name in found if switches.was_surely_off(name, began, ended)]
            done += 1
            switches.degraded += answer["degraded"]
    return done

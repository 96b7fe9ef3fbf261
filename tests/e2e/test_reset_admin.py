"""A lost admin key is replaced by whoever has the store (DESIGN 5)."""

from pathlib import Path

import aiohttp
import pytest

from tests.e2e.processes import started


async def me(base_url: str, key: str) -> int:
    headers = {"Authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession(headers=headers) as http, http.get(f"{base_url}/api/v1/me") as answer:
        return answer.status


@pytest.mark.timeout(90)
async def test_a_new_admin_key_is_printed_once_and_the_others_go_on(tmp_path: Path) -> None:
    settings = {"data_dir": tmp_path / "data", "embeddings": "none"}
    lost = "sg_" + "L" * 43
    async with started("up", **settings, bootstrap_admin_key=lost) as first:
        await first.ready()
        async with started("keys", "reset-admin", **settings) as refused:
            ended = await refused.ended()
        assert (ended.code, ended.stdout) == (1, "")
        assert "is using" in ended.stderr
        assert (await first.end()).code == 0
    async with started("keys", "reset-admin", **settings) as reset:
        ended = await reset.ended()
    assert ended.code == 0, ended.stderr
    made = ended.stdout.strip()
    assert made.startswith("sg_")
    async with started("up", **settings) as again:
        await again.ready()
        assert [await me(again.base_url, key) for key in (made, lost, "sg_" + "x" * 43)] == [200, 200, 401]

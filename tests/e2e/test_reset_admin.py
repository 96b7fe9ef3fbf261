"""A lost admin key is replaced by whoever has the store (DESIGN 5)."""

import re
import socket
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


@pytest.mark.timeout(60)
async def test_beside_a_running_serve_it_makes_a_key_in_the_same_mongodb_that_works_at_once(database_url: str) -> None:
    settings = {"mongodb_url": database_url, "embeddings": "none"}
    async with started("serve", **settings) as running:
        await running.ready()
        async with started("keys", "reset-admin", **settings) as reset:
            ended = await reset.ended()
        assert (ended.code, ended.stderr) == (0, "A new admin key, shown this once:\n")
        assert await me(running.base_url, ended.stdout.strip()) == 200
        assert (await running.end()).code == 0


@pytest.mark.timeout(60)
async def test_where_there_is_no_store_it_makes_none_and_says_what_to_set(tmp_path: Path) -> None:
    async with started("keys", "reset-admin", data_dir=tmp_path / "data") as reset:
        ended = await reset.ended()
    assert (ended.code, ended.stdout) == (1, "")
    assert re.fullmatch(
        r"There is no store in [^\n]*SLUICEGATE_MONGODB_URL[^\n]*SLUICEGATE_DATA_DIR[^\n]*\n", ended.stderr
    )
    assert not (tmp_path / "data").exists()


@pytest.mark.timeout(60)
async def test_a_store_that_nobody_serves_is_exit_code_1_and_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"mongodb://me:hunter2@127.0.0.1:{port}/"
    async with started("keys", "reset-admin", mongodb_url=url, policy_timeout_s=0.5) as reset:
        ended = await reset.ended()
    assert (ended.code, ended.stdout, ended.stderr.count("\n")) == (1, "", 1)
    assert "hunter2" not in ended.stderr

"""The embedded store: behind a password from the first moment that matters, and its own folder's only user."""

import json
import os
import re
import signal
import stat
import sys
from pathlib import Path

import pytest
from motor.motor_asyncio import AsyncIOMotorClient
from pymongo.errors import OperationFailure

from config.children import ChildExited
from config.embedded import EmbeddedStore
from config.errors import StartFailed
from tests.need import need


@pytest.fixture(autouse=True)
def _needs() -> None:
    need("embedded", present=Path(sys.executable).with_name("secantusd-py").is_file())


async def _count(url: str, *, insert: bool = False) -> int:
    client = AsyncIOMotorClient(url, timeoutMS=2000)  # type: ignore[var-annotated]  # documents of any shape
    try:
        if insert:
            await client.probe.things.insert_one({})
        return int(await client.probe.things.count_documents({}))
    finally:
        client.close()


async def test_a_second_start_finds_the_data_and_the_password_of_the_first(tmp_path: Path) -> None:
    async with EmbeddedStore(tmp_path / "data") as first:
        first_url = await first.start()
        assert await _count(first_url, insert=True) == 1
    async with EmbeddedStore(tmp_path / "data") as second:
        second_url = await second.start()
        assert await _count(second_url) == 1

    assert _without_port(first_url) == _without_port(second_url)


async def test_the_store_refuses_whoever_has_no_password(tmp_path: Path) -> None:
    async with EmbeddedStore(tmp_path / "data") as store:
        url = await store.start()
        with pytest.raises(OperationFailure):
            await _count(re.sub(r"//.*@", "//", url.partition("&authSource")[0]))


async def test_only_the_owner_may_read_what_it_writes(tmp_path: Path) -> None:
    async with EmbeddedStore(tmp_path / "data") as store:
        await store.start()

        assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
        assert stat.S_IMODE((tmp_path / "data/store.password").stat().st_mode) == 0o600


async def test_a_second_store_on_the_same_folder_is_one_sentence(tmp_path: Path) -> None:
    async with EmbeddedStore(tmp_path / "data") as store:
        await store.start()
        other = EmbeddedStore(tmp_path / "data")
        with pytest.raises(StartFailed, match=r"^Another sluicegate is using .*data; .*\.$"):
            await other.start()
        await other.stop()


async def test_a_first_start_cut_short_after_the_user_was_made_is_repaired_by_the_next(tmp_path: Path) -> None:
    """The user is there with a password that nobody knows."""
    async with EmbeddedStore(tmp_path / "data") as store:
        await store.start()
    (tmp_path / "data/store.password").unlink()

    async with EmbeddedStore(tmp_path / "data") as store:
        assert await _count(await store.start(), insert=True) == 1


async def test_a_missing_program_is_one_sentence(tmp_path: Path) -> None:
    async with EmbeddedStore(tmp_path / "data", program=tmp_path / "nothing") as store:
        with pytest.raises(StartFailed, match=r"^The embedded store cannot start: .*nothing is missing; .*\.$"):
            await store.start()


async def test_a_store_that_cannot_open_its_folder_is_one_sentence_with_what_it_said(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/store").write_text("not a folder")

    async with EmbeddedStore(tmp_path / "data") as store:
        with pytest.raises(StartFailed, match=r"^The embedded store ended before it was ready\. It said last: .+"):
            await store.start()


async def test_a_data_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(
        StartFailed, match=r"^The data folder .*file/data cannot be made: .*; set SLUICEGATE_DATA_DIR\.$"
    ):
        EmbeddedStore(tmp_path / "file/data")


async def test_the_end_of_the_store_is_noticed(tmp_path: Path) -> None:
    async with EmbeddedStore(tmp_path / "data") as store:
        await store.start()
        os.kill(json.loads((tmp_path / "data/store.pid").read_text())["pid"], signal.SIGKILL)

        with pytest.raises(ChildExited, match=r"^The embedded store ended with exit code -9, "):
            await store.exited()


def _without_port(url: str) -> str:
    return re.sub(r"127\.0\.0\.1:\d+", "", url)

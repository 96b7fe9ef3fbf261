"""Work beside the requests: begun again when it fails, ended with the application."""

import asyncio

import pytest

from config import background
from config.background import running


async def test_a_work_that_fails_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_PAUSE_S", 0)
    began: list[int] = []
    third = asyncio.Event()

    async def work() -> None:
        began.append(len(began))
        if len(began) < 3:
            raise ValueError("a fault of ours")
        third.set()
        await asyncio.Event().wait()

    async with running({"work": work}):
        await third.wait()
    assert began == [0, 1, 2]


async def test_a_work_that_ends_is_not_begun_again_and_one_that_runs_is_cancelled() -> None:
    ended, cancelled = 0, False

    async def short() -> None:
        nonlocal ended
        ended += 1

    async def long() -> None:
        nonlocal cancelled
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled = True
            raise

    async with running({"short": short, "long": long}):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert (ended, cancelled) == (1, True)

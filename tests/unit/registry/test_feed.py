"""One change stream, many listeners (DESIGN 4)."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from registry.changes import EVERYTHING, StoreChange, Subject
from registry.feed import SharedFeed
from registry.memory.mirroring import MemoryFeed
from tests.waiting import until

A, B, C = StoreChange(Subject.SERVER, "a"), StoreChange(Subject.KEY, "b"), StoreChange(Subject.ENTRY, "c")


class Listener:
    def __init__(self, feed: SharedFeed) -> None:
        self.heard: list[StoreChange] = []
        self._task = asyncio.create_task(self._hear(feed))

    async def _hear(self, feed: SharedFeed) -> None:
        async with contextlib.aclosing(feed.changes()) as changes:
            async for change in changes:
                self.heard.append(change)

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


@pytest.fixture
async def source() -> MemoryFeed:
    return MemoryFeed()


@pytest.fixture
async def shared(source: MemoryFeed) -> AsyncIterator[SharedFeed]:
    feed = SharedFeed(source)
    running = asyncio.create_task(feed.run())
    await until(lambda: bool(source.listening))
    yield feed
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_each_listener_hears_everything_first_and_then_each_change(
    source: MemoryFeed, shared: SharedFeed
) -> None:
    early = Listener(shared)
    await until(lambda: early.heard == [EVERYTHING])
    source.tell(A)
    await until(lambda: early.heard == [EVERYTHING, A])
    late = Listener(shared)
    await until(lambda: late.heard == [EVERYTHING])
    source.tell(B)
    await until(lambda: early.heard == [EVERYTHING, A, B] and late.heard == [EVERYTHING, B])
    assert len(source.listening) == 1, "the store is asked once"
    await early.end()
    await late.end()


async def test_a_listener_that_has_gone_is_not_told(source: MemoryFeed, shared: SharedFeed) -> None:
    gone, stays = Listener(shared), Listener(shared)
    await until(lambda: gone.heard == stays.heard == [EVERYTHING])
    await gone.end()
    source.tell(A)
    await until(lambda: stays.heard == [EVERYTHING, A])
    assert (gone.heard, len(shared._inboxes)) == ([EVERYTHING], 1)
    await stays.end()


async def test_changes_of_one_document_melt_into_one_for_a_slow_listener(
    source: MemoryFeed, shared: SharedFeed
) -> None:
    other = Listener(shared)
    async with contextlib.aclosing(shared.changes()) as changes:
        assert await anext(changes) == EVERYTHING
        for change in (A, B, A, C):
            source.tell(change)
        await until(lambda: C in other.heard)
        assert [await anext(changes) for _ in range(3)] == [A, B, C]
        source.tell(A)
        assert await anext(changes) == A, "what comes after it was taken is news again"
    await other.end()


async def test_a_stream_that_lost_its_place_is_told_to_all(source: MemoryFeed, shared: SharedFeed) -> None:
    listener = Listener(shared)
    await until(lambda: listener.heard == [EVERYTHING])
    source.lose()
    await until(lambda: listener.heard == [EVERYTHING, EVERYTHING])
    await listener.end()

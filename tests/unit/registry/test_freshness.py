"""Facts that are younger than the question, read in batches (DESIGN 4)."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta

import pytest

from registry.errors import StoreUnavailable
from registry.freshness import Freshness
from registry.model import Asked, Facts
from tests.build import NOW

A, B, C = Asked("a"), Asked("b"), Asked("c")


class Reads:
    """A reader whose reads end when the test says so; `now` of its facts numbers the read."""

    def __init__(self) -> None:
        self.begun: list[frozenset[Asked]] = []
        self.running = self.most_at_once = 0
        self._changed = asyncio.Event()
        self._ends: list[asyncio.Future[None]] = []

    async def read(self, asked: frozenset[Asked]) -> Mapping[Asked, Facts]:
        number = len(self.begun)
        self.begun.append(asked)
        self._ends.append(asyncio.get_running_loop().create_future())
        self._changed.set()
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        try:
            await self._ends[number]
        finally:
            self.running -= 1
        return {one: Facts(NOW + timedelta(seconds=number)) for one in asked}

    async def until(self, count: int) -> None:
        while len(self.begun) < count:
            self._changed.clear()
            await self._changed.wait()

    def end(self, number: int, error: Exception | None = None) -> None:
        if error is None:
            self._ends[number].set_result(None)
        else:
            self._ends[number].set_exception(error)


@pytest.fixture
async def reads() -> Reads:
    return Reads()


@pytest.fixture
async def freshness(reads: Reads) -> AsyncIterator[Freshness]:
    made = Freshness(reads, timeout_s=5, second_read_after_s=60)
    yield made
    await made.close()


def ask(freshness: Freshness, asked: Asked) -> asyncio.Task[Facts]:
    return asyncio.get_running_loop().create_task(freshness.facts(asked))


async def number_of(answer: asyncio.Task[Facts]) -> int:
    return int(((await answer).now - NOW).total_seconds())


async def settle() -> None:
    """Let every task that can run do so."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_call_alone_is_read_at_once(freshness: Freshness, reads: Reads) -> None:
    answer = ask(freshness, A)
    await reads.until(1)
    reads.end(0)

    assert await number_of(answer) == 0
    assert reads.begun == [frozenset({A})]


async def test_a_call_during_a_read_waits_for_one_that_begins_after_it(freshness: Freshness, reads: Reads) -> None:
    first = ask(freshness, A)
    await reads.until(1)
    later = ask(freshness, A)
    await settle()
    reads.end(0)
    await reads.until(2)
    reads.end(1)

    assert (await number_of(first), await number_of(later)) == (0, 1)


async def test_one_read_serves_all_that_wait(freshness: Freshness, reads: Reads) -> None:
    first = ask(freshness, A)
    await reads.until(1)
    waiting = [ask(freshness, one) for one in (A, B, B, C)]
    await settle()
    reads.end(0)
    await reads.until(2)
    reads.end(1)

    assert [await number_of(answer) for answer in (first, *waiting)] == [0, 1, 1, 1, 1]
    assert reads.begun[1:] == [frozenset({A, B, C})]


async def test_a_second_read_starts_beside_a_slow_one_and_no_third(reads: Reads) -> None:
    freshness = Freshness(reads, timeout_s=5, second_read_after_s=0.01)
    slow = ask(freshness, A)
    await reads.until(1)
    second = ask(freshness, B)
    await reads.until(2)
    third = ask(freshness, C)
    reads.end(1)
    assert await number_of(second) == 1
    await reads.until(3)
    reads.end(2)

    assert await number_of(third) == 2
    assert not slow.done()
    await freshness.close()
    with pytest.raises(StoreUnavailable):
        await slow


async def test_never_more_than_two_reads_run(reads: Reads) -> None:
    freshness = Freshness(reads, timeout_s=0.3, second_read_after_s=0.01)
    answers = [ask(freshness, A)]
    await reads.until(1)
    answers.append(ask(freshness, B))
    await reads.until(2)
    answers.append(ask(freshness, C))

    assert all(isinstance(error, StoreUnavailable) for error in await asyncio.gather(*answers, return_exceptions=True))
    assert len(reads.begun) >= 2
    assert reads.most_at_once == 2
    await freshness.close()


async def test_a_failed_read_fails_its_own_callers_only(freshness: Freshness, reads: Reads) -> None:
    first = ask(freshness, A)
    await reads.until(1)
    later = ask(freshness, A)
    await settle()
    reads.end(0, StoreUnavailable("gone"))
    await reads.until(2)
    reads.end(1)

    with pytest.raises(StoreUnavailable):
        await first
    assert await number_of(later) == 1


async def test_a_mistake_in_the_reader_is_a_refusal_and_the_next_read_goes_on(
    freshness: Freshness, reads: Reads
) -> None:
    first = ask(freshness, A)
    await reads.until(1)
    reads.end(0, KeyError("a mistake"))
    with pytest.raises(StoreUnavailable):
        await first
    second = ask(freshness, A)
    await reads.until(2)
    reads.end(1)

    assert await number_of(second) == 1


async def test_a_store_that_does_not_answer_is_a_refusal_in_time(reads: Reads) -> None:
    freshness = Freshness(reads, timeout_s=0.05)

    with pytest.raises(StoreUnavailable):
        await freshness.facts(A)
    await freshness.close()


async def test_a_read_that_hangs_is_given_up_so_that_the_next_can_start(reads: Reads) -> None:
    freshness = Freshness(reads, timeout_s=0.05, second_read_after_s=60)
    with pytest.raises(StoreUnavailable):
        await freshness.facts(A)
    await settle()
    second = ask(freshness, B)
    await reads.until(2)
    reads.end(1)

    assert await number_of(second) == 1
    await freshness.close()


async def test_a_caller_that_goes_away_disturbs_nobody(freshness: Freshness, reads: Reads) -> None:
    first = ask(freshness, A)
    await reads.until(1)
    gone, stays = ask(freshness, A), ask(freshness, A)
    await settle()
    gone.cancel()
    first.cancel()
    await settle()
    reads.end(0)
    await reads.until(2)
    reads.end(1)

    assert await number_of(stays) == 1
    assert gone.cancelled()
    assert first.cancelled()


async def test_closing_tells_those_who_wait(reads: Reads) -> None:
    freshness = Freshness(reads, timeout_s=5, second_read_after_s=60)
    first = ask(freshness, A)
    await reads.until(1)
    second = ask(freshness, B)
    await settle()
    await freshness.close()

    for answer in (first, second):
        with pytest.raises(StoreUnavailable):
            await answer

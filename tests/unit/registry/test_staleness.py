"""Facts that may be used again for a while (DESIGN 4, `max_staleness_s` above 0)."""

import asyncio
from datetime import timedelta

import pytest

from registry import staleness
from registry.changes import StoreChange, Subject
from registry.errors import StoreUnavailable
from registry.freshness import Dated
from registry.memory.mirroring import MemoryFeed
from registry.model import Asked, Facts
from registry.staleness import BoundedStaleness, Telling
from tests.build import NOW
from tests.waiting import until

A, B = Asked("a", "/x"), Asked("b", "/x")


class Source:
    """Reads that take as long as `gate` is closed; `now` of the facts numbers the read."""

    def __init__(self) -> None:
        self.now = 100.0
        self.reads: list[Asked] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: StoreUnavailable | None = None

    def clock(self) -> float:
        return self.now

    async def dated(self, asked: Asked) -> Dated:
        began, number = self.now, len(self.reads)
        self.reads.append(asked)
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return Dated(facts(number), began)


def facts(number: int) -> Facts:
    return Facts(NOW + timedelta(seconds=number))


@pytest.fixture
async def source() -> Source:
    return Source()


@pytest.fixture
async def bounded(source: Source) -> BoundedStaleness:
    return BoundedStaleness(source, 1.0, clock=source.clock)


async def test_facts_are_used_again_while_their_read_began_less_than_the_limit_ago(
    source: Source, bounded: BoundedStaleness
) -> None:
    assert await bounded.facts(A) == facts(0)
    source.now += 0.999
    assert await bounded.facts(A) == facts(0)
    source.now += 0.001
    assert await bounded.facts(A) == facts(1)
    assert source.reads == [A, A]


async def test_the_age_counts_from_the_beginning_of_the_read(source: Source, bounded: BoundedStaleness) -> None:
    source.gate.clear()
    slow = asyncio.create_task(bounded.facts(A))
    await until(lambda: source.reads == [A])
    source.now += 1
    source.gate.set()
    assert await slow == facts(0)
    assert await bounded.facts(A) == facts(1), "the first is too old by now"


async def test_others_are_asked_for_on_their_own(source: Source, bounded: BoundedStaleness) -> None:
    assert [await bounded.facts(one) for one in (A, B, A, B)] == [facts(0), facts(1), facts(0), facts(1)]


async def test_nothing_from_before_a_change_is_used_after_it(source: Source, bounded: BoundedStaleness) -> None:
    await bounded.facts(A)
    await bounded.facts(B)
    bounded.forget()
    assert [await bounded.facts(A), await bounded.facts(B)] == [facts(2), facts(3)]


async def test_what_was_read_during_a_change_is_not_used_again(source: Source, bounded: BoundedStaleness) -> None:
    source.gate.clear()
    during = asyncio.create_task(bounded.facts(A))
    await until(lambda: source.reads == [A])
    bounded.forget()
    source.gate.set()
    assert await during == facts(0)
    assert await bounded.facts(A) == facts(1)


async def test_a_failed_read_is_told_and_not_remembered(source: Source, bounded: BoundedStaleness) -> None:
    source.error = StoreUnavailable("gone")
    with pytest.raises(StoreUnavailable, match="gone"):
        await bounded.facts(A)
    source.error = None
    assert await bounded.facts(A) == facts(1)


async def test_facts_that_are_too_old_do_not_outlive_the_store(source: Source, bounded: BoundedStaleness) -> None:
    """Not knowing means refusing."""
    await bounded.facts(A)
    source.now += 1
    source.error = StoreUnavailable("gone")
    with pytest.raises(StoreUnavailable):
        await bounded.facts(A)


async def test_no_more_is_kept_than_there_is_room_for(
    source: Source, bounded: BoundedStaleness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staleness, "MOST_REMEMBERED", 2)
    for key in ("a", "b", "c"):
        await bounded.facts(Asked(key))
    assert list(bounded._known) == [Asked("b"), Asked("c")], "the oldest goes"


async def test_what_is_too_old_is_not_kept(source: Source, bounded: BoundedStaleness) -> None:
    await bounded.facts(A)
    source.now += 1
    await bounded.facts(B)
    assert list(bounded._known) == [B]


async def test_facts_of_a_read_that_took_too_long_are_not_kept_at_all(
    source: Source, bounded: BoundedStaleness
) -> None:
    source.gate.clear()
    slow = asyncio.create_task(bounded.facts(A))
    await until(lambda: source.reads == [A])
    source.now += 2
    source.gate.set()
    await slow
    assert bounded._known == {}


@pytest.mark.parametrize("subject", Subject)
async def test_every_change_that_is_heard_of_makes_it_forget(
    source: Source, bounded: BoundedStaleness, subject: Subject
) -> None:
    feed = MemoryFeed()
    following = asyncio.create_task(bounded.follow(feed))
    await until(lambda: bool(feed.listening))
    await asyncio.sleep(0)
    await bounded.facts(A)
    feed.tell(StoreChange(subject, "x"))
    await until(lambda: bounded._known == {})
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    assert feed.listening == set()


class Broken:
    """A ledger whose changes fail."""

    async def change(self, work: object) -> None:
        raise StoreUnavailable("it may have been made")


class Working:
    async def change(self, work: object) -> str:
        return "done"


async def test_a_change_of_this_process_is_told_of_before_its_author_knows() -> None:
    told: list[str] = []
    assert await Telling(Working(), lambda: told.append("told")).change(work) == "done"  # type: ignore[arg-type]  # a stand-in
    assert told == ["told"]


async def test_a_change_that_may_or_may_not_have_been_made_is_told_of_too() -> None:
    told: list[str] = []
    with pytest.raises(StoreUnavailable):
        await Telling(Broken(), lambda: told.append("told")).change(work)  # type: ignore[arg-type]  # a stand-in
    assert told == ["told"]


async def work(tx: object) -> str:
    return "never run"

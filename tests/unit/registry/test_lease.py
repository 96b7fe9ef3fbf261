"""One replica at a time works: the one that holds the lease, and only while it holds it for sure (DESIGN 6)."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from registry.errors import StoreUnavailable
from registry.lease import Leadership
from registry.memory import MemoryStore
from registry.mirroring import MirrorLease, MirrorState, MirrorStatus, Order
from tests.waiting import until

TTL_S = 0.15
"""Renewed three times as often; long enough for a busy machine to keep it."""

UP = MirrorStatus("toy", MirrorState.UP)


class Leases:
    """`LeaseStore` on the twin, of which each hold is counted. Levers: see `before`, and `stuck` for one that hangs."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.holds: list[str] = []
        self.released: list[str] = []
        self.stuck = False
        self.before: Callable[[], None] = lambda: None
        """Called before each hold; what it raises comes through."""

    async def hold(self, holder: str, ttl_s: float, statuses: Sequence[MirrorStatus]) -> MirrorLease:
        self.holds.append(holder)
        self.before()
        if self.stuck:
            await asyncio.Event().wait()
        return await self.store.leases.hold(holder, ttl_s, statuses)

    async def release(self, holder: str) -> None:
        self.released.append(holder)
        await self.store.leases.release(holder)

    async def read(self) -> MirrorLease:
        return await self.store.leases.read()

    async def order(self, order: Order) -> None:
        await self.store.leases.order(order)

    def goes_to(self, holder: str) -> None:
        """Another has it from now on, for ever."""
        twin = self.store.leases
        twin.lease, twin.until = replace(twin.lease, holder=holder), datetime.max.replace(tzinfo=UTC)

    def is_free(self) -> None:
        """The other is gone."""
        self.store.leases.until = datetime.min.replace(tzinfo=UTC)


class Work:
    """Work without an end that takes a moment to stop."""

    def __init__(self, leases: Leases) -> None:
        self.leases = leases
        self.begun, self.ended = 0, 0
        self.held_until = datetime.min.replace(tzinfo=UTC)
        """The end of the lease when the work last stopped."""
        self.stopped_at = self.held_until

    @property
    def runs(self) -> bool:
        return self.begun > self.ended

    async def __call__(self) -> None:
        self.begun += 1
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.ended += 1
            self.held_until, self.stopped_at = self.leases.store.leases.until, datetime.now(UTC)


@dataclass
class Replica:
    """One process: its leadership, its work, the orders that it has obeyed."""

    leadership: Leadership
    work: Work
    obeyed: list[Order]
    statuses: list[MirrorStatus]
    task: "asyncio.Task[None] | None" = None

    async def stops(self) -> None:
        assert self.task is not None
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@pytest.fixture
def leases() -> Leases:
    return Leases(MemoryStore())


def replica(leases: Leases, name: str = "one", ttl_s: float = TTL_S) -> Replica:
    obeyed: list[Order] = []
    statuses = [UP]
    return Replica(
        Leadership(leases, name, lambda: statuses, obeyed.append, ttl_s=ttl_s), Work(leases), obeyed, statuses
    )


@contextlib.asynccontextmanager
async def running(*replicas: Replica) -> AsyncIterator[None]:
    for one in replicas:
        one.task = asyncio.ensure_future(one.leadership.run(one.work))
    try:
        yield
    finally:
        for one in replicas:
            await one.stops()


async def renewed(leases: Leases, times: int = 2) -> None:
    """Wait until the lease has been asked for so many times more, and what follows from the last is done."""
    wanted = len(leases.holds) + times
    await until(lambda: len(leases.holds) >= wanted)
    for _ in range(10):
        await asyncio.sleep(0)


# Who works


async def test_who_holds_the_lease_works_as_long_as_it_is_renewed(leases: Leases) -> None:
    one = replica(leases)
    assert not one.leadership.is_ours
    async with running(one):
        await renewed(leases, 8)  # well over its time, and the store's clock goes on meanwhile
        assert (one.work.begun, one.work.ended, one.leadership.is_ours) == (1, 0, True)
        assert one.leadership.lease == await leases.read()

    assert one.work.ended == 1


async def test_two_never_work_at_once_and_the_second_takes_over_when_the_first_ends(leases: Leases) -> None:
    one, two = replica(leases, "one"), replica(leases, "two")
    async with running(one):
        await until(lambda: one.work.runs)
        async with running(two):
            await renewed(leases, 8)
            assert (two.work.begun, two.leadership.is_ours, two.leadership.lease.holder) == (0, False, "one")
            await one.stops()
            await until(lambda: two.work.runs)
            assert (one.work.runs, two.leadership.is_ours) == (False, True)


async def test_at_the_end_the_work_stops_first_and_then_the_lease_is_given_up(leases: Leases) -> None:
    one = replica(leases)
    async with running(one):
        await until(lambda: one.work.runs)

    assert one.work.stopped_at < one.work.held_until
    assert ((await leases.read()).holder, leases.released) == ("", ["one"])


async def test_what_another_holds_is_not_given_up(leases: Leases) -> None:
    leases.goes_to("other")
    async with running(replica(leases)):
        await renewed(leases)

    assert (await leases.read()).holder == "other"


async def test_the_holder_tells_how_it_is_with_each_renewal(leases: Leases) -> None:
    one = replica(leases)
    async with running(one):
        await renewed(leases, 1)
        assert (await leases.read()).statuses == (UP,)
        one.statuses[:] = [replace(UP, objects=7)]
        await renewed(leases, 1)
        assert (await leases.read()).statuses == (replace(UP, objects=7),)


async def test_a_work_that_fails_is_not_hidden_and_the_lease_is_given_up(leases: Leases) -> None:
    async def failing() -> None:
        raise KeyError("a mistake")

    with pytest.raises(KeyError):
        await replica(leases).leadership.run(failing)
    assert (await leases.read()).holder == ""


# A lease that is lost


async def test_a_lease_that_went_to_another_ends_the_work_until_it_is_back(leases: Leases) -> None:
    one = replica(leases)
    with capture_logs() as logs:
        async with running(one):
            await until(lambda: one.work.runs)
            leases.goes_to("other")
            await leases.order(Order.REBUILD)
            await renewed(leases, 1)
            assert (one.work.ended, one.leadership.is_ours, one.obeyed) == (1, False, []), "not after its time alone"
            await renewed(leases, 3)
            assert (one.work.begun, one.leadership.is_ours) == (1, False)

            leases.is_free()
            await until(lambda: one.work.begun == 2)
            assert one.leadership.is_ours

    assert logs == [
        {"event": "lease.taken", "log_level": "info", "holder": "one"},
        {"event": "lease.lost", "log_level": "info", "holder": "one", "to": "other"},
        {"event": "lease.taken", "log_level": "info", "holder": "one"},
    ]


async def test_one_renewal_that_fails_does_not_end_the_work(leases: Leases) -> None:
    one, failures = replica(leases, ttl_s=0.6), [StoreUnavailable("busy")]

    def fails_once() -> None:
        if failures and one.work.runs:
            raise failures.pop()

    leases.before = fails_once
    async with running(one):
        await until(lambda: not failures)
        await renewed(leases, 3)
        assert (one.work.begun, one.work.ended, one.leadership.is_ours) == (1, 0, True)


async def test_a_renewal_that_hangs_ends_the_work_before_the_lease_ends(leases: Leases) -> None:
    one = replica(leases)
    async with running(one):
        await until(lambda: one.work.runs)
        leases.stuck = True
        await until(lambda: not one.work.runs)
        assert not one.leadership.is_ours

    assert one.work.stopped_at < one.work.held_until


async def test_renewals_that_fail_end_the_work_before_the_lease_ends(leases: Leases) -> None:
    one = replica(leases)
    async with running(one):
        await until(lambda: one.work.runs)
        leases.store.available = False
        await until(lambda: not one.work.runs)

    assert one.work.stopped_at < one.work.held_until


async def test_work_that_ended_for_want_of_the_store_is_begun_again(leases: Leases) -> None:
    one = replica(leases)
    async with running(one):
        await until(lambda: one.work.runs)
        leases.store.available = False
        await until(lambda: not one.work.runs)
        await renewed(leases, 2)
        assert (one.work.begun, one.leadership.is_ours) == (1, False)

        leases.store.available = True
        await until(lambda: one.work.begun == 2)


async def test_it_waits_for_a_store_that_is_not_there_and_may_end_without_it(leases: Leases) -> None:
    leases.store.available = False
    one = replica(leases)
    task = asyncio.ensure_future(one.leadership.run(one.work))
    await renewed(leases, 3)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert (one.work.begun, leases.released) == (0, ["one"])


@pytest.fixture
def slow_store(leases: Leases, monkeypatch: pytest.MonkeyPatch) -> None:
    """By this process's clock, which stands still otherwise, a renewal takes longer than the lease is used for."""
    now = 100.0

    def slowly() -> None:
        nonlocal now
        now += 0.9 * TTL_S

    monkeypatch.setattr("registry.lease.time", SimpleNamespace(monotonic=lambda: now))  # the loop's own clock goes on
    leases.before = slowly


@pytest.mark.usefixtures("slow_store")
async def test_a_lease_counts_from_when_it_was_asked_for(leases: Leases) -> None:
    one = replica(leases)
    async with running(one):
        await renewed(leases, 3)
        assert (one.leadership.is_ours, one.work.runs) == (False, False)


@pytest.mark.usefixtures("slow_store")
async def test_no_work_begins_under_a_lease_that_came_too_late(leases: Leases) -> None:
    one = replica(leases)
    async with running(one):
        await renewed(leases, 3)

    assert one.work.begun == 0


# Orders


async def test_an_order_is_obeyed_once(leases: Leases) -> None:
    one = replica(leases)
    async with running(one):
        await until(lambda: one.work.runs)
        await leases.order(Order.REBUILD)
        await until(lambda: bool(one.obeyed))
        await renewed(leases, 3)
        assert one.obeyed == [Order.REBUILD]

        await leases.order(Order.RECONCILE)
        await leases.order(Order.REBUILD)
        await until(lambda: len(one.obeyed) > 1)
        await renewed(leases, 3)
        assert sorted(one.obeyed[1:]) == [Order.REBUILD, Order.RECONCILE]


async def test_an_order_of_before_the_lease_was_ours_is_not_obeyed(leases: Leases) -> None:
    await leases.order(Order.REBUILD)
    one = replica(leases)
    async with running(one):
        await renewed(leases, 4)

    assert one.obeyed == []


async def test_an_order_that_is_given_while_a_renewal_fails_is_obeyed_with_the_next(leases: Leases) -> None:
    one, failures = replica(leases, ttl_s=0.6), [StoreUnavailable("busy")]
    async with running(one):
        await until(lambda: one.work.runs)
        await leases.order(Order.RECONCILE)

        def fails_once() -> None:
            if failures:
                raise failures.pop()

        leases.before = fails_once
        await until(lambda: bool(one.obeyed))

    assert (one.obeyed, failures, one.work.begun) == ([Order.RECONCILE], [], 1)


async def test_an_order_that_is_given_while_the_holder_cannot_renew_is_obeyed_when_it_can_again(leases: Leases) -> None:
    one, is_cut_off = replica(leases), False

    def cut_off() -> None:
        if is_cut_off:
            raise StoreUnavailable("for this replica alone")

    leases.before = cut_off
    async with running(one):
        await until(lambda: one.work.runs)
        is_cut_off = True
        await leases.order(Order.REBUILD)
        await until(lambda: not one.work.runs)
        is_cut_off = False
        await until(lambda: one.work.begun == 2)
        await renewed(leases, 2)

    assert one.obeyed == [Order.REBUILD]


async def test_a_kind_of_order_that_the_store_had_not_counted_yet_is_obeyed(leases: Leases) -> None:
    twin = leases.store.leases
    twin.lease = MirrorLease()
    one = replica(leases)
    async with running(one):
        await until(lambda: one.work.runs)
        twin.lease = replace(twin.lease, orders={Order.REBUILD: 1})
        await until(lambda: one.obeyed == [Order.REBUILD])


async def test_who_does_not_hold_the_lease_obeys_nothing(leases: Leases) -> None:
    one, two = replica(leases, "one"), replica(leases, "two")
    async with running(one, two):
        await until(lambda: one.work.runs)
        await leases.order(Order.REBUILD)
        await until(lambda: bool(one.obeyed))
        await renewed(leases, 4)

    assert (one.obeyed, two.obeyed) == ([Order.REBUILD], [])


async def test_the_clock_that_ends_a_lease_is_the_stores(leases: Leases) -> None:
    ahead = timedelta(hours=1)
    leases.store.clock = lambda: datetime.now(UTC) + ahead
    one = replica(leases)
    async with running(one):
        await renewed(leases, 6)
        assert (one.work.begun, one.work.runs) == (1, True)

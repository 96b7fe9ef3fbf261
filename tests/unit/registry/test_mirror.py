"""A copy is brought up to date and kept there, whatever happens meanwhile (DESIGN 6)."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable

import pytest
from structlog.testing import capture_logs

from registry.errors import IndexUnavailable, IndexUnusable
from registry.mirror import Mirror
from registry.mirroring import MirrorState, MirrorStatus
from tests.waiting import until

DOWN, UNUSABLE = IndexUnavailable("gone"), IndexUnusable("wrong key")
ALL = ["prepare", "ids", "sync a", "sync b"]
"""One comparison of everything."""


class Copy:
    """A `Target` of the servers a and b. It notes its calls, waits in the `held`, fails in the `failing` ones."""

    def __init__(self) -> None:
        self.servers = frozenset({"a", "b"})
        self.calls: list[str] = []
        self.failing: dict[str, Exception] = {}
        self.held: dict[str, asyncio.Event] = {}
        self.differ: dict[str, int] = {}
        self.on_call: Callable[[str], None] = lambda call: None
        self.missing, self.objects = 3, 5

    async def prepare(self) -> None:
        await self._called("prepare")

    async def server_ids(self) -> frozenset[str]:
        await self._called("ids")
        return self.servers

    async def sync(self, server_id: str) -> int:
        await self._called(f"sync {server_id}")
        return self.differ.get(server_id, 0)

    async def check(self) -> None:
        await self._called("check")

    async def clear(self) -> None:
        await self._called("clear")

    async def _called(self, call: str) -> None:
        self.calls.append(call)
        self.on_call(call)
        if call in self.held:
            await self.held[call].wait()
        if call in self.failing:
            raise self.failing[call]

    async def holds(self, call: str) -> asyncio.Event:
        """Wait until it is in this call; it stays there until the event is set."""
        await until(lambda: self.calls[-1:] == [call])
        return self.held[call]

    def hold(self, call: str) -> None:
        self.held[call] = asyncio.Event()


class Clock:
    """Seconds that go on when the test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def short_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("registry.mirror._FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr("registry.mirror._LONGEST_PAUSE_S", 0.002)


@pytest.fixture
def copy() -> Copy:
    return Copy()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def mirror(copy: Copy, clock: Clock) -> Mirror:
    return Mirror("toy", copy, clock=clock)


@contextlib.asynccontextmanager
async def running(mirror: Mirror) -> AsyncIterator[None]:
    task = asyncio.ensure_future(mirror.run())
    try:
        yield
    finally:
        assert not task.done(), "it runs until it is cancelled"
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def is_up(mirror: Mirror, copy: Copy) -> AsyncIterator[None]:
    """It has compared everything, and waits."""
    async with running(mirror):
        await up(mirror)
        copy.calls.clear()
        yield


async def up(mirror: Mirror) -> None:
    await until(lambda: mirror.status.state is MirrorState.UP)
    await settle()


async def settle() -> None:
    """Let every task that can run do so."""
    for _ in range(20):
        await asyncio.sleep(0)


# Coming up


async def test_before_it_runs_it_is_starting_and_takes_offers(mirror: Mirror, copy: Copy, clock: Clock) -> None:
    mirror.offer("a")
    mirror.reconcile()

    assert mirror.status == MirrorStatus("toy", MirrorState.STARTING, objects=5, pending=1, missing=3)
    assert copy.calls == []


async def test_it_comes_up_by_comparing_everything_and_no_more_than_once(mirror: Mirror, copy: Copy) -> None:
    copy.differ = {"a": 2, "b": 3}
    mirror.offer("a")  # the comparison finds it
    copy.hold("sync b")
    async with running(mirror):
        last = await copy.holds("sync b")
        early = mirror.status
        last.set()
        await up(mirror)

    assert (early.state, early.drift, early.reconciled_at) == (MirrorState.STARTING, 0, None)
    assert (copy.calls, mirror.status.drift, mirror.status.error) == (ALL, 5, None)
    assert mirror.status.reconciled_at is not None


async def test_with_no_servers_it_is_up_at_once_and_hears_of_the_first(mirror: Mirror, copy: Copy) -> None:
    copy.servers = frozenset()
    async with running(mirror):
        await up(mirror)
        mirror.offer("new")
        await until(lambda: copy.calls == ["prepare", "ids", "sync new"])


async def test_who_runs_it_again_has_everything_compared_first(mirror: Mirror, copy: Copy) -> None:
    with capture_logs() as logs:
        for _ in range(2):
            async with running(mirror):
                await until(lambda: copy.calls == ALL)
                await settle()
            copy.calls.clear()

    assert [line["event"] for line in logs] == ["mirror.up", "mirror.up"]


async def test_who_runs_it_again_has_no_copy_that_is_up_before_that(mirror: Mirror, copy: Copy) -> None:
    async with running(mirror):
        await up(mirror)
    copy.hold("prepare")
    async with running(mirror):
        await copy.holds("prepare")
        assert mirror.status.state is MirrorState.STARTING


# Turns


@pytest.mark.usefixtures("is_up")
async def test_an_offer_is_written_and_nothing_else_is(mirror: Mirror, copy: Copy) -> None:
    mirror.offer("b")
    assert copy.calls == [], "it must return at once"
    await settle()

    assert (copy.calls, mirror.status.pending) == (["sync b"], 0)


@pytest.mark.usefixtures("is_up")
async def test_offers_that_wait_melt_into_one_and_go_in_order(mirror: Mirror, copy: Copy) -> None:
    for server_id in ("c", "a", "b", "a", "c"):
        mirror.offer(server_id)
    assert mirror.status.pending == 3
    await settle()

    assert copy.calls == ["sync c", "sync a", "sync b"]


@pytest.mark.usefixtures("is_up")
async def test_what_is_offered_during_its_turn_gets_another(mirror: Mirror, copy: Copy) -> None:
    copy.hold("sync a")
    mirror.offer("a")
    turn = await copy.holds("sync a")
    mirror.offer("a")
    mirror.offer("b")
    turn.set()
    await settle()

    assert (copy.calls, mirror.status.pending) == (["sync a", "sync a", "sync b"], 0)


@pytest.mark.usefixtures("is_up")
async def test_the_lag_is_the_age_of_the_oldest_change_that_waits(mirror: Mirror, copy: Copy, clock: Clock) -> None:
    copy.hold("sync a")
    mirror.offer("a")
    turn = await copy.holds("sync a")
    for server_id in ("b", "c", "b"):
        mirror.offer(server_id)
        clock.now += 2
    assert (mirror.status.lag_s, mirror.status.pending) == (6.0, 3)

    turn.set()
    await settle()
    assert (mirror.status.lag_s, mirror.status.pending) == (0.0, 0)


@pytest.mark.usefixtures("is_up")
async def test_a_change_that_is_being_written_is_not_written_yet(mirror: Mirror, copy: Copy, clock: Clock) -> None:
    copy.hold("sync a")
    mirror.offer("a")
    await copy.holds("sync a")
    clock.now += 2

    assert (mirror.status.lag_s, mirror.status.pending) == (2.0, 1)


@pytest.mark.usefixtures("is_up")
async def test_the_last_lag_is_from_the_offer_to_the_end_of_its_turn(mirror: Mirror, copy: Copy, clock: Clock) -> None:
    copy.hold("sync a")
    mirror.offer("a")
    clock.now += 1.25
    turn = await copy.holds("sync a")
    clock.now += 2.5
    turn.set()
    await until(lambda: mirror.status.last_lag_s == 3.75)

    mirror.reconcile()  # its turns were not offered
    clock.now += 9
    await until(lambda: copy.calls[-4:] == ALL)
    await settle()
    assert mirror.status.last_lag_s == 3.75


# Comparing everything


@pytest.mark.usefixtures("is_up")
async def test_an_order_to_reconcile_compares_everything_once(mirror: Mirror, copy: Copy) -> None:
    copy.servers, copy.differ = frozenset("ac"), {"c": 4}
    mirror.reconcile()
    mirror.reconcile()
    assert copy.calls == [], "it must return at once"
    await settle()

    assert (copy.calls, mirror.status.drift) == (["prepare", "ids", "sync a", "sync c"], 4)


@pytest.mark.usefixtures("is_up")
async def test_an_order_to_rebuild_removes_everything_first_and_once(mirror: Mirror, copy: Copy) -> None:
    mirror.rebuild()
    mirror.offer("b")
    await settle()
    mirror.reconcile()
    await settle()

    assert copy.calls == ["prepare", "clear", "prepare", "ids", "sync b", "sync a", "sync b", *ALL]


@pytest.mark.usefixtures("is_up")
async def test_an_offer_goes_before_what_is_only_compared(mirror: Mirror, copy: Copy) -> None:
    copy.hold("sync a")
    mirror.reconcile()
    turn = await copy.holds("sync a")
    mirror.offer("c")
    turn.set()
    await settle()

    assert copy.calls == ["prepare", "ids", "sync a", "sync c", "sync b"]


@pytest.mark.usefixtures("is_up")
@pytest.mark.parametrize("call", ["prepare", "ids", "sync a", "sync b"])
async def test_an_offer_during_a_comparison_is_not_lost(mirror: Mirror, copy: Copy, call: str) -> None:
    copy.hold(call)
    mirror.reconcile()
    step = await copy.holds(call)
    mirror.offer("new")
    step.set()
    await settle()

    assert Counter(copy.calls) == Counter([*ALL, "sync new"])


@pytest.mark.usefixtures("is_up")
@pytest.mark.parametrize("call", ["ids", "sync a", "sync b"])
@pytest.mark.parametrize("during", ["turn", "comparison"])
async def test_an_order_during_a_turn_or_a_comparison_is_not_lost(
    mirror: Mirror, copy: Copy, call: str, during: str
) -> None:
    copy.hold(call)
    if during == "comparison" or call == "ids":
        mirror.reconcile()
    else:
        mirror.offer(call[-1])
    step = await copy.holds(call)
    mirror.rebuild()
    before = copy.calls.copy()
    step.set()
    await until(lambda: copy.calls[-6:] == ["prepare", "clear", *ALL])
    await settle()

    assert Counter(copy.calls) - Counter(before) <= Counter(["prepare", "clear", *ALL, "sync a", "sync b"])


async def test_everything_is_compared_again_when_its_time_has_come(copy: Copy) -> None:
    async with running(Mirror("toy", copy, reconcile_s=0.01)):
        await until(lambda: copy.calls == ALL * 3)


@pytest.mark.usefixtures("is_up")
async def test_a_comparison_that_is_due_comes_although_there_are_offers(
    mirror: Mirror, copy: Copy, clock: Clock
) -> None:
    clock.now += 59
    mirror.offer("a")
    await settle()
    assert copy.calls == ["sync a"]
    clock.now += 1
    mirror.offer("a")
    await until(lambda: copy.calls == ["sync a", "prepare", "ids", "sync a", "sync a", "sync b"])


@pytest.mark.usefixtures("is_up")
async def test_an_order_is_obeyed_although_there_is_always_an_offer(mirror: Mirror, copy: Copy) -> None:
    """Of a thousand turns, each with a change during it, the order is given in the first."""

    def offered(call: str) -> None:
        if call == "sync a" and len(copy.calls) < 1000:
            mirror.offer("a")

    copy.on_call = offered
    mirror.offer("a")
    await until(lambda: bool(copy.calls))
    mirror.reconcile()
    await until(lambda: "ids" in copy.calls)

    assert copy.calls.index("ids") < 1000


@pytest.mark.usefixtures("is_up")
async def test_a_comparison_that_is_due_comes_although_there_is_always_an_offer(
    mirror: Mirror, copy: Copy, clock: Clock
) -> None:
    def offered(call: str) -> None:
        clock.now += 1
        if call == "sync a" and len(copy.calls) < 1000:
            mirror.offer("a")

    copy.on_call = offered
    mirror.offer("a")
    await until(lambda: "ids" in copy.calls)

    assert copy.calls.index("ids") < 100


# Failures


@pytest.mark.usefixtures("is_up")
@pytest.mark.parametrize(
    ("failure", "state", "level"),
    [(DOWN, MirrorState.DOWN, "warning"), (UNUSABLE, MirrorState.UNUSABLE, "error")],
)
async def test_a_failure_is_told_tried_again_and_over_once_everything_is_compared(
    mirror: Mirror, copy: Copy, failure: Exception, state: MirrorState, level: str
) -> None:
    copy.failing = {"sync b": failure}
    with capture_logs() as logs:
        mirror.offer("b")
        await until(lambda: copy.calls.count("sync b") == 4)
        await until(lambda: mirror.status.state is state)
        told = mirror.status
        copy.failing = {}
        await up(mirror)

    assert (told.error, told.pending, told.is_current) == (str(failure), 1, False)
    assert copy.calls[:4] == ["sync b", "prepare", "ids", "sync b"], "what waits goes first"
    assert copy.calls[-4:] == ["ids", "sync b", "sync a", "sync b"]
    assert (mirror.status.error, mirror.status.pending) == (None, 0)
    assert [(line["event"], line["log_level"]) for line in logs] == [("mirror.failed", level), ("mirror.up", "info")]


@pytest.mark.parametrize("call", ["prepare", "ids", "sync a"])
async def test_it_comes_up_whatever_has_failed_at_first(mirror: Mirror, copy: Copy, call: str) -> None:
    copy.failing = {call: DOWN}
    async with running(mirror):
        await until(lambda: copy.calls.count(call) == 3)
        copy.failing = {}
        copy.calls.clear()
        await up(mirror)

    assert copy.calls[-4:] == ALL


async def test_each_change_of_state_is_logged_once(mirror: Mirror, copy: Copy) -> None:
    with capture_logs() as logs:
        async with running(mirror):
            for failure in (DOWN, UNUSABLE, DOWN):
                copy.failing = {"prepare": failure}
                copy.calls.clear()
                await until(lambda: len(copy.calls) > 3)
            copy.failing = {}
            await up(mirror)

    told = [(line["event"], line.get("state"), line.get("cause")) for line in logs]
    down, unusable = ("mirror.failed", "down", "gone"), ("mirror.failed", "unusable", "wrong key")
    assert told == [down, unusable, down, ("mirror.up", None, None)]


@pytest.mark.usefixtures("is_up")
async def test_a_change_whose_turn_fails_is_as_old_as_it_was(mirror: Mirror, copy: Copy, clock: Clock) -> None:
    copy.hold("sync a")
    copy.hold("prepare")
    copy.failing = {"sync a": DOWN}
    mirror.offer("a")
    turn = await copy.holds("sync a")
    clock.now += 5
    mirror.offer("a")
    turn.set()
    again = await copy.holds("prepare")
    clock.now += 2
    assert (mirror.status.lag_s, mirror.status.pending) == (7.0, 1)

    copy.failing = {}
    again.set()
    await up(mirror)
    assert (mirror.status.last_lag_s, mirror.status.pending) == (7.0, 0)


async def test_a_turn_that_is_cut_off_still_waits(mirror: Mirror, copy: Copy) -> None:
    async with running(mirror):
        await up(mirror)
        copy.hold("sync a")
        mirror.offer("a")
        await copy.holds("sync a")

    assert mirror.status.pending == 1


@pytest.mark.usefixtures("is_up")
@pytest.mark.parametrize("call", ["clear", "prepare", "ids"])
async def test_a_rebuild_that_fails_is_done_again(mirror: Mirror, copy: Copy, call: str) -> None:
    copy.failing = {call: DOWN}
    mirror.rebuild()
    await until(lambda: copy.calls.count(call) == 2)
    copy.failing = {}
    await up(mirror)
    await until(lambda: copy.calls[-4:] == ALL)

    assert "clear" in copy.calls


async def test_pauses_grow_and_begin_anew_after_it_has_been_up(
    mirror: Mirror, copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleep, pauses = asyncio.sleep, list[float]()

    async def noted(delay: float) -> None:
        pauses.append(delay)
        if len(pauses) in (7, 8):
            copy.failing = {} if len(pauses) == 7 else {"prepare": DOWN}
        await sleep(0)

    monkeypatch.undo()  # the pauses as they are
    monkeypatch.setattr("registry.mirror.random.uniform", lambda low, high: (low + high) / 2)
    monkeypatch.setattr("registry.mirror.asyncio.sleep", noted)
    copy.failing = {"prepare": DOWN}
    task = asyncio.ensure_future(mirror.run())
    while mirror.status.state is not MirrorState.UP:
        await sleep(0)
    copy.failing = {"sync a": DOWN}
    mirror.offer("a")
    while len(pauses) < 8:
        await sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 0.1]


# Glances


@pytest.mark.usefixtures("is_up")
async def test_an_outage_is_noticed_although_nothing_was_offered(
    mirror: Mirror, copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("registry.mirror._CHECK_S", 0.01)
    mirror.offer("a")  # so that the next wait is the shorter one
    await until(lambda: copy.calls.count("check") >= 2)
    assert (mirror.status.state, copy.calls.count("ids")) == (MirrorState.UP, 0)

    copy.failing["check"] = IndexUnavailable("gone")
    await until(lambda: mirror.status.state is MirrorState.DOWN)
    del copy.failing["check"]
    await until(lambda: mirror.status.state is MirrorState.UP)
    assert "ids" in copy.calls, "what was lost in the outage was not looked for"

"""Brings a copy of the tools up to date and keeps it there. Best effort, and never in a decision's way.

Source: DESIGN 6; WEAVIATE (a level-triggered mirror). A server that changed is *offered*; its turn compares what the
copy should hold with what it holds, and writes the few that differ. Offers of one server that wait melt into one, and
each turn looks at the newest state, so an old state never overwrites a new one.

States: STARTING -> UP -> DOWN | UNUSABLE -> UP. Whoever comes up has compared everything: what was lost in an outage
is found.

    offer(id) --> waiting --turn--> compared --differs--> written
                     ^______________________fails_______________|   (then everything is compared anew)
"""

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

import structlog

from registry.errors import IndexUnavailable, IndexUnusable
from registry.mirroring import MirrorState, MirrorStatus

log = structlog.get_logger(__name__)

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0

_CHECK_S = 5.0
"""After so long without a change the copy is looked at: an outage shall not be news only when the next change comes."""


class Target(Protocol):
    """A copy. Its methods raise IndexUnavailable and IndexUnusable."""

    @property
    def missing(self) -> int:
        """Tools that the copy has no object for, where it may make none."""
        ...

    @property
    def objects(self) -> int:
        """How many objects it holds of what should be there."""
        ...

    async def prepare(self) -> None:
        """Make sure that it can be written to, and forget what was known of it."""
        ...

    async def server_ids(self) -> frozenset[str]:
        """The servers that it holds, and those that it should hold."""
        ...

    async def sync(self, server_id: str) -> int:
        """Make it hold what it should of this server; returns how many objects differed."""
        ...

    async def check(self) -> None:
        """Return when it is there as it was left, for all that a glance can tell."""
        ...

    async def clear(self) -> None:
        """Remove everything, where that is ours to remove."""
        ...


class Mirror:
    """One copy and what waits to be written to it.

    Args:
        name: names it in logs and in the API.
        target: the copy.
        reconcile_s: after this time everything is compared again, changed or not.
        clock: seconds that never go back.
    """

    def __init__(
        self, name: str, target: Target, *, reconcile_s: float = 60.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._target = target
        self._reconcile_s = reconcile_s
        self._clock = clock
        self._offered: dict[str, float] = {}
        self._in_turn: dict[str, float] = {}
        self._wake = asyncio.Event()
        self._rebuild = False
        self._status = MirrorStatus(name, MirrorState.STARTING)
        self._is_due = True
        self._reconcile_at = 0.0

    @property
    def status(self) -> MirrorStatus:
        """As it is now."""
        waiting = {**self._offered, **self._in_turn}
        oldest = min(waiting.values(), default=None)
        return replace(
            self._status,
            pending=len(waiting),
            lag_s=0.0 if oldest is None else round(self._clock() - oldest, 3),
            objects=self._target.objects,
            missing=self._target.missing,
        )

    def offer(self, server_id: str) -> None:
        """This server may have changed. Returns at once and never raises."""
        self._offered.setdefault(server_id, self._clock())
        self._wake.set()

    def reconcile(self) -> None:
        """Compare everything soon. Returns at once and never raises."""
        self._is_due = True
        self._wake.set()

    def rebuild(self) -> None:
        """Remove everything and write it anew soon. Returns at once and never raises."""
        self._rebuild = True
        self.reconcile()

    async def run(self) -> None:
        """Mirror until cancelled. What was offered before is found by the comparison that comes first."""
        self._offered.clear()
        self._status = replace(self._status, state=MirrorState.STARTING)
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                await self._come_up()
                pause_s = _FIRST_PAUSE_S
                await self._serve()
            except IndexUnavailable as exc:
                self._failed(MirrorState.DOWN, exc)
            except IndexUnusable as exc:
                self._failed(MirrorState.UNUSABLE, exc)
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))  # noqa: S311  spreads load, hides nothing
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    async def _come_up(self) -> None:
        await self._target.prepare()
        await self._reconcile()
        log.info("mirror.up", mirror=self._status.name, drift=self._status.drift)
        self._status = replace(self._status, state=MirrorState.UP, error=None)

    def _failed(self, state: MirrorState, exc: Exception) -> None:
        """Once per change of state in the log, always in the status."""
        if self._status.state is not state:
            level = log.warning if state is MirrorState.DOWN else log.error
            level("mirror.failed", mirror=self._status.name, state=state.value, cause=str(exc))
        self._status = replace(self._status, state=state, error=str(exc))

    async def _serve(self) -> None:
        while True:
            if not self._is_due:
                await self._awake()
            if self._is_due or self._clock() >= self._reconcile_at:
                await self._target.prepare()
                await self._reconcile()
            await self._take_turns()

    async def _awake(self) -> None:
        left_s = self._reconcile_at - self._clock()
        try:
            async with asyncio.timeout(min(left_s, _CHECK_S)):
                await self._wake.wait()
        except TimeoutError:
            if left_s > _CHECK_S:
                await self._target.check()

    async def _reconcile(self) -> None:
        """Compare every server, orphans included; what is offered meanwhile goes first."""
        if self._rebuild:
            await self._target.clear()
            await self._target.prepare()
            self._rebuild = False
        self._is_due = False
        drift = 0
        for server_id in sorted(await self._target.server_ids()):
            await self._take_turns()
            drift += await self._turn(server_id)
        self._reconcile_at = self._clock() + self._reconcile_s
        self._status = replace(self._status, drift=drift, reconciled_at=datetime.now(UTC))

    async def _take_turns(self) -> None:
        self._wake.clear()
        for server_id in tuple(self._offered):  # what is offered meanwhile has set the wake again
            await self._turn(server_id)
            await asyncio.sleep(0)  # an index in this process never waits, and calls want to go on

    async def _turn(self, server_id: str) -> int:
        """One server. What is offered while it is written waits for another turn."""
        if server_id in self._offered:
            self._in_turn[server_id] = self._offered.pop(server_id)
        try:
            differed = await self._target.sync(server_id)
        except BaseException:
            self._offered |= self._in_turn  # older than an offer made meanwhile
            raise
        else:
            for offered_at in self._in_turn.values():
                self._status = replace(self._status, last_lag_s=round(self._clock() - offered_at, 3))
        finally:
            self._in_turn.clear()
        return differed

"""One replica at a time does a piece of work: the one that holds the lease.

Source: DESIGN 6. States: waiting -> holding (the work runs) -> waiting, when the lease went to another or could not be
kept.

Invariant: by this process's clock the work ends before the lease does, so that two replicas never work at once, as long
as the clocks of store and process run at the same speed.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Sequence

import structlog

from registry.errors import StoreUnavailable
from registry.mirroring import MirrorLease, MirrorStatus, Order
from registry.ports import LeaseStore

log = structlog.get_logger(__name__)

_MARGIN = 0.8
"""Of the lease's time that is used; the rest is for a work that takes a moment to end."""


class Leadership:
    """Runs a work while the lease is ours.

    Args:
        leases: where it is kept.
        holder: a name that no other process has.
        statuses: what to tell with each renewal.
        on_order: told of each order given since the lease is ours.
        ttl_s: how long it lasts unless it is renewed.
    """

    def __init__(
        self,
        leases: LeaseStore,
        holder: str,
        statuses: Callable[[], Sequence[MirrorStatus]],
        on_order: Callable[[Order], None],
        *,
        ttl_s: float = 3.0,
    ) -> None:
        self._leases = leases
        self._holder = holder
        self._statuses = statuses
        self._on_order = on_order
        self._ttl_s = ttl_s
        self._until = 0.0
        self.lease = MirrorLease()
        """As last seen."""

    @property
    def is_ours(self) -> bool:
        """True while the lease is ours for sure."""
        return self.lease.holder == self._holder and time.monotonic() < self._until

    @property
    def _left_s(self) -> float:
        return max(0.0, self._until - time.monotonic())

    async def run(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        """Run `work` whenever the lease is ours, until cancelled. `work` itself has no end."""
        try:
            while True:
                if await self._renewed():
                    await self._hold(work)
                await asyncio.sleep(self._ttl_s / 3)
        finally:
            with contextlib.suppress(StoreUnavailable):  # it ends by itself soon
                await self._leases.release(self._holder)

    async def _hold(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        log.info("lease.taken", holder=self._holder)
        working = asyncio.ensure_future(work())
        keeping = asyncio.ensure_future(self._keep())
        try:
            done, _ = await asyncio.wait((working, keeping), return_when=asyncio.FIRST_COMPLETED)
            for future in done:
                future.result()
        finally:
            for future in (working, keeping):
                future.cancel()
            await asyncio.gather(working, keeping, return_exceptions=True)
        log.info("lease.lost", holder=self._holder, to=self.lease.holder)

    async def _keep(self) -> None:
        """Returns when the lease is not ours any more, or not for sure."""
        while self.is_ours:
            await asyncio.sleep(min(self._ttl_s / 3, self._left_s))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._left_s):
                    await self._renewed()

    async def _renewed(self) -> bool:
        asked_at, last = time.monotonic(), self.lease
        try:
            self.lease = await self._leases.hold(self._holder, self._ttl_s, self._statuses())
        except StoreUnavailable:
            return False
        if self.lease.holder == self._holder:
            self._until = asked_at + self._ttl_s * _MARGIN
            self._obey(last)
        return self.is_ours  # not when the answer took as long as the lease lasts

    def _obey(self, last: MirrorLease) -> None:
        """What was ordered since the lease was last ours; what was ordered before is another holder's to do."""
        for order, count in self.lease.orders.items() if last.holder == self._holder else ():
            if count > last.orders.get(order, 0):
                self._on_order(order)

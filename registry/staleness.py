"""Facts that may be used again for a while.

Source: DESIGN 4, at `max_staleness_s` above 0. The age of facts counts from the moment at which their read began, since
what changed after it may be missing. Whoever hears of a change drops everything earlier than it: a change stream within
milliseconds, a change made by this process at once. The age alone holds when the stream is broken.

Invariant: no facts are given out whose read began `max_staleness_s` ago or more, nor any whose read began before the
newest change that was heard of.
"""

import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from registry.freshness import Dated
from registry.model import Asked, Facts
from registry.ports import ChangeFeed, Ledger, Transaction

T = TypeVar("T")

MOST_REMEMBERED = 10_000
"""Pairs of key and server. Strangers' keys are among them, so a flood of those must not fill the memory."""


class DatedSource(Protocol):
    """Where facts come from, and when they were read."""

    async def dated(self, asked: Asked) -> Dated:
        """Facts from a read that begins after this call. Raises StoreUnavailable."""
        ...


class BoundedStaleness:
    """Facts that are at most `max_staleness_s` old.

    Args:
        source: reads.
        max_staleness_s: above 0.
        clock: the one that `source` dates by, in seconds.
        on_use: told the age of facts that are used again, in seconds.
    """

    def __init__(
        self,
        source: DatedSource,
        max_staleness_s: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        on_use: Callable[[float], None] = lambda _age_s: None,
    ) -> None:
        self._source = source
        self._max_staleness_s = max_staleness_s
        self._clock = clock
        self._on_use = on_use
        self._known: dict[Asked, Dated] = {}
        self._forgotten = 0

    async def facts(self, asked: Asked) -> Facts:
        """As `freshness.FactSource.facts`."""
        known = self._known.get(asked)
        if known is not None and self._is_young(known):
            self._on_use(self._clock() - known.began)
            return known.facts
        forgotten = self._forgotten
        dated = await self._source.dated(asked)
        if forgotten == self._forgotten:  # else a change came in that the read may have missed
            self._remember(asked, dated)
        return dated.facts

    def forget(self) -> None:
        """Something has changed: whoever asks from now on has it read. Returns at once and never raises."""
        self._forgotten += 1
        self._known.clear()

    async def follow(self, feed: ChangeFeed) -> None:
        """Forget at every change, until cancelled."""
        async with contextlib.aclosing(feed.changes()) as changes:
            async for _ in changes:
                self.forget()

    def _remember(self, asked: Asked, dated: Dated) -> None:
        self._known.pop(asked, None)  # the oldest come first
        self._known[asked] = dated
        while self._has_excess():
            del self._known[next(iter(self._known))]

    def _has_excess(self) -> bool:
        oldest = next(iter(self._known.values()), None)
        return oldest is not None and (len(self._known) > MOST_REMEMBERED or not self._is_young(oldest))

    def _is_young(self, dated: Dated) -> bool:
        return self._clock() - dated.began < self._max_staleness_s


class Telling:
    """`registry.ports.Ledger` that tells of each change that may have been made, before its author hears of it."""

    def __init__(self, ledger: Ledger, tell: Callable[[], None]) -> None:
        self._ledger = ledger
        self._tell = tell

    async def change(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """As Ledger.change."""
        try:
            return await self._ledger.change(work)
        finally:
            self._tell()

"""Facts that are younger than the question.

Source: DESIGN 4, at `max_staleness_s` 0 (`registry.staleness` has it above 0). The read that answers a call began after
the call. Calls that come while a read is under way wait for the next one, and one read serves them all, so the cost per
call falls as load rises. A second read may start when the first is slow, so that one lost packet does not hold
everybody up.

States of a batch: gathering (calls join) -> reading (nobody joins) -> answered or failed.

Invariant: a batch that is reading never gains a call.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import structlog

from registry.errors import StoreUnavailable
from registry.model import Asked, Facts
from registry.ports import PolicyReader

log = structlog.get_logger(__name__)

_MAX_READS = 2
"""At once. More would help only a store that is overloaded already, and it the least."""


class FactSource(Protocol):
    """Where the facts of decisions come from."""

    async def facts(self, asked: Asked) -> Facts:
        """Facts that are young enough to decide on. Raises StoreUnavailable."""
        ...


@dataclass(frozen=True, slots=True)
class Dated:
    """Facts, and when their read began, in seconds of a clock that never goes back."""

    facts: Facts
    began: float


class _Batch:
    """Calls that one read answers. `began` is when it did; it means nothing before."""

    def __init__(self) -> None:
        self.asked: set[Asked] = set()
        self.began = 0.0
        self.answer: asyncio.Future[Mapping[Asked, Facts]] = asyncio.get_running_loop().create_future()
        self.answer.add_done_callback(asyncio.Future.exception)  # looked at, since every caller may have gone by then


class Freshness:
    """Asks the authority in batches.

    Args:
        reader: one consistent read.
        timeout_s: from the call to its answer; not knowing by then is a failure.
        second_read_after_s: a read that takes longer no longer keeps the next one from starting.
        clock: dates the reads, in seconds.
        on_read: told of each read that has answered: how many questions, and how long it took, in seconds.
    """

    def __init__(
        self,
        reader: PolicyReader,
        *,
        timeout_s: float = 2.0,
        second_read_after_s: float = 0.1,
        clock: Callable[[], float] = time.monotonic,
        on_read: Callable[[int, float], None] = lambda _questions, _took_s: None,
    ) -> None:
        self._reader = reader
        self._on_read = on_read
        self._clock = clock
        self._timeout_s = timeout_s
        self._second_read_after_s = second_read_after_s
        self._gathering: _Batch | None = None
        self._reads: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def facts(self, asked: Asked) -> Facts:
        """Facts from a read that begins after this call. Raises StoreUnavailable."""
        return (await self.dated(asked)).facts

    async def dated(self, asked: Asked) -> Dated:
        """The same, with the moment at which the read began."""
        batch = self._gathering = self._gathering or _Batch()
        batch.asked.add(asked)
        if not self._reads:
            self._begin()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._second_read_after_s, self._begin_second)
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await asyncio.shield(batch.answer)
                return Dated(answer[asked], batch.began)
        except TimeoutError as exc:
            raise StoreUnavailable("the store did not answer in time") from exc

    async def close(self) -> None:
        """End the reads that are under way; their callers get StoreUnavailable."""
        self._stop_timer()
        for read in self._reads:
            read.cancel()
        await asyncio.gather(*self._reads, return_exceptions=True)
        if self._gathering is not None:
            self._gathering.answer.set_exception(StoreUnavailable("shutting down"))
            self._gathering = None

    def _begin(self) -> None:
        batch, self._gathering = self._gathering, None
        self._stop_timer()
        if batch is not None:
            read = asyncio.get_running_loop().create_task(self._read(batch))
            self._reads.add(read)
            read.add_done_callback(self._ended)

    def _begin_second(self) -> None:
        self._timer = None
        if len(self._reads) < _MAX_READS:
            self._begin()

    def _ended(self, read: asyncio.Task[None]) -> None:
        self._reads.discard(read)
        if not read.cancelled():
            self._begin()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _read(self, batch: _Batch) -> None:
        """Supervises one read: whatever happens to it, its callers are told."""
        batch.began = self._clock()
        try:
            async with asyncio.timeout(self._timeout_s):
                batch.answer.set_result(await self._reader.read(frozenset(batch.asked)))
                self._on_read(len(batch.asked), self._clock() - batch.began)
        except StoreUnavailable as exc:
            batch.answer.set_exception(exc)
        except TimeoutError:
            batch.answer.set_exception(StoreUnavailable("the store did not answer in time"))
        except asyncio.CancelledError:
            batch.answer.set_exception(StoreUnavailable("shutting down"))
            raise
        except Exception:  # the supervisor of a background task
            log.exception("policy.read_failed")
            batch.answer.set_exception(StoreUnavailable("the policy could not be read"))

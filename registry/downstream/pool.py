"""Sessions with downstreams, kept while they are used. Each belongs to one caller with one set of credentials.

States of a slot: opening -> open (lent to any number of calls) -> idle -> closed; or broken, which is closed when the
last call has left it.

Invariant: a session is opened and closed by the one task that owns it, since the client library's scopes must be left
where they were entered.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import structlog

from registry.errors import DownstreamFailed

log = structlog.get_logger(__name__)

SessionT = TypeVar("SessionT")


@dataclass(frozen=True, slots=True)
class SessionKey:
    """Whose session with which server. `fields` are sent with every request; they are never shown."""

    server_id: str
    url: str
    caller: str
    fields: tuple[tuple[str, str], ...] = field(repr=False)


Opener = Callable[[SessionKey], AbstractAsyncContextManager[SessionT]]
"""Opens a session; leaving the context ends it. Raises DownstreamFailed."""


class _Slot(Generic[SessionT]):
    """One session and its owner."""

    def __init__(self) -> None:
        self.ready: asyncio.Future[SessionT] = asyncio.get_running_loop().create_future()
        self.ready.add_done_callback(_looked_at)
        self.ended = asyncio.Event()
        self.users = 0
        self.left_at = time.monotonic()
        self.timer: asyncio.TimerHandle | None = None
        self.owner: asyncio.Task[None] | None = None


def _looked_at(future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        future.exception()  # else asyncio complains when every caller has gone by then


class Pool(Generic[SessionT]):
    """Lends sessions.

    Args:
        opener: opens one.
        idle_s: after which an unused one is closed.
        most: sessions at once; beyond it the longest unused one is closed.
    """

    def __init__(self, opener: Opener[SessionT], *, idle_s: float, most: int) -> None:
        self._opener = opener
        self._idle_s = idle_s
        self._most = most
        self._slots: dict[SessionKey, _Slot[SessionT]] = {}
        self._owners: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """How many are open or being opened."""
        return len(self._slots)

    @contextlib.asynccontextmanager
    async def lent(self, key: SessionKey) -> AsyncIterator[SessionT]:
        """The session of this key, opened if it is not open. Raises DownstreamFailed."""
        slot = self._slots.get(key) or self._begin(key)
        slot.users += 1
        if slot.timer is not None:
            slot.timer.cancel()
        try:
            yield await asyncio.shield(slot.ready)
        finally:
            slot.users -= 1
            slot.left_at = time.monotonic()
            self._left(key, slot)

    def drop(self, key: SessionKey, session: SessionT) -> None:
        """This session is broken: the next call opens another. Those that still use it go on with it."""
        slot = self._slots.get(key)
        if slot is not None and slot.ready.done() and not slot.ready.exception() and slot.ready.result() is session:
            self._forget(key, slot)

    async def close(self) -> None:
        """End all of them."""
        for key, slot in list(self._slots.items()):
            self._forget(key, slot)
            slot.ended.set()
        for owner in self._owners:
            if not owner.done():
                await asyncio.wait((owner,))

    def _begin(self, key: SessionKey) -> _Slot[SessionT]:
        self._make_room()
        slot = self._slots[key] = _Slot[SessionT]()
        slot.owner = asyncio.create_task(self._own(key, slot))
        self._owners.add(slot.owner)
        slot.owner.add_done_callback(self._owners.discard)
        return slot

    def _make_room(self) -> None:
        unused = [(slot.left_at, key) for key, slot in self._slots.items() if slot.users == 0]
        if len(self._slots) >= self._most and unused:
            _, key = min(unused, key=lambda one: one[0])
            self._end(key, self._slots[key])

    async def _own(self, key: SessionKey, slot: _Slot[SessionT]) -> None:
        """The owner of one session, which also supervises it: what it raises is told to those who wait for it."""
        try:
            async with self._opener(key) as session:
                slot.ready.set_result(session)
                await slot.ended.wait()
        except DownstreamFailed as exc:
            log.info("session.failed", server_id=key.server_id, cause=str(exc))
            _tell(slot, exc)
        except Exception as exc:  # the supervisor of a background task
            log.exception("session.failed", server_id=key.server_id)
            _tell(slot, exc)
        finally:
            self._forget(key, slot)

    def _left(self, key: SessionKey, slot: _Slot[SessionT]) -> None:
        if slot.users:
            return
        if self._slots.get(key) is not slot:
            slot.ended.set()
        else:
            slot.timer = asyncio.get_running_loop().call_later(self._idle_s, self._end, key, slot)

    def _end(self, key: SessionKey, slot: _Slot[SessionT]) -> None:
        if not slot.users:
            self._forget(key, slot)
            slot.ended.set()

    def _forget(self, key: SessionKey, slot: _Slot[SessionT]) -> None:
        if slot.timer is not None:
            slot.timer.cancel()
        if self._slots.get(key) is slot:
            del self._slots[key]
        if not slot.users:
            slot.ended.set()


def _tell(slot: _Slot[Any], exc: Exception) -> None:
    if not slot.ready.done():
        slot.ready.set_exception(exc)

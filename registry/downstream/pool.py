"""Sessions with downstreams, kept while they are used. Each belongs to one caller with one set of credentials.

States of a slot: opening -> open, lent to any number of calls -> unused -> ended. A slot that failed or was dropped is
out of the pool, and ends when the last call has left it.

Invariant: a session is opened and ended by the one task that owns it, since the client library's scopes must be left
where they were entered.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import Context
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import structlog

from registry.errors import DownstreamFailed

log = structlog.get_logger(__name__)

SessionT = TypeVar("SessionT")

_FAREWELL_S = 5.0
"""For which the end of the process waits for sessions to end in order."""

_CLOSED = "the session with the downstream was closed"


@dataclass(frozen=True, slots=True)
class SessionKey:
    """Whose session with which server. `fields` are sent with every request; they are never shown."""

    server_id: str
    url: str
    caller: str
    fields: tuple[tuple[str, str], ...] = field(repr=False)


MOST_PER_CALLER = 32
"""Sessions of one caller: as many servers or credentials as an agent may work with at a time."""

Opener = Callable[[SessionKey], AbstractAsyncContextManager[SessionT]]
"""Opens a session; leaving the context ends it. Raises DownstreamFailed."""


class _Slot(Generic[SessionT]):
    """One session and who uses it. `opened` is set once there is a session or the `error` why not."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.end = asyncio.Event()
        self.session: SessionT | None = None
        self.error = DownstreamFailed(_CLOSED)
        self.users = 0
        self.timer: asyncio.TimerHandle | None = None


class Pool(Generic[SessionT]):
    """Lends sessions.

    Args:
        opener: opens one.
        idle_s: after which an unused one is ended.
        most: sessions at once; beyond it the longest unused one is ended, and none that is used.
    """

    def __init__(self, opener: Opener[SessionT], *, idle_s: float, most: int) -> None:
        self._opener = opener
        self._idle_s = idle_s
        self._most = most
        self._slots: dict[SessionKey, _Slot[SessionT]] = {}  # the longest unused first
        self._owners: dict[asyncio.Task[None], _Slot[SessionT]] = {}
        self._closed = False

    def __len__(self) -> int:
        """How many are open or being opened."""
        return len(self._slots)

    @contextlib.asynccontextmanager
    async def lent(self, key: SessionKey) -> AsyncIterator[SessionT]:
        """The session of this key, opened if there is none. Raises DownstreamFailed."""
        slot = self._slots.get(key) or self._begun(key)
        slot.users += 1
        if slot.timer is not None:
            slot.timer.cancel()
        try:
            await slot.opened.wait()
            if slot.session is None:
                raise DownstreamFailed(str(slot.error)) from slot.error
            yield slot.session
        finally:
            slot.users -= 1
            self._left(key, slot)

    def drop(self, key: SessionKey, session: SessionT) -> None:
        """The next call opens another one. Calls that are in this one go on in it."""
        slot = self._slots.get(key)
        if slot is not None and slot.session is session:
            self._forget(key, slot)

    async def close(self) -> None:
        """End all of them, used or not; no more are opened."""
        self._closed = True
        for owner, slot in self._owners.items():
            slot.end.set()
            if not slot.opened.is_set():
                owner.cancel()
        owners = tuple(self._owners)
        if owners:
            await asyncio.wait(owners, timeout=_FAREWELL_S)
        for owner in owners:
            owner.cancel()  # of no effect where it has ended
        await asyncio.gather(*owners, return_exceptions=True)

    def _begun(self, key: SessionKey) -> _Slot[SessionT]:
        if self._closed:
            raise DownstreamFailed(_CLOSED)
        slot = self._slots[key] = _Slot[SessionT]()
        # A context of its own: the session outlives the request that opens it, whose ids are not its.
        owner = asyncio.create_task(self._own(key, slot), context=Context())
        self._owners[owner] = slot
        owner.add_done_callback(self._owners.pop)
        self._trim(key.caller)
        return slot

    async def _own(self, key: SessionKey, slot: _Slot[SessionT]) -> None:
        """The owner of one session, and its supervisor: what goes wrong is told to those who wait for it."""
        try:
            async with self._opener(key) as slot.session:
                slot.opened.set()
                await slot.end.wait()
        except DownstreamFailed as exc:
            log.info("session.failed", server_id=key.server_id, cause=str(exc))
            slot.error = exc
        except Exception:  # the supervisor of a background task
            log.exception("session.failed", server_id=key.server_id)
            slot.error = DownstreamFailed("the session with the downstream failed")
        finally:
            self._forget(key, slot)
            slot.opened.set()

    def _left(self, key: SessionKey, slot: _Slot[SessionT]) -> None:
        if slot.users:
            return
        if self._slots.get(key) is not slot:
            slot.end.set()
            return
        self._slots[key] = self._slots.pop(key)
        slot.timer = asyncio.get_running_loop().call_later(self._idle_s, self._forget, key, slot)
        self._trim(key.caller)

    def _trim(self, caller: str) -> None:
        """End the longest unused of this caller's while it has too many, then of all: none crowds others out."""
        own = [key for key in self._slots if key.caller == caller]
        self._end_unused(own, len(own) - MOST_PER_CALLER)
        self._end_unused(list(self._slots), len(self._slots) - self._most)

    def _end_unused(self, keys: Sequence[SessionKey], many: int) -> None:
        # A slot that was begun just now has no user yet, and no timer.
        unused = [key for key in keys if not self._slots[key].users and self._slots[key].timer is not None]
        for key in unused[: max(0, many)]:
            self._forget(key, self._slots[key])

    def _forget(self, key: SessionKey, slot: _Slot[SessionT]) -> None:
        """Take it out of the pool; it ends once nobody is in it."""
        if slot.timer is not None:
            slot.timer.cancel()
        if self._slots.get(key) is slot:
            del self._slots[key]
        if not slot.users:
            slot.end.set()

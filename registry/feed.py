"""One change stream for everybody who wants to hear of changes.

Source: DESIGN 4: a stream of its own would cost each listener a connection and one of the driver's threads. Whoever
hears of a change reads the store again, so changes of one document that wait for a slow listener melt into one.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from registry.changes import EVERYTHING, StoreChange
from registry.ports import ChangeFeed


class SharedFeed:
    """`registry.ports.ChangeFeed` for any number of listeners, while `run` runs."""

    def __init__(self, feed: ChangeFeed) -> None:
        self._feed = feed
        self._inboxes: set[_Inbox] = set()

    async def run(self) -> None:
        """Hear, until cancelled."""
        async with contextlib.aclosing(self._feed.changes()) as changes:
            async for change in changes:
                for inbox in self._inboxes:
                    inbox.put(change)

    async def changes(self) -> AsyncGenerator[StoreChange, None]:
        """As ChangeFeed.changes."""
        inbox = _Inbox()
        self._inboxes.add(inbox)
        try:
            yield EVERYTHING
            while True:
                yield await inbox.take()
        finally:
            self._inboxes.remove(inbox)


class _Inbox:
    """What one listener has not taken yet, oldest first."""

    def __init__(self) -> None:
        self._waiting: dict[StoreChange, None] = {}
        self._arrived = asyncio.Event()

    def put(self, change: StoreChange) -> None:
        self._waiting.setdefault(change)
        self._arrived.set()

    async def take(self) -> StoreChange:
        while not self._waiting:
            self._arrived.clear()
            await self._arrived.wait()
        change = next(iter(self._waiting))
        del self._waiting[change]
        return change

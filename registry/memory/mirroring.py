"""What mirrors need, in memory: the change feed and the lease."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Protocol

from registry.changes import EVERYTHING, StoreChange
from registry.mirroring import MirrorLease, MirrorStatus, Order


class Store(Protocol):
    """What the twins here take from the whole store: its clock, and whether it is there."""

    clock: Callable[[], datetime]

    def check(self) -> None:
        """Raises StoreUnavailable."""
        ...


class MemoryFeed:
    """`ChangeFeed`. `lose` stands for a stream that has lost its place."""

    def __init__(self) -> None:
        self.listening: set[asyncio.Queue[StoreChange]] = set()

    def tell(self, change: StoreChange) -> None:
        """Everybody who listens hears of it."""
        for queue in self.listening:
            queue.put_nowait(change)

    def lose(self) -> None:
        """The stream loses its place."""
        self.tell(EVERYTHING)

    async def changes(self) -> AsyncGenerator[StoreChange, None]:
        """As ChangeFeed.changes."""
        queue: asyncio.Queue[StoreChange] = asyncio.Queue()
        self.listening.add(queue)
        try:
            yield EVERYTHING
            while True:
                yield await queue.get()
        finally:
            self.listening.discard(queue)


class MemoryLeases:
    """`LeaseStore`, by the store's clock."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.until = datetime.min.replace(tzinfo=UTC)
        self.lease = MirrorLease(orders=dict.fromkeys(Order, 0))

    async def hold(self, holder: str, ttl_s: float, statuses: Sequence[MirrorStatus]) -> MirrorLease:
        """As LeaseStore.hold."""
        self.store.check()
        now = self.store.clock()
        if self.lease.holder == holder or self.until <= now:
            self.lease = replace(self.lease, holder=holder, statuses=tuple(statuses))
            self.until = now + timedelta(seconds=ttl_s)
        return self.lease

    async def release(self, holder: str) -> None:
        """As LeaseStore.release."""
        self.store.check()
        if self.lease.holder == holder:
            self.until = datetime.min.replace(tzinfo=UTC)

    async def read(self) -> MirrorLease:
        """As LeaseStore.read."""
        self.store.check()
        return self.lease if self.until > self.store.clock() else replace(self.lease, holder="")

    async def order(self, order: Order) -> None:
        """As LeaseStore.order."""
        self.store.check()
        self.lease = replace(self.lease, orders={**self.lease.orders, order: self.lease.orders[order] + 1})

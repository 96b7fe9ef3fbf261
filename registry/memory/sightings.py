"""The in-memory twin of what was seen in passing lists."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Protocol

from registry.memory.state import State
from registry.sightings import Sighting


class Store(Protocol):
    """What the twin takes from the whole store: its clock, its servers, and whether it is there."""

    clock: Callable[[], datetime]
    state: State

    def check(self) -> None:
        """Raises StoreUnavailable."""
        ...


class MemorySightings:
    """`SightingStore`. What was seen of a server that is gone is gone, since no id comes again."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.kept: dict[str, dict[str, Sighting]] = {}

    async def of(self, server_id: str) -> Sequence[Sighting]:
        """As SightingStore.of."""
        self.store.check()
        return list(self.kept.get(server_id, {}).values()) if server_id in self.store.state.servers else []

    async def add(self, server_id: str, names: Collection[str]) -> None:
        """As SightingStore.add."""
        self.store.check()
        kept = self.kept.setdefault(server_id, {})
        for name in names:
            kept.setdefault(name, Sighting(name, self.store.clock()))

    async def drop(self, server_id: str, names: Collection[str]) -> None:
        """As SightingStore.drop."""
        self.store.check()
        for name in names:
            self.kept.get(server_id, {}).pop(name, None)

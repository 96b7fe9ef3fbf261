"""Where it is kept what was seen in passing lists."""

from collections.abc import Collection, Sequence
from typing import Protocol

from registry.sightings import Sighting


class SightingStore(Protocol):
    """Names of tools that were seen, by server. Every method raises StoreUnavailable."""

    async def of(self, server_id: str) -> Sequence[Sighting]:
        """Those of one server, in any order, at most `sightings.MOST_NAMES`; none once the server is removed."""
        ...

    async def add(self, server_id: str, names: Collection[str]) -> None:
        """Keep these names, one at least, seen now by the store's clock; one that is kept already stays as it is."""
        ...

    async def drop(self, server_id: str, names: Collection[str]) -> None:
        """Keep these names no longer; one that is not kept is passed over."""
        ...

"""Which tools pass by in lists that the registry's own snapshot does not have.

What is kept is said in `registry.sightings`. Best effort: a call never waits for it, and what is lost here comes again
with a later list.

States of a list's names: heard -> waiting -> compared with the snapshot, and the news stored. A set of names that was
heard lately is not looked at again.
"""

import asyncio
import itertools
import time
from collections.abc import Callable, Sequence

import structlog

from registry import access, sightings
from registry.callers import Caller
from registry.entries import Server
from registry.errors import StoreUnavailable
from registry.freshness import FactSource
from registry.ports import ServerStore, SightingStore
from registry.sightings import Sighting

log = structlog.get_logger(__name__)

_FORGET_S = 300.0
"""After which the same list is compared again: the snapshot may have changed, or the store may have been down."""

_MOST_HEARD = 64
"""Sets of names that are remembered of one server; pages and callers make several. Only their hashes are."""

_MOST_WAITING = 10_000
"""Names of one server that wait. A list that is larger is looked at in part."""


class Observed:
    """Hears of lists, keeps what is news, and shows it.

    Args:
        servers: has the snapshots.
        store: keeps what was seen.
        facts: decides who is shown it.
        pause_s: between two comparisons, so that a downstream whose lists always differ costs little.
        clock: in seconds, never goes back.
    """

    def __init__(
        self,
        servers: ServerStore,
        store: SightingStore,
        facts: FactSource,
        *,
        pause_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._servers = servers
        self._store = store
        self._facts = facts
        self._pause_s = pause_s
        self._clock = clock
        self._heard: dict[str, set[int]] = {}
        self._forget_at = clock() + _FORGET_S
        self._waiting: dict[str, set[str]] = {}
        self._wake = asyncio.Event()

    def listed(self, server_id: str, names: frozenset[str]) -> None:
        """A list with these names has passed. Returns at once and never raises."""
        if self._is_new(server_id, hash(names)):
            waiting = self._waiting.setdefault(server_id, set())
            waiting.update(itertools.islice(names, _MOST_WAITING - len(waiting)))
            self._wake.set()

    def _is_new(self, server_id: str, digest: int) -> bool:
        if self._clock() >= self._forget_at:
            self._heard.clear()
            self._forget_at = self._clock() + _FORGET_S
        heard = self._heard.setdefault(server_id, set())
        if digest in heard:
            return False
        if len(heard) >= _MOST_HEARD:
            heard.clear()
        heard.add(digest)
        return True

    async def run(self) -> None:
        """Compare what waits, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            waiting, self._waiting = self._waiting, {}
            for server_id, names in waiting.items():
                await self._compare(server_id, names)
            await asyncio.sleep(self._pause_s)

    async def _compare(self, server_id: str, names: set[str]) -> None:
        try:
            server = await self._servers.by_ref(server_id)
            if server is not None:  # one that is removed just now leaves names that nobody asks for: no id comes again
                await self._keep(server, names)
        except StoreUnavailable as exc:
            log.warning("observed.lost", server_id=server_id, cause=str(exc))
            self._heard.pop(server_id, None)  # the next list is news again

    async def _keep(self, server: Server, names: set[str]) -> None:
        news = sightings.news(names, await self._store.of(server.id), server.tool_names)
        if news.gone:
            await self._store.drop(server.id, news.gone)
        if news.added:
            await self._store.add(server.id, news.added)
            log.info("observed.added", server_id=server.id, tools=len(news.added))

    async def of(self, caller: Caller, server: Server) -> Sequence[Sighting] | None:
        """What was seen of a server and is not in its snapshot, by name; None for who may not switch its tools.

        A downstream may have shown such a name to few, so it is told to those alone who can act on it. Raises
        StoreUnavailable.
        """
        if not access.may_set_permissions(await self._facts.facts(caller.asks(server.id))):
            return None
        return sightings.unlisted(await self._store.of(server.id), server.tool_names)

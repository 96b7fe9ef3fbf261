"""The servers and their tools, kept in memory and close behind the store, for search. It decides nothing.

Source: DESIGN 6 (level-triggered: each wake-up reads the store again). Whoever offers a tool asks the authority about
it first; what comes from here is texts and schemas, and the flags that mirrors copy.

States: empty -> ready (everything was read once) -> following; a store that is down is asked again until it answers,
and what changed meanwhile is not forgotten.
"""

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Iterable

import structlog

from registry.changes import StoreChange, Subject
from registry.entries import Server, Tool
from registry.errors import StoreUnavailable
from registry.ports import ChangeFeed, ServerStore

log = structlog.get_logger(__name__)

_AT_ONCE = 25
"""Servers in one read: each can be a megabyte, and a read has a deadline."""

_PAUSE_S = 0.25
"""Before a store that is down is asked again."""

Listener = Callable[[str], None]
"""Told the id of a server that is not what it was, or is gone. Returns at once and never raises."""


class Catalogue:
    """All servers with their tools. Nothing is here before `run` runs."""

    def __init__(self, store: ServerStore, feed: ChangeFeed) -> None:
        self._store = store
        self._feed = feed
        self._servers: dict[str, Server] = {}
        self._tools: dict[str, dict[str, Tool]] = {}
        self._dirty: set[str] = set()
        self._all_dirty = False
        self._wake = asyncio.Event()
        self._listeners: list[Listener] = []
        self.ready = asyncio.Event()
        """Set once everything was read."""

    def listen(self, listener: Listener) -> None:
        """Tell `listener` of every server that changes from now on, those of the first read included."""
        self._listeners.append(listener)

    def server(self, server_id: str) -> Server | None:
        """One server as last read."""
        return self._servers.get(server_id)

    def tool(self, server_id: str, name: str) -> Tool | None:
        """One tool of the last snapshot, by its exact name."""
        return self._tools.get(server_id, {}).get(name)

    def ids(self) -> frozenset[str]:
        """The ids of all servers."""
        return frozenset(self._servers)

    async def run(self) -> None:
        """Follow the store until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._hear())
            group.create_task(self._follow())

    async def _hear(self) -> None:
        async with contextlib.aclosing(self._feed.changes()) as changes:
            async for change in changes:
                self._note(change)

    def _note(self, change: StoreChange) -> None:
        match change.subject:
            case Subject.SERVER:
                self._dirty.add(change.id)
            case Subject.EVERYTHING | Subject.SWITCH:
                self._all_dirty = True
            case _:
                return  # keys and entries decide what a caller may use, never what there is
        self._wake.set()

    async def _follow(self) -> None:
        while True:
            await self._wake.wait()
            try:
                await self._catch_up()
            except StoreUnavailable as exc:
                log.warning("catalogue.waiting", cause=str(exc))
                await asyncio.sleep(_PAUSE_S)

    async def _catch_up(self) -> None:
        if self._all_dirty:
            await self._list()
        if not self._dirty:
            self._wake.clear()
            self.ready.set()
            return
        some = set(itertools.islice(self._dirty, _AT_ONCE))
        self._dirty -= some
        try:
            self._take(some, await self._store.some(some))
        except BaseException:
            self._dirty |= some
            raise

    async def _list(self) -> None:
        self._all_dirty = False  # before the read: what is missed during it sets it again
        try:
            self._dirty |= await self._store.ids() | self._servers.keys()
        except BaseException:
            self._all_dirty = True
            raise

    def _take(self, asked: Iterable[str], found: Iterable[Server]) -> None:
        now = {server.id: server for server in found}
        for server_id in asked:
            if self._servers.get(server_id) != now.get(server_id):
                self._put(server_id, now.get(server_id))

    def _put(self, server_id: str, server: Server | None) -> None:
        if server is None:
            self._servers.pop(server_id, None)
            self._tools.pop(server_id, None)
        else:
            self._servers[server_id] = server
            self._tools[server_id] = {tool.name: tool for tool in server.tools}
        for listener in self._listeners:
            listener(server_id)

"""In-memory twins of every port, for tests and for nothing else.

They pass the contract suite that the real store passes. Levers for tests: `available` (False: every call raises
StoreUnavailable) and `reading` (cleared: policy reads wait for it).
"""

import asyncio
import itertools
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from registry.changes import StoreChange, Subject
from registry.entries import NewServer, Server, ServerEdit, Snapshot
from registry.errors import Conflict, NotFound, StoreUnavailable
from registry.memory.mirroring import MemoryFeed, MemoryLeases
from registry.memory.sightings import MemorySightings
from registry.memory.state import State
from registry.model import AccessEntry, ApiKey, Asked, Facts, Scope, ServerPolicy
from registry.ports import Transaction
from registry.rows import Activity

T = TypeVar("T")

_IDS = itertools.count(1)
"""Of servers: no id comes again."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


class MemoryStore:
    """Stands for the whole authority: it is its own reader, ledger and stores."""

    def __init__(self, clock: Callable[[], datetime] = _utc_now) -> None:
        self.available = True
        self.reading = asyncio.Event()
        self.reading.set()
        self.reads = 0
        self.clock = clock
        self.state = State()
        self.deployment_id = secrets.token_hex(6)
        self._lock = asyncio.Lock()
        self.servers = _Servers(self)
        self.access = _Access(self)
        self.keys = _Keys(self)
        self.activity = _ActivityLog(self)
        self.feed = MemoryFeed()
        self.leases = MemoryLeases(self)
        self.sightings = MemorySightings(self)
        self.policies = self
        self.ledger = self
        self.health = self

    async def prepare(self) -> None:
        """Nothing to prepare."""
        self.check()

    async def close(self) -> None:
        """Nothing to close."""

    def check(self) -> None:
        """Raises StoreUnavailable while `available` is False."""
        if not self.available:
            raise StoreUnavailable("the store is unavailable")

    async def ping(self) -> None:
        """As Health.ping."""
        self.check()

    async def read(self, asked: frozenset[Asked]) -> Mapping[Asked, Facts]:
        """As PolicyReader.read; the state is the one at the time the read begins."""
        self.reads += 1
        now, state = self.clock(), self.state
        await self.reading.wait()
        self.check()
        return {one: state.facts(one, now) for one in asked}

    async def change(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """As Ledger.change; changes run one after another, so none ever conflicts."""
        return await asyncio.shield(asyncio.ensure_future(self._change(work)))

    async def _change(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        async with self._lock:
            self.check()
            state = self.state.copied()
            result = await work(_Transaction(state, self.clock()))
            self.check()
            self._become(state)
            return result

    def write(self, server_id: str, **policy: Any) -> None:
        """Change policy fields as another program would: no revision, no activity row."""
        state = self.state.copied()
        server = state.servers[server_id]
        state.servers[server_id] = replace(server, policy=replace(server.policy, **policy))
        self._become(state)

    def _become(self, state: State) -> None:
        before, self.state = self.state, state
        for server_id in before.servers.keys() | state.servers.keys():
            if before.servers.get(server_id) is not state.servers.get(server_id):
                self.feed.tell(StoreChange(Subject.SERVER, server_id))


@dataclass(frozen=True, slots=True)
class _Transaction:
    state: State
    now: datetime

    async def facts(self, asked: Asked) -> Facts:
        return self.state.facts(asked, self.now)

    async def server(self, ref: str) -> Server | None:
        return self.state.server(ref)

    async def key(self, key_id: str) -> ApiKey | None:
        return self.state.keys.get(key_id)

    async def admin_keys(self) -> Sequence[ApiKey]:
        return [key for key in self.state.keys.values() if Scope.ADMIN in key.scopes]

    async def any_key(self) -> bool:
        return bool(self.state.keys)

    async def add_server(self, new: NewServer) -> Server:
        if self.state.server(new.path) is not None:
            raise Conflict(f"the path {new.path} is taken")
        if not new.allows_duplicate:
            self.state.check_url(new.url)
        server_id = f"{next(_IDS):024x}"
        policy = ServerPolicy(server_id, new.path, new.url, revision=1, credentials=new.credentials)
        server = Server(
            *(server_id, new.name, new.path, new.url, new.type.value, policy),
            title=new.title,
            description=new.description,
            tags=new.tags,
        )
        self.state.servers[server_id] = server
        return server

    async def add_entry(self, entry: AccessEntry) -> None:
        self.state.entries.append(entry)

    async def entries(self, server_id: str) -> Sequence[AccessEntry]:
        return [entry for entry in self.state.entries if entry.server_id == server_id]

    async def replace_entries(self, server_id: str, entries: Sequence[AccessEntry]) -> None:
        if server_id not in self.state.servers:
            raise NotFound("no such server")
        others = [entry for entry in self.state.entries if entry.server_id != server_id]
        self.state.entries[:] = [*others, *entries]

    async def remove_server(self, server_id: str) -> None:
        await self.replace_entries(server_id, ())
        del self.state.servers[server_id]

    async def add_key(self, key: ApiKey) -> None:
        if any(key.hash == stored.hash or key.id == stored.id for stored in self.state.keys.values()):
            raise Conflict("that key is there already")
        self.state.keys[key.id] = key

    async def save_key(self, key: ApiKey) -> None:
        self.state.keys[key.id] = key

    async def record(self, row: Activity) -> None:
        self.state.activity.append(row)

    async def save_policy(
        self,
        server_id: str,
        *,
        disabled_tools: frozenset[str],
        retired_disabled_tools: frozenset[str],
        read_only_tools: frozenset[str],
    ) -> Server:
        server = self.state.servers[server_id]
        policy = replace(
            server.policy,
            disabled_tools=disabled_tools,
            retired_disabled_tools=retired_disabled_tools,
            read_only_tools=read_only_tools,
            revision=server.policy.revision + 1,
        )
        return self._saved(replace(server, policy=policy))

    async def save_edit(self, server_id: str, edit: ServerEdit) -> Server:
        server = self.state.servers[server_id]
        holder = self.state.server(edit.path)
        if holder is not None and holder.id != server_id:
            raise Conflict(f"the path {edit.path} is taken")
        if edit.url is not None:
            self.state.check_url(edit.url, server_id)
        given = edit.given()
        if edit.passing is not None:
            given["passing"] = replace(server.policy.passing, **edit.passing)
        of_policy = {name: value for name, value in given.items() if name not in ("title", "description", "tags")}
        of_server = {name: value for name, value in given.items() if name not in of_policy or name in ("url", "path")}
        policy = replace(server.policy, **of_policy, revision=server.policy.revision + bool(of_policy))
        return self._saved(replace(server, **of_server, policy=policy))

    async def save_snapshot(self, server_id: str, snapshot: Snapshot) -> Server:
        server = self.state.servers[server_id]
        declared = frozenset(tool.name for tool in snapshot.tools if tool.declares_read_only)
        return self._saved(
            replace(
                server,
                policy=replace(server.policy, declared_read_only=declared),
                tools=snapshot.tools,
                capabilities=snapshot.capabilities,
                snapshot_good=True,
                refreshed_at=self.now,
                refresh_error=None,
            )
        )

    async def save_refresh_error(self, server_id: str, error: str) -> Server:
        server = self.state.servers[server_id]
        return self._saved(replace(server, snapshot_good=False, refresh_error=error))

    def _saved(self, server: Server) -> Server:
        self.state.servers[server.id] = server
        return server


@dataclass(frozen=True, slots=True)
class _Servers:
    store: MemoryStore

    async def by_ref(self, ref: str) -> Server | None:
        self.store.check()
        return self.store.state.server(ref)

    async def all(self) -> Sequence[Server]:
        self.store.check()
        return sorted(self.store.state.servers.values(), key=lambda server: server.path)

    async def ids(self) -> frozenset[str]:
        self.store.check()
        return frozenset(self.store.state.servers)

    async def some(self, ids: Collection[str]) -> Sequence[Server]:
        self.store.check()
        return [server for one in ids if (server := self.store.state.servers.get(one)) is not None]


@dataclass(frozen=True, slots=True)
class _Access:
    store: MemoryStore

    async def entries(self, server_id: str) -> Sequence[AccessEntry]:
        self.store.check()
        return [entry for entry in self.store.state.entries if entry.server_id == server_id]


@dataclass(frozen=True, slots=True)
class _Keys:
    store: MemoryStore

    async def all(self) -> Sequence[ApiKey]:
        self.store.check()
        return sorted(self.store.state.keys.values(), key=lambda key: key.created_at)


@dataclass(frozen=True, slots=True)
class _ActivityLog:
    store: MemoryStore

    async def newest(self, limit: int) -> Sequence[Activity]:
        self.store.check()
        return list(reversed(self.store.state.activity))[:limit]

"""The whole control plane on in-memory twins, for the tests of its use cases and of the API."""

import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import UTC, datetime

from config.background import running
from registry.activity import ActivityLog
from registry.callers import Caller
from registry.catalogue import Catalogue
from registry.credentials import key_hash, new_key
from registry.discovery import Discovery, Indexes
from registry.editing import Editor
from registry.embeddings import NoVectors
from registry.entries import NewServer, Server, ServerType, Snapshot, Tool
from registry.errors import DownstreamFailed
from registry.freshness import Freshness
from registry.keys import Keys
from registry.localindex import LocalIndex
from registry.memory import MemoryStore
from registry.mirror import Mirror
from registry.mirroring import MirrorState
from registry.mirrors import Mirrors
from registry.model import OWNER, AccessEntry, ApiKey, Asked, Facts, Permission, PrincipalType, Scope, ServerPolicy
from registry.observed import Observed
from registry.permissions import Permissions
from registry.ports import PolicyReader, Transaction
from registry.refresh import Refresher
from registry.rows import Activity
from registry.servers import Servers
from registry.targets import IndexTarget
from registry.terms import Terms
from registry.tools import Tools
from registry.vectors import Vectors
from tests.waiting import until

CREATED = datetime(2026, 1, 1, tzinfo=UTC)


class CatalogueTwin:
    """`CatalogueSource` in memory: lists the tools it was given, or fails with the sentence it was given."""

    def __init__(self) -> None:
        self.tools: tuple[Tool, ...] = ()
        self.failure: str | None = None
        self.asked: list[str] = []

    def lists(self, *names: str) -> None:
        """From now on these are the tools."""
        self.tools, self.failure = tuple(map(Tool, names)), None

    async def snapshot(self, policy: ServerPolicy) -> Snapshot:
        """What it was given."""
        self.asked.append(policy.url)
        if self.failure is not None:
            raise DownstreamFailed(self.failure)
        return Snapshot(self.tools, {"tools": {}})


class CountedReads:
    """`PolicyReader` that counts the reads of another."""

    def __init__(self, reader: PolicyReader) -> None:
        self.count = 0
        self.reader = reader

    async def read(self, asked: frozenset[Asked]) -> Mapping[Asked, Facts]:
        """As the other reads."""
        self.count += 1
        return await self.reader.read(asked)


class ControlPlane:
    """Every use case on one store."""

    def __init__(self, terms: Terms | None = None) -> None:
        terms = Terms() if terms is None else terms
        self.store = MemoryStore()
        self.source = CatalogueTwin()
        self.reads = CountedReads(self.store.policies)
        self.freshness = freshness = Freshness(self.reads)
        self.refresher = Refresher(self.store.ledger, self.source, self.store.servers)
        self.servers = Servers(self.store.ledger, self.store.servers, freshness, self.refresher, terms)
        self.editor = Editor(self.store.ledger, freshness, self.refresher, terms)
        self.tools = Tools(self.store.ledger)
        self.permissions = Permissions(self.store.ledger, self.store.access, freshness)
        self.keys = Keys(self.store.ledger, self.store.keys, freshness)
        self.activity = ActivityLog(self.store.activity, freshness)
        self.catalogue = Catalogue(self.store.servers, self.store.feed)
        self.vectors = Vectors(lambda: None, NoVectors())
        self.index = LocalIndex()
        self.indexing = Mirror("local", target := IndexTarget(self.index, self.catalogue, self.vectors))
        self.catalogue.listen(self.indexing.offer)
        target.on_vectors = self.indexing.offer
        self.discovery = Discovery(Indexes(self.index), self.catalogue, self.vectors, freshness)
        self.mirrors = Mirrors(freshness, self.indexing, None, None)
        self.observed = Observed(self.store.servers, self.store.sightings, freshness)

    @contextlib.asynccontextmanager
    async def indexed(self) -> AsyncIterator[None]:
        """While the context is open the index follows the store; it begins when all is indexed."""
        async with running(
            {"catalogue": self.catalogue.run, "vectors": self.vectors.run, "local index": self.indexing.run}
        ):
            await until(lambda: self.indexing.status.state is MirrorState.UP and not self.indexing.status.pending)
            yield

    async def key(self, user: str, *scopes: Scope) -> str:
        """Store a key that acts for `user`; returns its text."""
        secret = new_key()
        key = ApiKey(
            id=f"key-{user}-{'-'.join(scopes)}",
            hash=key_hash(secret),
            name=f"{user}'s",
            user=user,
            groups=frozenset(),
            roles=frozenset(),
            scopes=frozenset(scopes),
            enabled=True,
            created_at=CREATED,
            created_by="admin",
        )

        async def work(tx: Transaction) -> None:
            await tx.add_key(key)

        await self.store.ledger.change(work)
        return secret

    async def caller(self, user: str, *scopes: Scope) -> Caller:
        """As `key`, ready for a use case."""
        return caller_of(await self.key(user, *scopes))

    async def server(self, path: str = "/demo", *, tools: Iterable[str] | None = (), owner: str = "ann") -> Server:
        """Store a server that `owner` owns; `tools` None: never refreshed."""

        async def work(tx: Transaction) -> Server:
            url = f"http://127.0.0.1:9{path}"
            server = await tx.add_server(
                NewServer(path.strip("/"), path, url, ServerType.STREAMABLE_HTTP, "Demo", "A demo.")
            )
            await tx.add_entry(AccessEntry(server.id, PrincipalType.USER, owner, OWNER))
            if tools is None:
                return server
            return await tx.save_snapshot(server.id, Snapshot(tuple(map(Tool, tools))))

        return await self.store.ledger.change(work)

    async def share(self, server: Server, user: str, permissions: Permission) -> None:
        """Give a user these bits."""

        async def work(tx: Transaction) -> None:
            await tx.add_entry(AccessEntry(server.id, PrincipalType.USER, user, permissions))

        await self.store.ledger.change(work)

    async def now(self, server: Server) -> Server:
        """The server as it is stored now."""
        found = await self.store.servers.by_ref(server.id)
        assert found is not None
        return found

    async def rows(self) -> list[Activity]:
        """All activity, oldest first."""
        return list(reversed(await self.store.activity.newest(1000)))


def caller_of(secret: str | None, request_id: str = "r1") -> Caller:
    """Who presents this key."""
    return Caller(None if secret is None else key_hash(secret), request_id)

"""Reads for people: servers, keys, activity, and whether the store is there at all."""

from collections.abc import Collection, Sequence

from registry.entries import Server
from registry.model import AccessEntry, ApiKey
from registry.mongo import documents, records
from registry.mongo.client import Connection
from registry.mongo.documents import any_id
from registry.mongo.entries import entries_of
from registry.mongo.transaction import find_server
from registry.rows import Activity


class MongoServers:
    """`registry.ports.ServerStore`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def by_ref(self, ref: str) -> Server | None:
        """As ServerStore.by_ref."""
        async with self._connection.bounded():
            return await find_server(self._connection, ref)

    async def all(self) -> Sequence[Server]:
        """As ServerStore.all."""
        async with self._connection.bounded():
            docs = await self._connection.db.mcpservers.find().sort("path", 1).to_list(None)
        shared = documents.shared_paths(docs)
        return [documents.server(doc, shared) for doc in docs]

    async def ids(self) -> frozenset[str]:
        """As ServerStore.ids."""
        async with self._connection.bounded():
            docs = await self._connection.db.mcpservers.find({}, {"_id": 1}).to_list(None)
        return frozenset(str(doc["_id"]) for doc in docs)

    async def some(self, ids: Collection[str]) -> Sequence[Server]:
        """As ServerStore.some."""
        stored = self._connection.db.mcpservers
        async with self._connection.bounded():
            docs = await stored.find({"_id": {"$in": [form for one in ids for form in any_id(one)]}}).to_list(None)
            paths = [path for doc in docs if isinstance(path := doc.get("path"), str)]
            same_paths = await stored.find({"path": {"$in": paths}}, {"path": 1}).to_list(None)
        shared = documents.shared_paths(same_paths)
        return [documents.server(doc, shared) for doc in docs]


class MongoAccess:
    """`registry.ports.AccessStore`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def entries(self, server_id: str) -> Sequence[AccessEntry]:
        """As AccessStore.entries."""
        async with self._connection.bounded():
            return await entries_of(self._connection, server_id)


class MongoKeys:
    """`registry.ports.KeyStore`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def all(self) -> Sequence[ApiKey]:
        """As KeyStore.all."""
        async with self._connection.bounded():
            docs = await self._connection.db.apikeys.find().sort("createdAt", 1).to_list(None)
        return [key for doc in docs if (key := records.api_key(doc)) is not None]


class MongoActivity:
    """`registry.ports.ActivityStore`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def newest(self, limit: int) -> Sequence[Activity]:
        """As ActivityStore.newest."""
        async with self._connection.bounded():
            newest_first = self._connection.db.activity.find().sort([("at", -1), ("_id", -1)])
            return [records.activity(doc) for doc in await newest_first.limit(limit).to_list(limit)]


class MongoHealth:
    """`registry.ports.Health`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def ping(self) -> None:
        """As Health.ping."""
        async with self._connection.bounded():
            await self._connection.client.admin.command("ping")

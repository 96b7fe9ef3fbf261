"""What was seen in passing lists: a document for each server and name, so that replicas never overwrite each other."""

from collections.abc import Collection, Sequence
from datetime import datetime

from motor.motor_asyncio import AsyncIOMotorClientSession
from pymongo import UpdateOne

from registry.mongo.client import Connection, as_utc
from registry.sightings import MOST_NAMES, Sighting


class MongoSightings:
    """`registry.ports.SightingStore`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def of(self, server_id: str) -> Sequence[Sighting]:
        """As SightingStore.of. Two replicas may have stored more than there may be; the rest is not looked at."""
        async with self._connection.bounded():
            found = self._connection.db.observed.find({"serverId": server_id}).limit(MOST_NAMES)
            docs = await found.to_list(None)
        return [Sighting(doc["name"], as_utc(doc["firstSeenAt"])) for doc in docs]

    async def add(self, server_id: str, names: Collection[str]) -> None:
        """As SightingStore.add."""
        async with self._connection.bounded():
            now = await self._connection.now()
            writes = [_kept(server_id, name, now) for name in names]
            await self._connection.db.observed.bulk_write(writes, ordered=False)

    async def drop(self, server_id: str, names: Collection[str]) -> None:
        """As SightingStore.drop."""
        async with self._connection.bounded():
            ids = [_id(server_id, name) for name in names]
            await self._connection.db.observed.delete_many({"_id": {"$in": ids}})


def _kept(server_id: str, name: str, now: datetime) -> UpdateOne:
    first = {"serverId": server_id, "name": name, "firstSeenAt": now}
    return UpdateOne({"_id": _id(server_id, name)}, {"$setOnInsert": first}, upsert=True)


def _id(server_id: str, name: str) -> str:
    return f"{server_id}/{name}"


async def remove_sightings(connection: Connection, server_id: str, session: AsyncIOMotorClientSession) -> None:
    """Remove all of a server that is no more."""
    await connection.db.observed.delete_many({"serverId": server_id}, session=session)

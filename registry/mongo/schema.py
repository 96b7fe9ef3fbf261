"""Collections and indexes.

Source: DESIGN 5. Ours get their indexes. `mcpservers` and `aclentries` may be those of an existing registry: there we
create indexes only when we create the collection, otherwise we look and warn. MongoDB must be a replica set, since
transactions and change streams need one.
"""

from collections.abc import Sequence

import structlog

from registry.errors import StoreUnavailable, StoreUnusable
from registry.mongo.client import Connection

log = structlog.get_logger(__name__)

Keys = Sequence[tuple[str, int]]

_OURS: Sequence[tuple[str, Keys, bool]] = (
    ("apikeys", [("hash", 1)], True),
    ("apikeys", [("createdAt", 1)], False),
    ("activity", [("at", -1), ("_id", -1)], False),
)
_SHARED: Sequence[tuple[str, Keys]] = (
    ("mcpservers", [("path", 1)]),
    ("aclentries", [("resourceId", 1), ("principalType", 1), ("principalId", 1)]),
)
_ALL = ("apikeys", "activity", "reservations", "mcpservers", "aclentries")


async def prepare(connection: Connection) -> None:
    """Check the store and create what is missing.

    Raises:
        StoreUnusable: it cannot be reached, refuses us, or is no replica set.
    """
    try:
        async with connection.bounded():
            hello = await connection.client.admin.command("hello")
    except StoreUnavailable as exc:
        raise StoreUnusable(
            "MongoDB cannot be reached or refuses us; check SLUICEGATE_MONGODB_URL and that it is running."
        ) from exc
    if "setName" not in hello:
        raise StoreUnusable(
            "MongoDB must be a replica set (one node will do): start it with --replSet and run rs.initiate() once."
        )
    async with connection.bounded():
        existing = set(await connection.db.list_collection_names())
        for name in _ALL:
            if name not in existing:
                await connection.db.create_collection(name)
        for name, keys, unique in _OURS:
            await connection.db[name].create_index(keys, unique=unique)
        for name, keys in _SHARED:
            await _shared_index(connection, name, keys, is_new=name not in existing)


async def _shared_index(connection: Connection, name: str, keys: Keys, *, is_new: bool) -> None:
    if is_new:
        await connection.db[name].create_index(keys)
        return
    indexes = await connection.db[name].index_information()
    if not any(index["key"][0][0] == keys[0][0] for index in indexes.values()):
        log.warning("store.index_missing", collection=name, field=keys[0][0])

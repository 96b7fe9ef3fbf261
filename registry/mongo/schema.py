"""Collections and indexes.

Source: DESIGN 5. Ours get their indexes. `mcpservers` and `aclentries` may be those of an existing registry: there we
create indexes only when we create the collection, otherwise we look and warn. MongoDB must be a replica set, since
transactions and change streams need one.
"""

from collections.abc import Sequence

import structlog
from pymongo.errors import OperationFailure

from registry.errors import StoreUnavailable, StoreUnusable
from registry.mongo.client import Connection

log = structlog.get_logger(__name__)

Keys = Sequence[tuple[str, int]]

_OURS: Sequence[tuple[str, Keys, bool]] = (
    ("apikeys", [("hash", 1)], True),
    ("apikeys", [("createdAt", 1)], False),
    ("activity", [("at", -1), ("_id", -1)], False),
    ("observed", [("serverId", 1)], False),
)
_SHARED: Sequence[tuple[str, Keys]] = (
    ("mcpservers", [("path", 1)]),
    ("aclentries", [("resourceId", 1), ("principalId", 1)]),
)

_UNREACHABLE = "MongoDB cannot be reached; check SLUICEGATE_MONGODB_URL, and that it is running."
_REFUSED = "MongoDB refuses us; check user and password in SLUICEGATE_MONGODB_URL, and give it the role readWrite."


async def prepare(connection: Connection) -> None:
    """Check the store and create what is missing.

    Raises:
        StoreUnusable: it cannot be reached, refuses us, or is no replica set.
    """
    try:
        async with connection.bounded():
            await _prepare(connection)
    except StoreUnavailable as exc:
        raise StoreUnusable(_REFUSED if isinstance(exc.__cause__, OperationFailure) else _UNREACHABLE) from exc


async def _prepare(connection: Connection) -> None:
    if "setName" not in await connection.client.admin.command("hello"):
        raise StoreUnusable(
            "MongoDB must be a replica set (one node will do): start it with --replSet and run rs.initiate() once."
        )
    existing = set(await connection.db.list_collection_names())
    for name, keys, unique in _OURS:
        await connection.db[name].create_index(keys, unique=unique)
    for name, keys in _SHARED:
        if name in existing:
            await _check_index(connection, name, keys)
        else:
            await connection.db[name].create_index(keys)  # creates the collection with it


async def _check_index(connection: Connection, name: str, keys: Keys) -> None:
    indexes = await connection.db[name].index_information()
    if not any(index["key"][0][0] == keys[0][0] for index in indexes.values()):
        log.warning("store.index_missing", collection=name, field=keys[0][0])

"""Access entries of one server, found and replaced.

Source: DESIGN 5 (`aclentries`). The collection is shared with other programs and other kinds of resources: what is not
a readable entry of a server is left as it is, and so is a document whose entry stays.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from motor.motor_asyncio import AsyncIOMotorClientSession

from registry.model import AccessEntry
from registry.mongo import records
from registry.mongo.client import Connection
from registry.mongo.documents import RESOURCE_TYPE, any_id


async def entries_of(
    connection: Connection, server_id: str, session: AsyncIOMotorClientSession | None = None
) -> Sequence[AccessEntry]:
    """All that can be read."""
    return [entry for _, entry in await _stored(connection, server_id, session)]


async def replace_entries(
    connection: Connection, server_id: str, wanted: Iterable[AccessEntry], session: AsyncIOMotorClientSession
) -> None:
    """Remove those that are not wanted, and store those that are not there."""
    missing = list(wanted)
    gone: list[Any] = []
    for document_id, entry in await _stored(connection, server_id, session):
        if entry in missing:
            missing.remove(entry)
        else:
            gone.append(document_id)
    entries = connection.db.aclentries
    if gone:
        await entries.delete_many({"_id": {"$in": gone}}, session=session)
    if missing:
        await entries.insert_many([records.access_entry_document(entry) for entry in missing], session=session)


async def remove_entries(connection: Connection, server_id: str, session: AsyncIOMotorClientSession) -> None:
    """Remove all of a server that is no more, also those that cannot be read."""
    found = {"resourceId": {"$in": any_id(server_id)}, "resourceType": RESOURCE_TYPE}
    await connection.db.aclentries.delete_many(found, session=session)


async def _stored(
    connection: Connection, server_id: str, session: AsyncIOMotorClientSession | None
) -> list[tuple[Any, AccessEntry]]:
    # `resourceType` is looked at afterwards: the embedded store uses no index for a find that names a field outside it
    query = {"resourceId": {"$in": any_id(server_id)}}
    docs = await connection.db.aclentries.find(query, session=session).to_list(None)
    return [(doc["_id"], entry) for doc in docs if (entry := records.access_entry(doc)) is not None]

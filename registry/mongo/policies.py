"""One consistent read of everything that decides.

Source: DESIGN 4. A read-only transaction with snapshot read concern on the primary: keys by hash, servers by path or
id, the access entries of those servers. Every find has an index; none joins, since on the embedded store the parts of
a join use no index and do not share the snapshot.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from motor.motor_asyncio import AsyncIOMotorClientSession

from registry.model import AccessEntry, ApiKey, Asked, Facts, ServerPolicy
from registry.mongo import documents, records
from registry.mongo.client import SNAPSHOT, Connection, Transient, as_utc
from registry.mongo.documents import POLICY_FIELDS, RESOURCE_TYPE, any_id

_KEY_FIELDS = dict.fromkeys(
    (
        *("hash", "name", "user", "groups", "roles", "scopes"),
        *("tools", "enabled", "createdAt", "createdBy", "expiresAt"),
    ),
    1,
)


class MongoPolicies:
    """`registry.ports.PolicyReader`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def read(self, asked: frozenset[Asked]) -> Mapping[Asked, Facts]:
        """As PolicyReader.read; a read that lost a race is repeated until the deadline."""
        async with self._connection.bounded():
            while True:
                try:
                    return await self._read(asked)
                except Transient:
                    continue

    async def _read(self, asked: frozenset[Asked]) -> Mapping[Asked, Facts]:
        async with (
            await self._connection.client.start_session() as session,
            session.start_transaction(read_concern=SNAPSHOT),
        ):
            return await facts_for(self._connection, session, asked)


async def facts_for(
    connection: Connection, session: AsyncIOMotorClientSession, asked: frozenset[Asked]
) -> Mapping[Asked, Facts]:
    """The facts for all of `asked`, read in the session's transaction."""
    keys = await _keys(connection, session, {one.key_hash for one in asked if one.key_hash is not None})
    servers = await _servers(connection, session, {one.server for one in asked if one.server is not None})
    policies = _by_ref(servers)
    ids = {policy.server_id for policy in policies.values()}
    entries = await _entries(connection, session, ids) if ids else ()
    now = _now_of((*keys, *servers)) or await connection.now()
    known = {key.hash: key for doc in keys if (key := records.api_key(doc)) is not None}
    return {one: _facts(one, now, known, policies, entries) for one in asked}


def _facts(
    one: Asked,
    now: datetime,
    keys: Mapping[str, ApiKey],
    policies: Mapping[str, ServerPolicy],
    entries: Sequence[AccessEntry],
) -> Facts:
    server = policies.get(one.server or "")
    of_server = tuple(entry for entry in entries if server is not None and entry.server_id == server.server_id)
    return Facts(now=now, key=keys.get(one.key_hash or ""), server=server, entries=of_server)


async def _keys(
    connection: Connection, session: AsyncIOMotorClientSession, hashes: Iterable[str]
) -> list[dict[str, Any]]:
    return await _found(connection, session, "apikeys", {"hash": {"$in": sorted(hashes)}}, _KEY_FIELDS)


async def _servers(
    connection: Connection, session: AsyncIOMotorClientSession, refs: Iterable[str]
) -> list[dict[str, Any]]:
    paths = sorted(ref for ref in refs if ref.startswith("/"))
    ids = [form for ref in refs if not ref.startswith("/") for form in any_id(ref)]
    return [
        *await _found(connection, session, "mcpservers", {"path": {"$in": paths}}, POLICY_FIELDS, wanted=bool(paths)),
        *await _found(connection, session, "mcpservers", {"_id": {"$in": ids}}, POLICY_FIELDS, wanted=bool(ids)),
    ]


async def _found(
    connection: Connection,
    session: AsyncIOMotorClientSession,
    collection: str,
    match: Mapping[str, Any],
    fields: Mapping[str, Any],
    *,
    wanted: bool = True,
) -> list[dict[str, Any]]:
    """The documents that match, each with the store's clock as `now`; an aggregate, since a find cannot have that."""
    if not wanted:
        return []
    stages: list[Mapping[str, Any]] = [{"$match": match}, {"$project": {**fields, "now": "$$NOW"}}]
    return await connection.db[collection].aggregate(stages, session=session).to_list(None)


async def _entries(
    connection: Connection, session: AsyncIOMotorClientSession, server_ids: Iterable[str]
) -> tuple[AccessEntry, ...]:
    forms = [form for server_id in server_ids for form in any_id(server_id)]
    query = {"resourceType": RESOURCE_TYPE, "resourceId": {"$in": forms}}
    found = await connection.db.aclentries.find(query, session=session).to_list(None)
    return tuple(entry for doc in found if (entry := records.access_entry(doc)) is not None)


def _now_of(docs: Iterable[Mapping[str, Any]]) -> datetime | None:
    return next((as_utc(doc["now"]) for doc in docs), None)


def _by_ref(docs: Iterable[Mapping[str, Any]]) -> dict[str, ServerPolicy]:
    """Each server by its id and by its path; two under one path are both refused, and say so."""
    by_id = {policy.server_id: policy for policy in map(documents.server_policy, docs)}
    found: dict[str, ServerPolicy] = dict(by_id)
    for policy in by_id.values():
        is_shared = policy.path in found
        found[policy.path] = replace(policy, fault=documents.SHARED_PATH) if is_shared else policy
    return found

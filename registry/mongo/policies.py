"""One consistent read of everything that decides.

Source: DESIGN 4. A read-only transaction with snapshot read concern on the primary: keys by hash, servers by id and by
path, the access entries of those servers that name those keys' principals. Every find has an index; none joins, since
on the embedded store the parts of a join use no index and do not share the snapshot.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from motor.motor_asyncio import AsyncIOMotorClientSession
from pymongo.errors import PyMongoError

from registry.model import AccessEntry, ApiKey, Asked, Facts, ServerPolicy
from registry.mongo import documents, records
from registry.mongo.client import TRANSIENT, UNKNOWN_COMMIT, Connection, as_utc
from registry.mongo.documents import POLICY_FIELDS, any_id
from registry.mongo.records import ENTRY_FIELDS, KEY_FIELDS, NOBODY
from registry.mongo.values import Doc

_PAUSE_S = 0.01
"""Before a read that lost a race is repeated: a store that resets all connections must not be asked in a tight loop."""


class MongoPolicies:
    """`registry.ports.PolicyReader`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def read(self, asked: frozenset[Asked]) -> Mapping[Asked, Facts]:
        """As PolicyReader.read; a read that lost a race is repeated until the deadline.

        It runs in a task of its own: ending the transaction of a read that is too late takes as long again, and nobody
        shall wait for that.
        """
        async with self._connection.bounded():
            return await asyncio.shield(self._connection.spawn(self._repeated(asked)))

    async def _repeated(self, asked: frozenset[Asked]) -> Mapping[Asked, Facts]:
        async with self._connection.bounded():
            while True:
                try:
                    return await self._read(asked)
                except PyMongoError as exc:
                    if not (exc.has_error_label(TRANSIENT) or exc.has_error_label(UNKNOWN_COMMIT)):
                        raise
                await asyncio.sleep(_PAUSE_S)

    async def _read(self, asked: frozenset[Asked]) -> Mapping[Asked, Facts]:
        session = await self._connection.begin()
        try:
            facts = await facts_for(self._connection, session, asked)
            await session.commit_transaction()  # only then was the snapshot one that a majority holds
            return facts
        finally:
            await session.end_session()


async def facts_for(
    connection: Connection, session: AsyncIOMotorClientSession, asked: frozenset[Asked]
) -> Mapping[Asked, Facts]:
    """The facts for all of `asked`, read in the session's transaction."""
    read = _Read(connection, session)
    keys = await read.found("apikeys", "hash", {one.key_hash for one in asked if one.key_hash}, KEY_FIELDS)
    servers = await read.servers({one.server for one in asked if one.server})
    known = {key.hash: key for doc in keys if (key := records.api_key(doc)) is not None}
    policies = _by_ref(servers)
    entries = await read.entries(servers, known.values()) if servers else ()
    now = next((as_utc(doc["now"]) for doc in (*keys, *servers)), None) or await connection.now()
    return {
        one: Facts(
            now=now,
            key=known.get(one.key_hash) if one.key_hash else None,
            server=(policy := policies.get(one.server) if one.server else None),
            entries=tuple(entry for entry in entries if policy and entry.server_id == policy.server_id),
        )
        for one in asked
    }


@dataclass(frozen=True, slots=True)
class _Read:
    """The finds of one transaction."""

    connection: Connection
    session: AsyncIOMotorClientSession

    async def found(self, collection: str, field: str, values: Iterable[Any], shown: Doc) -> Sequence[Doc]:
        """The documents whose `field` is one of `values`, each with the store's clock as `now`.

        An aggregate, since a find cannot show the clock.
        """
        wanted = list(values)
        if not wanted:
            return []
        stages: list[Mapping[str, Any]] = [
            {"$match": {field: {"$in": wanted}}},
            {"$project": {**shown, "now": "$$NOW"}},
        ]
        return await self.connection.db[collection].aggregate(stages, session=self.session).to_list(None)

    async def servers(self, refs: Iterable[str]) -> Sequence[Doc]:
        """The servers of these ids and paths, and any others under a path of theirs."""
        ids = {form for ref in refs if not ref.startswith("/") for form in any_id(ref)}
        by_id = await self.found("mcpservers", "_id", ids, POLICY_FIELDS)
        paths = {ref for ref in refs if ref.startswith("/") and any_id(ref)}
        paths |= {path for doc in by_id if isinstance(path := doc.get("path"), str)}
        by_path = await self.found("mcpservers", "path", paths, POLICY_FIELDS)
        return list({str(doc["_id"]): doc for doc in (*by_id, *by_path)}.values())

    async def entries(self, servers: Iterable[Doc], keys: Iterable[ApiKey]) -> Sequence[AccessEntry]:
        """The entries of these servers for whom these keys act, and for the public.

        `resourceType` is looked at afterwards: the embedded store uses no index for a find that names a field outside
        it.
        """
        ids = [form for doc in servers for form in any_id(str(doc["_id"]))]
        principals = {form for key in keys for name in (key.user, *key.groups, *key.roles) for form in any_id(name)}
        query = {"resourceId": {"$in": ids}, "principalId": {"$in": [*principals, *NOBODY]}}
        docs = await self.connection.db.aclentries.find(query, ENTRY_FIELDS, session=self.session).to_list(None)
        return [entry for doc in docs if (entry := records.access_entry(doc)) is not None]


def _by_ref(docs: Sequence[Doc]) -> dict[str, ServerPolicy]:
    """Each server by its id and, when it has one, by its path; those that share a path are refused, and say so."""
    shared = documents.shared_paths(docs)
    policies = [documents.server_policy(doc, shared) for doc in docs]
    by_path = {policy.path: policy for policy in policies if policy.path.startswith("/")}
    return by_path | {policy.server_id: policy for policy in policies}

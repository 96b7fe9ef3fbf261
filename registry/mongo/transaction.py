"""The writes and reads of one change.

Source: DESIGN 5. Values go into update pipelines through `$literal`, so that a tool named `$path` stays a name; no
update path is ever built from a name; fields that we do not know are not touched.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bson import ObjectId
from motor.motor_asyncio import AsyncIOMotorClientSession
from pymongo import ReturnDocument

from registry.entries import NewServer, Server, ServerEdit, Snapshot
from registry.errors import Conflict, NotFound
from registry.model import AccessEntry, ApiKey, Asked, Facts
from registry.mongo import documents, records
from registry.mongo.client import Connection, translating
from registry.mongo.documents import (
    ACCESS_REVISION,
    CAPABILITIES,
    DECLARED,
    DISABLED,
    READ_ONLY,
    REFRESH_ERROR,
    REFRESHED_AT,
    RETIRED,
    REVISION,
    TOOLS,
    any_id,
)
from registry.mongo.entries import entries_of, remove_entries, replace_entries
from registry.mongo.policies import facts_for
from registry.mongo.reservations import reserve_url, take_turns_over_admin_keys
from registry.mongo.sightings import remove_sightings
from registry.mongo.stored_edits import edited_fields, raises_revision
from registry.rows import Activity


def _next(field: str) -> dict[str, Any]:
    return {"$add": [{"$convert": {"input": f"${field}", "to": "long", "onError": 0, "onNull": 0}}, 1]}


_NEXT_REVISION = _next(REVISION)


@dataclass(frozen=True, slots=True)
class MongoTransaction:
    """`registry.ports.Transaction` on an open session."""

    connection: Connection
    session: AsyncIOMotorClientSession

    async def facts(self, asked: Asked) -> Facts:
        """As Transaction.facts."""
        async with translating():
            return (await facts_for(self.connection, self.session, frozenset({asked})))[asked]

    async def server(self, ref: str) -> Server | None:
        """As Transaction.server."""
        async with translating():
            return await find_server(self.connection, ref, self.session)

    async def key(self, key_id: str) -> ApiKey | None:
        """As Transaction.key."""
        async with translating():
            doc = await self.connection.db.apikeys.find_one({"_id": key_id}, session=self.session)
        return None if doc is None else records.api_key(doc)

    async def admin_keys(self) -> Sequence[ApiKey]:
        """As Transaction.admin_keys."""
        async with translating():
            await take_turns_over_admin_keys(self.connection, self.session)
            docs = await self.connection.db.apikeys.find({"scopes": "admin"}, session=self.session).to_list(None)
        return [key for doc in docs if (key := records.api_key(doc)) is not None]

    async def any_key(self) -> bool:
        """As Transaction.any_key."""
        async with translating():
            return await self.connection.db.apikeys.find_one({}, {"_id": 1}, session=self.session) is not None

    async def add_server(self, new: NewServer) -> Server:
        """As Transaction.add_server; the reservation is what two registrations at once collide on."""
        async with translating():
            if await find_server(self.connection, new.path, self.session) is not None:
                raise Conflict(f"the path {new.path} is taken")
            doc = _new_document(new)
            reservation = {"_id": f"path:{new.path}", "server": doc["_id"]}
            await self.connection.db.reservations.insert_one(reservation, session=self.session)
            if not new.allows_duplicate:
                await reserve_url(self.connection, new.url, doc["_id"], self.session)
            await self.connection.db.mcpservers.insert_one(doc, session=self.session)
        return documents.server(doc)

    async def add_entry(self, entry: AccessEntry) -> None:
        """As Transaction.add_entry."""
        async with translating():
            doc = records.access_entry_document(entry)
            await self.connection.db.aclentries.insert_one(doc, session=self.session)

    async def entries(self, server_id: str) -> Sequence[AccessEntry]:
        """As Transaction.entries."""
        async with translating():
            return await entries_of(self.connection, server_id, self.session)

    async def replace_entries(self, server_id: str, entries: Sequence[AccessEntry]) -> None:
        """As Transaction.replace_entries; rivals, the server's end too, collide on the server's document."""
        async with translating():
            await replace_entries(self.connection, server_id, entries, self.session)
        await self._updated(server_id, {ACCESS_REVISION: _next(ACCESS_REVISION)})

    async def remove_server(self, server_id: str) -> None:
        """As Transaction.remove_server; the server goes last, as the policy document of this change."""
        ids = {"$in": any_id(server_id)}
        async with translating():
            await remove_entries(self.connection, server_id, self.session)
            await remove_sightings(self.connection, server_id, self.session)
            await self.connection.db.reservations.delete_many({"server": ids}, session=self.session)
            await self.connection.db.mcpservers.delete_one({"_id": ids}, session=self.session)

    async def add_key(self, key: ApiKey) -> None:
        """As Transaction.add_key."""
        async with translating():
            await self.connection.db.apikeys.insert_one(records.api_key_document(key), session=self.session)

    async def save_key(self, key: ApiKey) -> None:
        """As Transaction.save_key."""
        doc = records.api_key_document(key)
        async with translating():
            await self.connection.db.apikeys.update_one({"_id": key.id}, {"$set": doc}, session=self.session)

    async def record(self, row: Activity) -> None:
        """As Transaction.record."""
        async with translating():
            await self.connection.db.activity.insert_one(records.activity_document(row), session=self.session)

    async def save_policy(
        self,
        server_id: str,
        *,
        disabled_tools: frozenset[str],
        retired_disabled_tools: frozenset[str],
        read_only_tools: frozenset[str],
    ) -> Server:
        """As Transaction.save_policy."""
        lists = {DISABLED: disabled_tools, RETIRED: retired_disabled_tools, READ_ONLY: read_only_tools}
        changed = {field: _literal(sorted(names)) for field, names in lists.items()}
        return await self._updated(server_id, {**changed, REVISION: _NEXT_REVISION})

    async def save_edit(self, server_id: str, edit: ServerEdit) -> Server:
        """As Transaction.save_edit."""
        if edit.path is not None:
            await self._reserve(edit.path, server_id)
        if edit.url is not None:
            async with translating():
                await reserve_url(self.connection, edit.url, any_id(server_id)[-1], self.session)
        changed = {field: _literal(value) for field, value in edited_fields(edit).items()}
        raised = {REVISION: _NEXT_REVISION} if raises_revision(edit) else {}
        return await self._updated(server_id, {**changed, **raised})

    async def _reserve(self, path: str, server_id: str) -> None:
        """Two changes at once to one path collide on the reservation."""
        holder = await self.server(path)
        if holder is not None and holder.id != server_id:
            raise Conflict(f"the path {path} is taken")
        reservations = self.connection.db.reservations
        held = {"server": {"$in": any_id(server_id)}, "_id": {"$regex": "^path:", "$ne": f"path:{path}"}}
        reservation = {"$set": {"server": any_id(server_id)[-1]}}
        async with translating():
            await reservations.delete_many(held, session=self.session)
            await reservations.update_one({"_id": f"path:{path}"}, reservation, upsert=True, session=self.session)

    async def save_snapshot(self, server_id: str, snapshot: Snapshot) -> Server:
        """As Transaction.save_snapshot."""
        server = await self.server(server_id)
        functions = documents.tool_functions(snapshot.tools, server.name if server else "")
        changed = {
            "config.toolFunctions": _literal(functions),
            TOOLS: _literal(documents.tool_entries(snapshot.tools)),
            DECLARED: _literal(sorted(tool.name for tool in snapshot.tools if tool.declares_read_only)),
            CAPABILITIES: _literal(documents.json_text(snapshot.capabilities)),
            REFRESHED_AT: "$$NOW",
            REFRESH_ERROR: _literal(None),
        }
        return await self._updated(server_id, changed)

    async def save_refresh_error(self, server_id: str, error: str) -> Server:
        """As Transaction.save_refresh_error."""
        return await self._updated(server_id, {REFRESH_ERROR: _literal(error)})

    async def _updated(self, server_id: str, changed: Mapping[str, Any]) -> Server:
        async with translating():
            doc = await self.connection.db.mcpservers.find_one_and_update(
                {"_id": {"$in": any_id(server_id)}},
                [{"$set": changed}],
                return_document=ReturnDocument.AFTER,
                session=self.session,
            )
        if doc is None:
            raise NotFound("no such server")
        return documents.server(doc)


def _literal(value: Any) -> dict[str, Any]:
    return {"$literal": value}


def _new_document(new: NewServer) -> dict[str, Any]:
    return {
        "_id": ObjectId(),
        "serverName": new.name,
        "path": new.path,
        "tags": list(new.tags),
        "config": {
            "url": new.url,
            "type": new.type.value,
            "title": new.title,
            "description": new.description,
            "enabled": True,
            "toolFunctions": {},
        },
        DISABLED: [],
        RETIRED: [],
        READ_ONLY: [],
        REVISION: 1,
        TOOLS: [],
    } | ({"registrySettings": {"credentials": dict(new.credentials)}} if new.credentials else {})


async def find_server(
    connection: Connection, ref: str, session: AsyncIOMotorClientSession | None = None
) -> Server | None:
    """One server by id, or by path when `ref` starts with `/`; one whose path another one has comes with a fault."""
    field = "path" if ref.startswith("/") else "_id"
    doc = await connection.db.mcpservers.find_one({field: {"$in": any_id(ref)}}, session=session)
    if doc is None:
        return None
    same_path = await connection.db.mcpservers.find({"path": doc.get("path")}, {"path": 1}, session=session).to_list(2)
    return documents.server(doc, documents.shared_paths(same_path))

"""What one server holds and no other may, its downstream, and what one change at a time may touch.

Source: DESIGN 2 and 5 (`reservations`). Two changes at once collide on the reservation; a document of another program
has none, so its address is looked at.
"""

import hashlib
from typing import Any

from motor.motor_asyncio import AsyncIOMotorClientSession

from registry.downstreams import TAKEN, normal_form, url_fault
from registry.errors import Conflict
from registry.mongo.client import Connection


async def reserve_url(connection: Connection, url: str, server_id: Any, session: AsyncIOMotorClientSession) -> None:
    """Hold this downstream for this server, in place of the one it held. Raises Conflict when another has it."""
    form = normal_form(url)
    servers = connection.db.mcpservers.find({"_id": {"$ne": server_id}}, {"config.url": 1}, session=session)
    async for doc in servers:
        if _form_of(doc) == form:
            raise Conflict(TAKEN)
    reserved = connection.db.reservations
    key = "url:" + hashlib.sha256(form.encode()).hexdigest()
    await reserved.delete_many({"server": server_id, "_id": {"$regex": "^url:", "$ne": key}}, session=session)
    await reserved.update_one({"_id": key}, {"$set": {"server": server_id}}, upsert=True, session=session)


async def take_turns_over_admin_keys(connection: Connection, session: AsyncIOMotorClientSession) -> None:
    """Of two changes at once that both call this, one is run again: each of them might disable the key that the other
    one left."""
    turn = {"_id": "admin-keys"}
    await connection.db.reservations.update_one(turn, {"$inc": {"turns": 1}}, upsert=True, session=session)


def _form_of(doc: dict[str, Any]) -> str | None:
    """None for what another program stored and nobody can reach."""
    config = doc.get("config")
    url = config.get("url") if isinstance(config, dict) else None
    return normal_form(url) if isinstance(url, str) and url_fault(url) is None else None

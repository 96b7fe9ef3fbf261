"""The mirror's lease: one document, taken and kept in one atomic update by the store's clock.

Source: DESIGN 6 (one replica mirrors at a time). Times are compared as numbers on both sides: the embedded store
compares `$$NOW` with a stored date wrongly.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pymongo import ReturnDocument

from registry.mirroring import MirrorLease, MirrorState, MirrorStatus, Order
from registry.mongo.client import Connection

_ID = "mirror"
_NOW = {"$toLong": "$$NOW"}


class MongoLeases:
    """`registry.ports.LeaseStore`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def hold(self, holder: str, ttl_s: float, statuses: Sequence[MirrorStatus]) -> MirrorLease:
        """As LeaseStore.hold."""
        is_ours = {"$or": [{"$eq": ["$holder", holder]}, {"$lte": [{"$toLong": "$until"}, _NOW]}]}
        kept = {
            "holder": holder,
            "until": {"$add": ["$$NOW", round(ttl_s * 1000)]},
            "statuses": {"$literal": [_document(status) for status in statuses]},
        }
        return await self._updated(
            [
                {"$set": {"ours": is_ours}},
                {"$set": {name: {"$cond": ["$ours", value, f"${name}"]} for name, value in kept.items()}},
                {"$unset": "ours"},
            ]
        )

    async def release(self, holder: str) -> None:
        """As LeaseStore.release."""
        async with self._connection.bounded():
            await self._connection.db.leases.update_one(
                {"_id": _ID, "holder": holder}, {"$set": {"holder": "", "until": datetime.fromtimestamp(0, UTC)}}
            )

    async def read(self) -> MirrorLease:
        """As LeaseStore.read."""
        shown = {"holder": 1, "statuses": 1, "orders": 1, "isFree": {"$lte": [{"$toLong": "$until"}, _NOW]}}
        stages: list[Mapping[str, Any]] = [{"$match": {"_id": _ID}}, {"$project": shown}]
        async with self._connection.bounded():
            found = await self._connection.db.leases.aggregate(stages).to_list(1)
        return _lease(found[0]) if found else MirrorLease()

    async def order(self, order: Order) -> None:
        """As LeaseStore.order."""
        async with self._connection.bounded():
            await self._connection.db.leases.update_one({"_id": _ID}, {"$inc": {f"orders.{order}": 1}}, upsert=True)

    async def _updated(self, stages: Sequence[Mapping[str, Any]]) -> MirrorLease:
        async with self._connection.bounded():
            doc = await self._connection.db.leases.find_one_and_update(
                {"_id": _ID}, stages, upsert=True, return_document=ReturnDocument.AFTER
            )
        return _lease(doc or {})


def _document(status: MirrorStatus) -> dict[str, Any]:
    return {
        "name": status.name,
        "state": status.state.value,
        "error": status.error,
        "objects": status.objects,
        "drift": status.drift,
        "pending": status.pending,
        "lagS": status.lag_s,
        "lastLagS": status.last_lag_s,
        "missing": status.missing,
        "reconciledAt": status.reconciled_at,
    }


def _lease(doc: Mapping[str, Any]) -> MirrorLease:
    orders = doc.get("orders", {})
    return MirrorLease(
        holder="" if doc.get("isFree") else doc.get("holder", ""),
        statuses=tuple(_status(status) for status in doc.get("statuses") or ()),
        orders={order: int(orders.get(order.value, 0)) for order in Order},
    )


def _status(doc: Mapping[str, Any]) -> MirrorStatus:
    return MirrorStatus(
        name=doc["name"],
        state=MirrorState(doc["state"]),
        error=doc["error"],
        objects=doc["objects"],
        drift=doc["drift"],
        pending=doc["pending"],
        lag_s=doc["lagS"],
        last_lag_s=doc["lastLagS"],
        missing=doc["missing"],
        reconciled_at=doc["reconciledAt"],
    )

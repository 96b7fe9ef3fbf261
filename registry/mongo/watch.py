"""Change streams: hears of every change of the policy, whoever made it.

Source: DESIGN 4; MongoDB change streams (resume tokens, error 286 ChangeStreamHistoryLost). A client of its own, since
a stream keeps one of the driver's threads, and since the deadlines of decisions are not for a wait without end.

States: opening -> streaming -> broken -> opening (with the last token) | starting over (the store has lost that place).
The first event after each start without a token is EVERYTHING; what changes between a reader's read and the stream's
beginning is thereby never missed.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import structlog
from motor.motor_asyncio import AsyncIOMotorClient
from pymongo.errors import OperationFailure, PyMongoError

from registry.changes import EVERYTHING, StoreChange, Subject
from registry.mongo.client import DEFAULT_DATABASE, database_of

log = structlog.get_logger(__name__)

_SUBJECTS: Mapping[str, Subject] = {
    "mcpservers": Subject.SERVER,
    "aclentries": Subject.ENTRY,
    "apikeys": Subject.KEY,
    "toolswitches": Subject.SWITCH,
}

_PIPELINE: list[Mapping[str, Any]] = [
    {"$match": {"ns.coll": {"$in": list(_SUBJECTS)}}},
    {"$project": {"documentKey._id": 1, "ns.coll": 1}},  # never the document: a server's can be megabytes
]

_AWAIT_MS = 1_000
"""How long the store holds a question that has no answer yet."""

_SILENCE_MS = 5_000
"""After which a store that should have said "nothing yet" is taken for gone. Above `_AWAIT_MS`."""

_LOST = frozenset({280, 286, 222, 50811})
"""ChangeStreamFatalError, ChangeStreamHistoryLost, CloseChangeStream, and a token that the store cannot read."""

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0


class MongoChangeFeed:
    """`registry.ports.ChangeFeed`."""

    def __init__(self, url: str, database: str | None) -> None:
        self._client: AsyncIOMotorClient[dict[str, Any]] = AsyncIOMotorClient(
            url, serverSelectionTimeoutMS=_SILENCE_MS, socketTimeoutMS=_SILENCE_MS, appname="sluicegate watch"
        )
        self._db = self._client.get_database(database or database_of(url) or DEFAULT_DATABASE)
        self._token: Mapping[str, Any] | None = None
        self._is_broken = False

    async def changes(self) -> AsyncGenerator[StoreChange, None]:
        """As ChangeFeed.changes."""
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                async with contextlib.aclosing(self._streamed()) as events:
                    async for event in events:
                        pause_s = _FIRST_PAUSE_S
                        yield event
            except PyMongoError as exc:
                self._broke(exc)
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))  # noqa: S311  spreads replicas, hides nothing
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    async def _streamed(self) -> AsyncGenerator[StoreChange, None]:
        """The events of one stream. Returns when the store has ended it, as after a dropped database."""
        began_anew = self._token is None
        async with self._db.watch(_PIPELINE, resume_after=self._token, max_await_time_ms=_AWAIT_MS) as stream:
            is_alive: Any = stream  # the driver's stubs take its property for a method
            while is_alive.alive:
                event = await stream.try_next()  # opens it at the first call
                self._opened()
                if began_anew:
                    began_anew = False
                    yield EVERYTHING
                if event is not None:
                    yield _change(event)
                self._token = stream.resume_token  # only now: what was not taken comes again
        self._token = None

    def _opened(self) -> None:
        if self._is_broken:
            self._is_broken = False
            log.info("watch.resumed", from_start=self._token is None)

    def _broke(self, exc: PyMongoError) -> None:
        if isinstance(exc, OperationFailure) and (
            exc.code in _LOST or exc.has_error_label("NonResumableChangeStreamError")
        ):
            self._token = None
        if not self._is_broken:
            self._is_broken = True
            log.warning("watch.broken", cause=type(exc).__name__, starts_over=self._token is None)

    async def close(self) -> None:
        """End the connection; whoever iterates must have stopped."""
        await asyncio.to_thread(self._client.close)


def _change(event: Mapping[str, Any]) -> StoreChange:
    collection = event.get("ns", {}).get("coll")
    document = event.get("documentKey")
    if collection not in _SUBJECTS or document is None:  # a drop or a rename is about all of it
        return EVERYTHING
    return StoreChange(_SUBJECTS[collection], str(document["_id"]))

"""The connection, and the translation of what can go wrong with it.

Source: DESIGN 4. Whatever the connection string says, reads come from the primary and writes are acknowledged by a
majority, journaled: the guarantee rests on it. Each wait has a deadline twice, `timeoutMS` inside the driver and
`asyncio.timeout` round the wait, since a call that waits for a thread never reaches the driver.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from bson.codec_options import CodecOptions
from motor.motor_asyncio import AsyncIOMotorClient, AsyncIOMotorDatabase
from pymongo.errors import DuplicateKeyError, PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.read_preferences import ReadPreference
from pymongo.uri_parser import parse_uri
from pymongo.write_concern import WriteConcern

from registry.errors import Conflict, StoreUnavailable, StoreUnusable

DEFAULT_DATABASE = "sluicegate"

WRITE_CONCERN = WriteConcern(w="majority", j=True)
READ_CONCERN = ReadConcern("majority")
SNAPSHOT = ReadConcern("snapshot")


class Transient(StoreUnavailable):
    """The transaction lost a race and may be tried again."""


class Connection:
    """One client, one database, one deadline for every call."""

    def __init__(self, url: str, database: str | None, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        try:
            name = database or parse_uri(url)["database"] or DEFAULT_DATABASE
            self.client: AsyncIOMotorClient[dict[str, Any]] = AsyncIOMotorClient(
                url,
                timeoutMS=int(timeout_s * 1000),
                serverSelectionTimeoutMS=int(timeout_s * 1000),
                tz_aware=True,
                appname="sluicegate",
            )
        except (PyMongoError, ValueError) as exc:  # the driver's two ways to find fault with a string
            raise StoreUnusable(f"SLUICEGATE_MONGODB_URL cannot be used: {exc}.") from exc
        self.db: AsyncIOMotorDatabase[dict[str, Any]] = self.client.get_database(
            name,
            codec_options=CodecOptions(tz_aware=True, tzinfo=UTC),
            read_preference=ReadPreference.PRIMARY,
            write_concern=WRITE_CONCERN,
            read_concern=READ_CONCERN,
        )

    @contextlib.asynccontextmanager
    async def bounded(self) -> AsyncIterator[None]:
        """Bound the calls inside by the deadline and translate their errors."""
        try:
            async with asyncio.timeout(self.timeout_s):
                yield
        except TimeoutError as exc:
            raise StoreUnavailable("the store did not answer in time") from exc
        except PyMongoError as exc:
            raise translated(exc) from exc

    async def now(self) -> datetime:
        """The store's clock, UTC."""
        reply = await self.client.admin.command("hello")
        return as_utc(reply["localTime"])


def translated(exc: PyMongoError) -> StoreUnavailable | Conflict:
    """The registry's error for a driver's; its text names no document and no credential."""
    if isinstance(exc, DuplicateKeyError):
        return Conflict("that is there already")
    if exc.has_error_label("TransientTransactionError"):
        return Transient("the transaction lost a race")
    return StoreUnavailable(f"the store is unavailable ({type(exc).__name__})")


def as_utc(moment: datetime) -> datetime:
    """The same moment, aware; the driver gives naive ones in UTC where it decodes without options."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)

"""The connection, and the translation of what can go wrong with it.

Source: DESIGN 4. Whatever the connection string says, reads come from the primary and writes are acknowledged by a
majority, journaled: the guarantee rests on it. Each wait has a deadline twice, `timeoutMS` inside the driver and
`asyncio.timeout` round the wait, since a call that waits for a thread never reaches the driver.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar

from motor.motor_asyncio import AsyncIOMotorClient, AsyncIOMotorClientSession, AsyncIOMotorDatabase
from pymongo.errors import DuplicateKeyError, PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.read_preferences import ReadPreference
from pymongo.uri_parser import parse_uri
from pymongo.write_concern import WriteConcern

from registry.errors import Conflict, Invalid, StoreUnavailable, StoreUnusable

T = TypeVar("T")

DEFAULT_DATABASE = "sluicegate"

WRITE_CONCERN = WriteConcern(w="majority", j=True)
READ_CONCERN = ReadConcern("majority")
SNAPSHOT = ReadConcern("snapshot")

TRANSIENT = "TransientTransactionError"
UNKNOWN_COMMIT = "UnknownTransactionCommitResult"


class Transient(StoreUnavailable):
    """The transaction lost a race and may be tried again."""


class Connection:
    """One client, one database, one deadline for every call, and the tasks that may outlive their callers."""

    def __init__(self, url: str, database: str | None, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._tasks: set[asyncio.Task[Any]] = set()
        self._endless: set[asyncio.Task[Any]] = set()
        try:
            name = database or database_of(url) or DEFAULT_DATABASE
            self.client: AsyncIOMotorClient[dict[str, Any]] = AsyncIOMotorClient(
                url,
                timeoutMS=int(timeout_s * 1000),
                serverSelectionTimeoutMS=int(timeout_s * 1000),
                tz_aware=True,
                datetime_conversion="DATETIME_AUTO",  # a stranger's year 12026 must not make its document unreadable
                unicode_decode_error_handler="replace",  # nor a text that is no UTF-8: no request can name it
                appname="sluicegate",
            )
        except (PyMongoError, ValueError) as exc:  # the driver's two ways to find fault with a string
            raise StoreUnusable(f"SLUICEGATE_MONGODB_URL cannot be used: {_without_credentials(exc, url)}.") from exc
        self.db: AsyncIOMotorDatabase[dict[str, Any]] = self.client.get_database(
            name, read_preference=ReadPreference.PRIMARY, write_concern=WRITE_CONCERN, read_concern=READ_CONCERN
        )

    @contextlib.asynccontextmanager
    async def bounded(self) -> AsyncIterator[None]:
        """Bound the calls inside by the deadline and translate their errors."""
        try:
            async with asyncio.timeout(self.timeout_s), translating():
                yield
        except TimeoutError as exc:
            raise StoreUnavailable("the store did not answer in time") from exc

    async def begin(self) -> AsyncIOMotorClientSession:
        """A session with a transaction open; nothing of it has reached the store yet."""
        session = await self.client.start_session()
        session.start_transaction(SNAPSHOT, WRITE_CONCERN, ReadPreference.PRIMARY)
        return session

    async def now(self) -> datetime:
        """The store's clock, UTC."""
        reply = await self.client.admin.command("hello")
        return as_utc(reply["localTime"])

    def spawn(self, work: Coroutine[Any, Any, T], *, endless: bool = False) -> asyncio.Task[T]:
        """Run `work` in a task that its caller may leave; `close` waits for it or, when it is `endless`, ends it."""
        tasks = self._endless if endless else self._tasks
        task = asyncio.get_running_loop().create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        task.add_done_callback(_looked_at)
        return task

    async def close(self) -> None:
        """Let what runs come to its end, then close."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for task in self._endless:
            task.cancel()
        await asyncio.gather(*self._endless, return_exceptions=True)
        await asyncio.to_thread(self.client.close)  # says goodbye to the store, which may be frozen


def database_of(url: str) -> str | None:
    """The database that a connection string names, None when it names none."""
    name: str | None = parse_uri(url)["database"]
    return name


def _looked_at(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()  # else asyncio complains when the caller has gone by then


@contextlib.asynccontextmanager
async def translating() -> AsyncIterator[None]:
    """Translate the driver's errors of the calls inside."""
    try:
        yield
    except PyMongoError as exc:
        raise translated(exc) from exc
    except UnicodeEncodeError as exc:
        raise Invalid("a lone surrogate is no character and cannot be stored") from exc


def translated(exc: PyMongoError) -> StoreUnavailable | Conflict:
    """The registry's error for a driver's; its text names no document and no credential."""
    if isinstance(exc, DuplicateKeyError):
        return Conflict("that is there already")
    if exc.has_error_label(TRANSIENT):
        return Transient("the transaction lost a race")
    return StoreUnavailable(f"the store is unavailable ({type(exc).__name__})")


def as_utc(moment: Any) -> datetime:
    """The same moment, aware; the driver gives naive ones in UTC where it decodes without options.

    Raises:
        TypeError: a stranger stored something that is no moment between the years 1 and 9999.
    """
    if not isinstance(moment, datetime):
        raise TypeError("not a moment")
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _without_credentials(exc: Exception, url: str) -> str:
    """The driver's sentence; it may quote a piece of a password whose special characters are not encoded."""
    return "it is malformed; are special characters in its password percent-encoded?" if "@" in url else str(exc)

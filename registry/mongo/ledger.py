"""Runs changes in transactions, to their end.

Source: DESIGN 5 (Activity). The loop is our own: the driver's `with_transaction` knows no deadline. A change runs in
its own task, so that a client which goes away does not undo it. Changes of one process take turns: side by side they
would only lose races to each other. A transaction that we abandon would lock the documents
it wrote for a minute: its session is killed, by a task that tries until the store answers.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import structlog
from motor.motor_asyncio import AsyncIOMotorClientSession
from pymongo.errors import PyMongoError
from pymongo.read_preferences import ReadPreference

from registry.errors import OutcomeUnknown, StoreUnavailable
from registry.mongo.client import SNAPSHOT, WRITE_CONCERN, Connection, Transient, translated
from registry.mongo.transaction import MongoTransaction
from registry.ports import Transaction

T = TypeVar("T")

log = structlog.get_logger(__name__)

_FIRST_PAUSE_S = 0.005
_LONGEST_PAUSE_S = 0.2
_KILL_PAUSE_S = 1.0
"""Between attempts to free what an abandoned transaction locks; the store is down, and nobody waits."""


class MongoLedger:
    """`registry.ports.Ledger`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._tasks: set[asyncio.Task[Any]] = set()
        self._turn = asyncio.Lock()

    async def change(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """As Ledger.change."""
        return await asyncio.shield(self._spawned(self._run(work)))

    async def close(self) -> None:
        """Let running changes end by their deadlines, and stop trying to kill abandoned sessions."""
        for task in self._tasks:
            if task.get_name() == "kill":
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _spawned(self, work: Any, name: str = "change") -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _run(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        attempt = _Attempt(self._connection)
        pause_s = _FIRST_PAUSE_S
        try:
            async with asyncio.timeout(self._connection.timeout_s), self._turn:
                while True:
                    try:
                        return await attempt.run(work)
                    except Transient:
                        await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))  # noqa: S311  spreads rivals, hides nothing
                        pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
        except TimeoutError as exc:
            if attempt.session is not None:
                self._spawned(self._kill(attempt.session), name="kill")
            raise attempt.unfinished() from exc

    async def _kill(self, session: AsyncIOMotorClientSession) -> None:
        while True:
            try:
                async with asyncio.timeout(self._connection.timeout_s):
                    await self._connection.client.admin.command("killSessions", [session.session_id])
            except (PyMongoError, TimeoutError) as exc:
                log.warning("session.kill_failed", cause=type(exc).__name__)
                await asyncio.sleep(_KILL_PAUSE_S)
            else:
                return


class _Attempt:
    """One transaction at a time; `session` is the one that is open."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._is_committing = False
        self.session: AsyncIOMotorClientSession | None = None

    def unfinished(self) -> StoreUnavailable:
        """What to tell at the deadline."""
        if self._is_committing:
            return OutcomeUnknown("the change was under way at its deadline; it may or may not have been made")
        return StoreUnavailable("the store did not answer in time")

    async def run(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `work` and commit. Raises Transient when it may be run again."""
        try:
            self.session = await self._connection.client.start_session()
            self.session.start_transaction(SNAPSHOT, WRITE_CONCERN, ReadPreference.PRIMARY)
            try:
                result = await work(MongoTransaction(self._connection, self.session))
                await self._commit(self.session)
            except Exception:
                await self._end()  # aborts what is not committed
                raise
            await self._end()
            return result
        except PyMongoError as exc:
            raise translated(exc) from exc

    async def _commit(self, session: AsyncIOMotorClientSession) -> None:
        self._is_committing = True
        while True:
            try:
                await session.commit_transaction()
            except PyMongoError as exc:
                if exc.has_error_label("UnknownTransactionCommitResult"):
                    await asyncio.sleep(_FIRST_PAUSE_S)  # asked again, the store says what became of it
                    continue
                self._is_committing = False
                raise
            return

    async def _end(self) -> None:
        session, self.session = self.session, None
        if session is not None:
            await session.end_session()

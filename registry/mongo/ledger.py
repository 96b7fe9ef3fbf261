"""Runs changes in transactions, to their end.

Source: DESIGN 5 (Activity); MongoDB's driver specification of transactions, for the two error labels. The loop is our
own: the driver's `with_transaction` knows no deadline. Changes of one process take turns: side by side they would only
lose races to each other.

States of one attempt: working -> committing -> done; a race lost in either of the first two begins another attempt.
Once the outcome of a commit is unknown, only the commit is repeated, never the work: it may have been done.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from motor.motor_asyncio import AsyncIOMotorClientSession
from pymongo.errors import ConnectionFailure, PyMongoError

from registry.errors import OutcomeUnknown, StoreUnavailable
from registry.mongo.abandoned import free_unless_ended
from registry.mongo.client import TRANSIENT, UNKNOWN_COMMIT, Connection, Transient
from registry.mongo.transaction import MongoTransaction
from registry.ports import Transaction

T = TypeVar("T")

_FIRST_PAUSE_S = 0.005
_LONGEST_PAUSE_S = 0.2


class MongoLedger:
    """`registry.ports.Ledger`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._turn = asyncio.Lock()

    async def change(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """As Ledger.change."""
        return await asyncio.shield(self._connection.spawn(self._run(work)))

    async def _run(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        attempt = _Attempt(self._connection)
        try:
            async with asyncio.timeout(self._connection.timeout_s) as deadline, self._turn:
                return await _until_committed(attempt, work)
        except TimeoutError as exc:
            if not deadline.expired():
                raise  # of the work's own
            raise attempt.unfinished() from exc


async def _until_committed(attempt: "_Attempt", work: Callable[[Transaction], Awaitable[T]]) -> T:
    pause_s = _FIRST_PAUSE_S
    while True:
        try:
            return await attempt.run(work)
        except Transient:
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))  # noqa: S311  spreads rivals, hides nothing
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)


class _Attempt:
    """One transaction at a time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._is_committing = False

    def unfinished(self) -> StoreUnavailable:
        """What to tell at the deadline."""
        if self._is_committing:
            return OutcomeUnknown("the change was under way at its deadline; it may or may not have been made")
        return StoreUnavailable("the store did not answer in time")

    async def run(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `work` and commit. Raises Transient when it may be run again."""
        session = await self._connection.begin()
        try:
            result = await work(MongoTransaction(self._connection, session))
            await self._commit(session)
            await session.end_session()
            return result
        except Exception as exc:
            if not isinstance(exc.__cause__, ConnectionFailure):  # an abort would get through as little
                await session.end_session()  # aborts
            raise
        finally:
            free_unless_ended(self._connection, session)

    async def _commit(self, session: AsyncIOMotorClientSession) -> None:
        self._is_committing = True
        is_done = await self._is_committed(session)
        while not is_done:
            await asyncio.sleep(_FIRST_PAUSE_S)
            is_done = await self._is_committed(session, is_retry=True)  # the store says what became of it

    async def _is_committed(self, session: AsyncIOMotorClientSession, *, is_retry: bool = False) -> bool:
        """False when the outcome is unknown. Raises Transient when nothing was kept and the work may run again."""
        try:
            await session.commit_transaction()
        except PyMongoError as exc:
            if exc.has_error_label(UNKNOWN_COMMIT):
                return False
            if exc.has_error_label(TRANSIENT) and not is_retry:
                self._is_committing = False
                raise Transient("the transaction lost a race") from exc
            raise OutcomeUnknown("the change may or may not have been made") from exc
        return True

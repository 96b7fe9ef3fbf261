"""Frees what abandoned transactions have locked.

Source: DESIGN 5 (Activity). A transaction that nobody ends locks the documents that it wrote for a minute;
`killSessions` frees them at once. It is best effort: until it has worked, changes of those documents wait, and nothing
else does.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import structlog
from motor.motor_asyncio import AsyncIOMotorClientSession

from registry.errors import StoreUnavailable
from registry.mongo.client import Connection

log = structlog.get_logger(__name__)

_PAUSE_S = 0.2
"""Between attempts; the store is down, and nobody waits."""


def free_unless_ended(connection: Connection, session: AsyncIOMotorClientSession) -> None:
    """See to it that the session's transaction ends, if it has not; returns at once and never raises."""
    driver: Any = session  # the driver's stubs take these two properties for methods
    if not driver.has_ended:
        connection.spawn(_free(connection, driver.session_id), endless=True)


async def _free(connection: Connection, session_id: Mapping[str, Any]) -> None:
    await _until_killed(connection, session_id)
    # A call that was under way then may have begun the transaction anew; it ends by this deadline of its own.
    await asyncio.sleep(connection.timeout_s)
    await _until_killed(connection, session_id)


async def _until_killed(connection: Connection, session_id: Mapping[str, Any]) -> None:
    while True:
        try:
            async with connection.bounded():
                await connection.client.admin.command("killSessions", [session_id])
        except StoreUnavailable as exc:
            log.warning("session.kill_failed", cause=str(exc))
        else:
            return
        await asyncio.sleep(_PAUSE_S)

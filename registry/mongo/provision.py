"""Gives a store that has no users yet its one user, before it is run with authentication.

Source: DESIGN 7; MongoDB `createUser`, `updateUser`.
"""

from typing import Any

from motor.motor_asyncio import AsyncIOMotorClient
from pymongo.errors import OperationFailure, PyMongoError

from registry.errors import StoreUnavailable

_USER_EXISTS = 51003
"""MongoDB's code for a `createUser` of a name that is taken."""


async def set_root_password(url: str, user: str, password: str, *, timeout_s: float = 10.0) -> None:
    """Make `user` in `admin` with the role `root`, or give the one that is there this password.

    Args:
        url: a store that runs without authentication.

    Raises:
        StoreUnavailable: it did not do so in time.
    """
    client: AsyncIOMotorClient[dict[str, Any]] = AsyncIOMotorClient(url, timeoutMS=int(timeout_s * 1000))
    try:
        await _create_or_update(client, user, password)
    except PyMongoError as exc:
        raise StoreUnavailable(f"the store's user could not be made: {exc}") from exc
    finally:
        client.close()


async def _create_or_update(client: AsyncIOMotorClient[dict[str, Any]], user: str, password: str) -> None:
    try:
        await client.admin.command("createUser", user, pwd=password, roles=["root"])
    except OperationFailure as exc:
        if exc.code != _USER_EXISTS:
            raise
        await client.admin.command("updateUser", user, pwd=password, roles=["root"])

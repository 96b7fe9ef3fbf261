"""The name of this deployment, kept in the store that its replicas share.

Source: RFC 9110 section 7.6.3. A loop is known by a name in `Via` that is the same on every replica and on no other
deployment; addresses and connection strings are neither.
"""

import contextlib
import re
import secrets

from pymongo.errors import DuplicateKeyError

from registry.errors import StoreUnusable
from registry.mongo.client import Connection

_ID = "deployment"


async def identify(connection: Connection) -> str:
    """The stored name, twelve hexadecimal digits; the first who asks makes it.

    Raises:
        StoreUnavailable: the store does not answer.
        StoreUnusable: somebody has put something else in its place.
    """
    async with connection.bounded():
        found = await connection.db.deployment.find_one({"_id": _ID})
        if found is None:
            with contextlib.suppress(DuplicateKeyError):  # another replica was first
                await connection.db.deployment.insert_one({"_id": _ID, "name": secrets.token_hex(6)})
            found = await connection.db.deployment.find_one({"_id": _ID})
    name = (found or {}).get("name")
    if not isinstance(name, str) or not re.fullmatch(r"[0-9a-f]{12}", name):
        raise StoreUnusable("The collection `deployment` holds no name of ours; remove it, and start again.")
    return name

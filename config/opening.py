"""Opens the store, ready for use."""

import contextlib
from collections.abc import AsyncIterator

from config.errors import StartFailed
from registry.errors import StoreUnusable
from registry.mongo.store import MongoStore


@contextlib.asynccontextmanager
async def opened(url: str, timeout_s: float) -> AsyncIterator[MongoStore]:
    """The store behind a connection string, while the context is open. Raises StartFailed and StoreUnavailable."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            store = MongoStore(url, timeout_s=timeout_s)
            stack.push_async_callback(store.close)
            await store.prepare()
        except StoreUnusable as exc:
            raise StartFailed(str(exc)) from exc
        yield store

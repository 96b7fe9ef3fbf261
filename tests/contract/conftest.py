"""Both stores: what passes on one must pass on the other."""

from collections.abc import AsyncIterator

import pytest

from config.wiring import Store
from registry.memory import MemoryStore
from registry.mongo.store import MongoStore


@pytest.fixture(params=["memory", "mongo"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    """The in-memory twin, then the real embedded store."""
    if request.param == "memory":
        yield MemoryStore()
        return
    real = MongoStore(request.getfixturevalue("database_url"))
    await real.prepare()
    yield real
    await real.close()

"""Two replicas that change the same thing at once, where each alone would be right (DESIGN 5).

Both read the same state, and neither writes what the other writes: without something that both write, both would be
kept.
"""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from registry.callers import Caller
from registry.credentials import key_hash
from registry.errors import Conflict, NotFound
from registry.freshness import Freshness
from registry.keys import Keys, NewKey
from registry.model import OWNER, AccessEntry, PrincipalType
from registry.mongo.store import MongoStore
from registry.ports import Transaction
from tests.contract.test_store import registered


@pytest.fixture
async def rival(database_url: str) -> AsyncIterator[MongoStore]:
    """Another replica on the same database."""
    store = MongoStore(database_url)
    await store.prepare()
    yield store
    await store.close()


def owner(server_id: str, name: str) -> AccessEntry:
    return AccessEntry(server_id, PrincipalType.USER, name, OWNER)


def replacing(server_id: str, *names: str) -> Callable[[Transaction], Awaitable[None]]:
    async def work(tx: Transaction) -> None:
        if await tx.server(server_id) is None:
            raise NotFound("no such server")
        await tx.replace_entries(server_id, [owner(server_id, name) for name in names])

    return work


class Overtaken:
    """Work before whose writes, in its first run, something else happens whole."""

    def __init__(
        self, work: Callable[[Transaction], Awaitable[None]], between: Callable[[], Awaitable[object]]
    ) -> None:
        self.runs = 0
        self._work = work
        self._between = between

    async def __call__(self, tx: Transaction) -> None:
        self.runs += 1
        await tx.any_key()  # its snapshot is taken
        if self.runs == 1:
            await self._between()
        await self._work(tx)


async def test_of_two_lists_of_entries_the_later_is_the_whole_list(mongo_store: MongoStore, rival: MongoStore) -> None:
    server = await registered(mongo_store)
    late = Overtaken(
        replacing(server.id, "ann", "late"), lambda: rival.ledger.change(replacing(server.id, "ann", "early"))
    )
    await mongo_store.ledger.change(late)
    names = {entry.principal_id for entry in await mongo_store.access.entries(server.id)}
    assert (names, late.runs) == ({"ann", "late"}, 2)


async def test_a_server_that_goes_meanwhile_takes_no_entries(mongo_store: MongoStore, rival: MongoStore) -> None:
    server = await registered(mongo_store)

    async def remove(tx: Transaction) -> None:
        await tx.remove_server(server.id)

    late = Overtaken(replacing(server.id, "ann", "late"), lambda: rival.ledger.change(remove))
    with pytest.raises(NotFound):
        await mongo_store.ledger.change(late)
    assert (await mongo_store.access.entries(server.id), late.runs) == ([], 2)


async def test_of_the_last_two_admin_keys_one_stays(mongo_store: MongoStore, rival: MongoStore) -> None:
    keys, others = (Keys(store.ledger, store.keys, Freshness(store.policies)) for store in (mongo_store, rival))
    secret = await keys.bootstrap(None)
    first = Caller(key_hash(secret or ""))
    second = (await keys.create(first, NewKey("second", scopes=("manage", "admin")))).key

    class Late:
        """A ledger whose first attempt is overtaken by the rival's change."""

        async def change(self, work: Callable[[Transaction], Awaitable[object]]) -> object:
            return await mongo_store.ledger.change(
                Overtaken(work, lambda: others.set_enabled(first, second.id, enabled=False))  # type: ignore[arg-type]
            )

    late = Keys(Late(), mongo_store.keys, Freshness(mongo_store.policies))  # type: ignore[arg-type]
    with pytest.raises(Conflict, match="the last usable key"):
        await late.set_enabled(first, "bootstrap", enabled=False)
    assert [(key.id, key.enabled) for key in await keys.list(first)] == [("bootstrap", True), (second.id, False)]

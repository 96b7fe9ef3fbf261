"""Access entries and the end of a server, on the twin and on the real store (`registry.ports`)."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from config.wiring import Store
from registry.errors import NotFound
from registry.model import EDITOR, OWNER, VIEWER, AccessEntry, Asked, PrincipalType
from registry.mongo.store import MongoStore
from registry.ports import Transaction
from tests.contract.test_store import LAB, registered

ENDS = datetime(2030, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)


def wanted(server_id: str) -> list[AccessEntry]:
    return [
        AccessEntry(server_id, PrincipalType.USER, "ann", OWNER),
        AccessEntry(server_id, PrincipalType.USER, "0" * 24, VIEWER),
        AccessEntry(server_id, PrincipalType.GROUP, "qa", EDITOR, ENDS),
        AccessEntry(server_id, PrincipalType.PUBLIC, "", VIEWER),
    ]


async def replace_all(store: Store, server_id: str, entries: list[AccessEntry]) -> None:
    async def work(tx: Transaction) -> None:
        await tx.replace_entries(server_id, entries)

    await store.ledger.change(work)


def same(one: Any, other: Any) -> bool:
    return sorted(map(repr, one)) == sorted(map(repr, other))


async def test_the_entries_of_one_server_are_replaced_and_those_of_others_stay(store: Store) -> None:
    server = await registered(store)
    other = await registered(store, replace(LAB, name="other", path="/other", url="http://127.0.0.1:9/other"))
    for _ in range(2):
        await replace_all(store, server.id, wanted(server.id))
        assert same(await store.access.entries(server.id), wanted(server.id))
    assert len(await store.access.entries(other.id)) == 1

    async def within(tx: Transaction) -> object:
        await tx.replace_entries(server.id, wanted(server.id)[:1])
        return await tx.entries(server.id)

    assert same(await store.ledger.change(within), wanted(server.id)[:1])


@pytest.mark.parametrize("key_hash", [None, "0" * 64])
async def test_a_read_without_a_known_key_has_the_entries_for_the_public(store: Store, key_hash: str | None) -> None:
    server = await registered(store)
    await replace_all(store, server.id, wanted(server.id))

    for ref in ("/lab", server.id):
        facts = (await store.policies.read(frozenset({asked := Asked(key_hash, ref)})))[asked]
        public = [entry for entry in facts.entries if entry.principal_type is PrincipalType.PUBLIC]
        assert (facts.key, public) == (None, [AccessEntry(server.id, PrincipalType.PUBLIC, "", VIEWER)])


async def test_a_server_that_is_removed_is_gone_with_its_entries_and_its_path_is_free(store: Store) -> None:
    server = await registered(store)

    async def remove(tx: Transaction) -> None:
        await tx.remove_server(server.id)

    await store.ledger.change(remove)
    assert (await store.servers.by_ref(server.id), await store.access.entries(server.id)) == (None, [])
    facts = await store.policies.read(frozenset({Asked(None, "/lab"), Asked(None, server.id)}))
    assert [known.server for known in facts.values()] == [None, None]
    again = await registered(store)
    assert (again.path, again.id == server.id) == ("/lab", False)


async def test_a_server_that_is_not_there_has_no_entries_to_replace(store: Store) -> None:
    server = await registered(store)

    async def remove_and_replace(tx: Transaction) -> None:
        await tx.remove_server(server.id)
        await tx.replace_entries(server.id, wanted(server.id))

    with pytest.raises(NotFound):
        await store.ledger.change(remove_and_replace)
    assert len(await store.access.entries(server.id)) == 1, "nothing of it was kept"


async def test_what_other_programs_keep_there_is_never_touched(database_url: str) -> None:
    store = MongoStore(database_url)
    await store.prepare()
    server = await registered(store)
    entries = store._connection.db.aclentries
    stranger = {"resourceId": server.id, "resourceType": "mcpServer", "principalType": "user", "principalId": "x"}
    foreign: list[dict[str, Any]] = [
        {**stranger, "resourceType": "agent", "permBits": 1},
        {**stranger, "principalType": "robot", "permBits": 1},
        {**stranger},
        {**stranger, "principalType": "public", "permBits": 1},
        {**stranger, "principalId": "", "permBits": 1},
    ]
    await entries.insert_many(foreign)
    kept = {"resourceId": server.id, "resourceType": "mcpServer", "principalType": "user", "principalId": "eve"}
    await entries.insert_one({**kept, "permBits": 1, "grantedBy": "another program"})
    eve = AccessEntry(server.id, PrincipalType.USER, "eve", VIEWER)
    await replace_all(store, server.id, [*wanted(server.id), eve])
    stored = await entries.find().to_list(None)
    assert [doc for doc in foreign if doc in stored] == foreign
    assert [doc["grantedBy"] for doc in stored if "grantedBy" in doc] == ["another program"]
    await store.close()

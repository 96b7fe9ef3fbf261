"""What was seen in passing lists, on the twin and on the real store (`registry.ports.sightings`)."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from config.wiring import Store
from registry.errors import StoreUnavailable
from registry.memory import MemoryStore
from registry.mongo.store import MongoStore
from registry.ports import Transaction
from registry.sightings import MOST_CHARS, MOST_NAMES
from tests.contract.test_store import LAB, ODD_NAMES, registered


async def names(store: Store, server_id: str) -> list[str]:
    return sorted(one.name for one in await store.sightings.of(server_id))


async def test_names_are_kept_exactly_and_for_their_server_alone(store: Store) -> None:
    server = await registered(store)
    other = await registered(store, replace(LAB, name="other", path="/other", url="http://127.0.0.1:9/other"))
    odd = [*ODD_NAMES, "\U0001f600" * MOST_CHARS, ""]
    await store.sightings.add(server.id, odd)
    await store.sightings.add(other.id, ["x"])

    assert await names(store, server.id) == sorted(odd)
    assert await names(store, other.id) == ["x"]


async def test_a_name_keeps_the_time_at_which_it_was_first_seen(store: Store) -> None:
    server = await registered(store)
    await store.sightings.add(server.id, ["a"])
    [first] = await store.sightings.of(server.id)
    await store.sightings.add(server.id, ["b", "a"])

    assert abs(first.first_seen_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert {one.name: one for one in await store.sightings.of(server.id)}["a"] == first


async def test_names_that_are_dropped_are_gone_and_others_stay(store: Store) -> None:
    server = await registered(store)
    await store.sightings.add(server.id, ["a", "b", "c"])
    await store.sightings.drop(server.id, {"a", "c", "never seen"})
    await store.sightings.drop("0" * 24, {"b"})

    assert await names(store, server.id) == ["b"]


async def test_what_was_seen_of_a_server_goes_with_it(store: Store) -> None:
    server = await registered(store)
    other = await registered(store, replace(LAB, name="other", path="/other", url="http://127.0.0.1:9/other"))
    await store.sightings.add(server.id, ["a"])
    await store.sightings.add(other.id, ["b"])

    async def remove(tx: Transaction) -> None:
        await tx.remove_server(server.id)

    await store.ledger.change(remove)
    assert (await names(store, server.id), await names(store, other.id)) == ([], ["b"])


async def test_as_many_as_there_may_be_are_kept_at_once(store: Store) -> None:
    server = await registered(store)
    many = [f"t{i:04}" for i in range(MOST_NAMES)]
    await store.sightings.add(server.id, many)

    assert await names(store, server.id) == many


async def test_two_replicas_may_see_the_same_names_at_once(database_url: str) -> None:
    replicas = [MongoStore(database_url) for _ in range(2)]
    for store in replicas:
        await store.prepare()
    server = await registered(replicas[0])
    seen = [f"t{i:03}" for i in range(100)]
    await asyncio.gather(*(store.sightings.add(server.id, seen) for store in replicas))
    assert await names(replicas[0], server.id) == seen
    for store in replicas:
        await store.close()


async def test_what_two_replicas_stored_in_excess_is_not_read(database_url: str) -> None:
    store = MongoStore(database_url)
    await store.prepare()
    server = await registered(store)
    for half in "ab":
        await store.sightings.add(server.id, [f"{half}{i}" for i in range(MOST_NAMES)])
    assert len(await store.sightings.of(server.id)) == MOST_NAMES
    await store.close()


async def test_a_store_that_is_down_says_so() -> None:
    store = MemoryStore()
    store.available = False
    for call in (
        store.sightings.of("srv-1"),
        store.sightings.add("srv-1", ["a"]),
        store.sightings.drop("srv-1", ["a"]),
    ):
        with pytest.raises(StoreUnavailable):
            await call

"""What mirrors need of a store, on the twin and on the real one: the feed, the lease, reads of some servers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from config.wiring import Store
from registry.changes import EVERYTHING, StoreChange, Subject
from registry.entries import Server, ServerEdit, Tool
from registry.mirroring import MirrorState, MirrorStatus, Order
from registry.ports import Transaction
from tests import build
from tests.contract.test_store import LAB, disable, registered, snapshot
from tests.waiting import asked_until

UP = MirrorStatus("weaviate", MirrorState.UP, None, 10, 1, 2, 0.5, 0.25, 3, build.NOW)


@contextlib.asynccontextmanager
async def heard(store: Store) -> AsyncIterator[asyncio.Queue[StoreChange]]:
    """The feed's events as they come, from its first one on."""
    events: asyncio.Queue[StoreChange] = asyncio.Queue()

    async def hear() -> None:
        async with contextlib.aclosing(store.feed.changes()) as changes:
            async for change in changes:
                events.put_nowait(change)

    task = asyncio.create_task(hear())
    try:
        yield events
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_the_feed_begins_with_everything_and_then_tells_each_server_that_changes(store: Store) -> None:
    server = await registered(store)
    async with heard(store) as events:
        assert await events.get() == EVERYTHING
        await disable(store, server, "a")
        assert await events.get() == StoreChange(Subject.SERVER, server.id)
        await snapshot(store, server, Tool("b"))
        assert await events.get() == StoreChange(Subject.SERVER, server.id)


async def test_one_replica_at_a_time_holds_the_lease(store: Store) -> None:
    held = await store.leases.hold("one", 60, [UP])
    assert (held.holder, held.statuses) == ("one", (UP,))
    refused = await store.leases.hold("two", 60, [])
    assert (refused.holder, refused.statuses) == ("one", (UP,))
    assert (await store.leases.hold("one", 60, [])).statuses == ()
    await store.leases.release("two")
    assert (await store.leases.read()).holder == "one"
    await store.leases.release("one")
    assert (await store.leases.read()).holder == ""
    assert (await store.leases.hold("two", 60, [])).holder == "two"


async def test_a_lease_that_was_not_renewed_is_free(store: Store) -> None:
    await store.leases.hold("one", 0.05, [UP])

    async def is_taken() -> bool:
        return (await store.leases.hold("two", 60, [])).holder == "two"

    await asked_until(is_taken)
    assert (await store.leases.hold("one", 60, [])).holder == "two"


async def test_a_lease_that_has_run_out_has_no_holder(store: Store) -> None:
    await store.leases.hold("one", 0.01, [UP])

    async def is_free() -> bool:
        return not (await store.leases.read()).holder

    await asked_until(is_free)
    assert (await store.leases.read()).statuses == (UP,)


async def test_orders_are_counted_and_seen_by_the_holder(store: Store) -> None:
    nothing = {Order.RECONCILE: 0, Order.REBUILD: 0}
    assert (await store.leases.hold("one", 60, [])).orders == nothing
    await store.leases.order(Order.REBUILD)
    await store.leases.order(Order.REBUILD)
    assert (await store.leases.hold("one", 60, [])).orders == {Order.RECONCILE: 0, Order.REBUILD: 2}
    assert (await store.leases.read()).orders == {Order.RECONCILE: 0, Order.REBUILD: 2}


async def test_an_order_may_be_given_before_anybody_has_held_the_lease(store: Store) -> None:
    await store.leases.order(Order.RECONCILE)
    assert (await store.leases.hold("one", 60, [])).holder == "one"


async def test_some_servers_are_read_by_their_ids(store: Store) -> None:
    server = await registered(store)
    assert await store.servers.ids() == {server.id}
    assert list(await store.servers.some([server.id, "nobody", "\ud800"])) == [server]
    assert list(await store.servers.some([])) == []


@pytest.mark.parametrize("ref", ["/" + "x" * 5_000, "x" * 4_000_000, "\ud800", "/\ud800"])
async def test_what_can_be_nobodys_name_is_nobody_and_disturbs_no_other_question(store: Store, ref: str) -> None:
    server = await registered(store)
    wrong, right = replace(build.asked(), server=ref), build.asked()
    facts = await store.policies.read(frozenset({wrong, right}))
    assert facts[wrong].server is None
    assert facts[right].server == server.policy
    assert await store.servers.by_ref(ref) is None


async def test_credentials_are_kept_as_templates(store: Store) -> None:
    server = await registered(store)
    templates = {"Authorization": "Bearer ${SLUICEGATE_CREDENTIAL_X}", "X-Key": "${SLUICEGATE_CREDENTIAL_Y}"}

    async def work(tx: Transaction) -> Server:
        return await tx.save_edit(server.id, ServerEdit(credentials=tuple(templates.items())))

    assert dict((await store.ledger.change(work)).policy.credentials) == templates
    found = await store.servers.by_ref(LAB.path)
    assert found is not None
    assert dict(found.policy.credentials) == templates
    facts = (await store.policies.read(frozenset({build.asked()})))[build.asked()]
    assert facts.server is not None
    assert dict(facts.server.credentials) == templates


@pytest.mark.parametrize("templates", [{"Authorization": "Bearer ${SLUICEGATE_CREDENTIAL_X}"}, {}])
async def test_a_server_may_come_with_credentials(store: Store, templates: dict[str, str]) -> None:
    new = replace(LAB, credentials=tuple(templates.items()))
    assert dict((await registered(store, new)).policy.credentials) == templates

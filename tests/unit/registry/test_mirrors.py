"""What operators see of the mirrors and ask of them; any replica answers for the one that mirrors."""

from collections.abc import Awaitable, Callable

import pytest

from registry.callers import Caller
from registry.errors import Conflict, Forbidden, Invalid, StoreUnavailable, Unauthenticated
from registry.mirroring import MirrorLease, MirrorState, MirrorStatus, Order
from registry.mirrors import MirrorReport, Mirrors
from registry.model import Scope
from tests.control_plane import ControlPlane, caller_of

STATUS = MirrorStatus("weaviate", MirrorState.UP, objects=7)
Asking = Callable[[Mirrors, Caller], Awaitable[object]]


class Adder:
    """`PropertyAdder` that counts."""

    def __init__(self) -> None:
        self.added = 0

    async def add_property(self) -> None:
        self.added += 1


@pytest.fixture
def plane() -> ControlPlane:
    return ControlPlane()


@pytest.fixture
def adder() -> Adder:
    return Adder()


@pytest.fixture
def mirrors(plane: ControlPlane, adder: Adder) -> Mirrors:
    return Mirrors(plane.freshness, plane.indexing, plane.store.leases, adder)


@pytest.fixture
async def root(plane: ControlPlane) -> Caller:
    return await plane.caller("root", Scope.ADMIN)


async def test_a_report_tells_what_the_holder_said_and_how_this_replica_is(
    plane: ControlPlane, mirrors: Mirrors, root: Caller
) -> None:
    lease = await plane.store.leases.hold("other", 60, [STATUS])

    assert await mirrors.report(root) == MirrorReport(lease, plane.indexing.status)
    assert lease == MirrorLease("other", (STATUS,), {Order.RECONCILE: 0, Order.REBUILD: 0})
    async with plane.indexed():
        assert (await mirrors.report(root)).local.state is MirrorState.UP


async def test_without_weaviate_a_report_tells_of_this_replica_alone(plane: ControlPlane, root: Caller) -> None:
    assert await plane.mirrors.report(root) == MirrorReport(MirrorLease(), plane.indexing.status)


@pytest.mark.parametrize("order", Order)
async def test_an_order_reaches_the_lease_and_is_in_the_report(
    plane: ControlPlane, mirrors: Mirrors, root: Caller, order: Order
) -> None:
    await plane.store.leases.hold("other", 60, [STATUS])

    report = await mirrors.order(root, order)

    assert report.lease == await plane.store.leases.read()
    assert report.lease.orders == {**dict.fromkeys(Order, 0), order: 1}


async def test_an_order_that_nobody_would_hear_is_a_conflict(
    plane: ControlPlane, mirrors: Mirrors, root: Caller
) -> None:
    await plane.store.leases.hold("gone", 0, [STATUS])

    with pytest.raises(Conflict, match="no replica is mirroring"):
        await mirrors.order(root, Order.REBUILD)
    assert set((await plane.store.leases.read()).orders.values()) == {0}


async def test_an_order_without_weaviate_is_a_conflict(plane: ControlPlane, root: Caller) -> None:
    with pytest.raises(Conflict, match="no Weaviate is configured"):
        await plane.mirrors.order(root, Order.RECONCILE)


async def test_the_existing_collection_is_given_its_property(mirrors: Mirrors, adder: Adder, root: Caller) -> None:
    await mirrors.prepare_existing(root)

    assert adder.added == 1


async def test_without_an_existing_collection_there_is_nothing_to_prepare(plane: ControlPlane, root: Caller) -> None:
    with pytest.raises(Invalid):
        await plane.mirrors.prepare_existing(root)


@pytest.mark.parametrize(
    "asking",
    [
        lambda mirrors, caller: mirrors.report(caller),
        lambda mirrors, caller: mirrors.order(caller, Order.REBUILD),
        lambda mirrors, caller: mirrors.prepare_existing(caller),
    ],
    ids=["report", "order", "prepare_existing"],
)
async def test_everything_takes_admin_and_does_nothing_without(
    plane: ControlPlane, mirrors: Mirrors, adder: Adder, asking: Asking
) -> None:
    before = await plane.store.leases.hold("other", 60, [])
    ann = await plane.caller("ann", Scope.MCP, Scope.READ, Scope.WRITE, Scope.MANAGE)

    with pytest.raises(Unauthenticated):
        await asking(mirrors, caller_of(None))
    for having in (mirrors, plane.mirrors):  # without the scope nobody learns what is configured
        with pytest.raises(Forbidden) as refused:
            await asking(having, ann)
        assert refused.value.required_scope == Scope.ADMIN
    assert (await plane.store.leases.read(), adder.added) == (before, 0)


async def test_without_the_store_nothing_is_reported(plane: ControlPlane, mirrors: Mirrors, root: Caller) -> None:
    plane.store.available = False

    with pytest.raises(StoreUnavailable):
        await mirrors.report(root)

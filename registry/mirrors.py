"""What operators see of the mirrors and ask of them.

Source: DESIGN 6; issue "Discovery" (`GET /api/v1/mirror`, reconcile, rebuild). Any replica answers: the holder of the
lease writes its state down, and reads orders, with each renewal.
"""

from dataclasses import dataclass

from registry.callers import Caller, with_scope
from registry.errors import Conflict, Invalid
from registry.freshness import Freshness
from registry.mirror import Mirror
from registry.mirroring import MirrorLease, MirrorStatus, Order
from registry.model import Scope
from registry.ports import LeaseStore, PropertyAdder


@dataclass(frozen=True, slots=True)
class MirrorReport:
    """The lease, and this replica's own index."""

    lease: MirrorLease
    local: MirrorStatus


class Mirrors:
    """Every method takes `admin` and raises Unauthenticated, Forbidden and StoreUnavailable.

    `leases` is None where no Weaviate is configured; `existing` where no collection of another registry is.
    """

    def __init__(
        self, freshness: Freshness, local: Mirror, leases: LeaseStore | None, existing: PropertyAdder | None
    ) -> None:
        self._freshness = freshness
        self._local = local
        self._leases = leases
        self._existing = existing

    async def report(self, caller: Caller) -> MirrorReport:
        """How the mirrors are."""
        await self._admit(caller)
        lease = await self._leases.read() if self._leases else MirrorLease()
        return MirrorReport(lease, self._local.status)

    async def order(self, caller: Caller, order: Order) -> MirrorReport:
        """Have the mirroring replica do this within a second. Raises Conflict when none mirrors."""
        await self._admit(caller)
        if self._leases is None:
            raise Conflict("no Weaviate is configured (SLUICEGATE_WEAVIATE_URL), so there is nothing to mirror to")
        if not (await self._leases.read()).holder:
            raise Conflict("no replica is mirroring at the moment; try again")
        await self._leases.order(order)
        return await self.report(caller)

    async def prepare_existing(self, caller: Caller) -> None:
        """Add the property `tool_enabled` to the existing collection. Raises IndexUnavailable and IndexUnusable."""
        await self._admit(caller)
        if self._existing is None:
            raise Invalid("no existing collection is configured (SLUICEGATE_WEAVIATE_EXISTING_COLLECTION)")
        await self._existing.add_property()

    async def _admit(self, caller: Caller) -> None:
        with_scope(await self._freshness.facts(caller.asks()), Scope.ADMIN)

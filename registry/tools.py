"""An owner's changes to the tools of a server.

Source: DESIGN 5 (PATCH, PUT, activity). `registry.lists` computes the lists; here stands who may, and that decision,
row and change are one transaction.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from registry import access
from registry.callers import Caller, check_seen, signed, with_right
from registry.entries import Server
from registry.errors import Conflict, NotFound
from registry.lists import PolicyChange, replaced, switched
from registry.model import Scope
from registry.ports import Ledger, Transaction
from registry.rows import Action, Activity


@dataclass(frozen=True, slots=True)
class Changed:
    """The server as it is now; `ignored` are the names that were given and dropped."""

    server: Server
    ignored: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Order:
    """One change to carry out: how the lists move, and what its row says."""

    decide: Callable[[Server], PolicyChange]
    action: Action
    subject: str | None
    reason: str | None
    seen: Collection[str] | None


class Tools:
    """Switches tools off and on. Every method raises Unauthenticated, Forbidden, NotFound and StoreUnavailable."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def replace(
        self,
        caller: Caller,
        ref: str,
        *,
        disabled: Iterable[str] | None = None,
        read_only: Iterable[str] | None = None,
        reason: str | None = None,
        seen: Collection[str] | None = None,
    ) -> Changed:
        """Replace the disabled list, the read-only list, or both; None leaves a list as it is.

        Args:
            caller: who asks; needs `manage` and SHARE.
            ref: the server's id, or its path.
            disabled: exact names.
            read_only: exact names.
            reason: for the activity row.
            seen: fingerprints of the policies that this change may follow; None: of any.

        Raises:
            Conflict: the stored policy cannot be read, so a change could lose a switch.
            PreconditionFailed: it is none of `seen`.
        """
        order = _Order(lambda s: replaced(s, disabled, read_only), Action.SERVER_UPDATED, None, reason, seen)
        return await self._carry_out(order, caller, ref)

    async def switch(
        self,
        caller: Caller,
        ref: str,
        tool: str,
        *,
        enabled: bool,
        reason: str | None = None,
        seen: Collection[str] | None = None,
    ) -> Changed:
        """Switch one tool, known or not, and touch no other. Raises what `replace` does."""
        action = Action.TOOL_ENABLED if enabled else Action.TOOL_DISABLED
        order = _Order(lambda s: switched(s, tool, enabled=enabled), action, tool, reason, seen)
        return await self._carry_out(order, caller, ref)

    async def _carry_out(self, order: _Order, caller: Caller, ref: str) -> Changed:
        async def work(tx: Transaction) -> Changed:
            facts = await tx.facts(caller.asks(ref))
            _, policy = with_right(facts, access.may_share, Scope.MANAGE)
            check_seen(policy, order.seen)
            server = await _readable(tx, policy.server_id)
            change = order.decide(server)
            if change.changes:
                start = replace(signed(caller, facts, order.action), subject=order.subject, reason=order.reason)
                await tx.record(change_row(start, server, change))
                server = await save_lists(tx, server, change)
            return Changed(server, change.ignored)

        return await self._ledger.change(work)


async def _readable(tx: Transaction, server_id: str) -> Server:
    server = await tx.server(server_id)
    if server is None:
        raise NotFound("no such server")
    if server.policy.fault is not None:
        raise Conflict(f"the stored policy of this server cannot be read: {server.policy.fault}")
    return server


def change_row(start: Activity, server: Server, change: PolicyChange) -> Activity:
    """The row of a change of lists: before, after, and the revision that it makes."""
    return replace(
        start,
        server_id=server.id,
        before=change.before.as_row(),
        after=change.after.as_row(),
        revision=server.policy.revision + 1,
    )


async def save_lists(tx: Transaction, server: Server, change: PolicyChange) -> Server:
    """Store the lists; the last write of its transaction."""
    return await tx.save_policy(
        server.id,
        disabled_tools=change.after.disabled,
        retired_disabled_tools=change.after.retired,
        read_only_tools=change.after.read_only,
    )

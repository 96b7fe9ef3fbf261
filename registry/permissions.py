"""Who holds which rights on a server.

Source: DESIGN 2 (Rights), DESIGN 5 (`aclentries`). Entries for other kinds of resources, and those that another program
stored and that cannot be read, grant nothing here and are never touched.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from registry import access, shown
from registry.callers import Caller, check_named, signed, with_right
from registry.errors import Conflict, Invalid
from registry.freshness import FactSource
from registry.model import EDITOR, OWNER, VIEWER, AccessEntry, Facts, Permission, PrincipalType, Scope
from registry.ports import AccessStore, Ledger, Transaction
from registry.rows import Action

MOST_ENTRIES = 1_000
"""On one server; a decision reads those that name its caller, an owner reads all."""

ROLES: Mapping[str, Permission] = {"viewer": VIEWER, "editor": EDITOR, "owner": OWNER}
"""The names of bits, for people; a mixture beside these has none."""

_SCOPES = (Scope.MANAGE, Scope.ADMIN)


class Permissions:
    """The access entries of servers. Every method raises Unauthenticated, Forbidden, NotFound and StoreUnavailable."""

    def __init__(self, ledger: Ledger, store: AccessStore, facts: FactSource) -> None:
        self._ledger = ledger
        self._store = store
        self._facts = facts

    async def list(self, caller: Caller, ref: str) -> Sequence[AccessEntry]:
        """All entries of one server; takes what setting them takes."""
        facts = await self._facts.facts(caller.asks(ref))
        _, policy = with_right(facts, access.may_set_permissions, *_SCOPES)
        return _ordered(await self._store.entries(policy.server_id))

    async def replace(
        self, caller: Caller, ref: str, entries: Sequence[AccessEntry], reason: str | None = None
    ) -> Sequence[AccessEntry]:
        """Make these all the entries of one server; their `server_id` is not looked at.

        Raises:
            Invalid: an entry makes no sense, or two name the same principal.
            Conflict: nobody would hold SHARE any more, so that nobody but an admin could change anything.
        """
        _check(entries)

        async def work(tx: Transaction) -> Sequence[AccessEntry]:
            facts = await tx.facts(caller.asks(ref))
            _, policy = with_right(facts, access.may_set_permissions, *_SCOPES)
            check_named(ref, policy)
            wanted = _ordered(_of(policy.server_id, entry) for entry in entries)
            _check_owned(wanted, facts)
            before = _ordered(await tx.entries(policy.server_id))
            if before != wanted:
                row = replace(signed(caller, facts, Action.PERMISSION_SET), server_id=policy.server_id, reason=reason)
                await tx.record(replace(row, before=shown.of_entries(before), after=shown.of_entries(wanted)))
                await tx.replace_entries(policy.server_id, wanted)
            return wanted

        return await self._ledger.change(work)


def _of(server_id: str, entry: AccessEntry) -> AccessEntry:
    """The entry as a store keeps it, whose times are whole milliseconds."""
    ends = entry.expires_at
    if ends is not None:
        ends = ends.replace(microsecond=ends.microsecond // 1_000 * 1_000)
    return replace(entry, server_id=server_id, expires_at=ends)


def _check(entries: Sequence[AccessEntry]) -> None:
    if len(entries) > MOST_ENTRIES:
        raise Invalid(f"a server has at most {MOST_ENTRIES} entries", field="permissions")
    named: set[tuple[PrincipalType, str]] = set()
    for number, entry in enumerate(entries):
        principal = (entry.principal_type, entry.principal_id)
        if (fault := _fault(entry, is_named=principal in named)) is not None:
            raise Invalid(f"permissions.{number}: {fault}", field="permissions")
        named.add(principal)


def _fault(entry: AccessEntry, *, is_named: bool) -> str | None:
    if Permission.VIEW not in entry.permissions:
        return "an entry without VIEW grants nothing"
    if (entry.principal_type is PrincipalType.PUBLIC) != (entry.principal_id == ""):
        return "public has no id, and every other principal has one"
    return "an entry before it names the same principal" if is_named else None


def _check_owned(wanted: Sequence[AccessEntry], facts: Facts) -> None:
    if access.may_administer(facts):
        return  # who can mend it
    lasting = (entry for entry in wanted if entry.principal_type is not PrincipalType.PUBLIC)
    if not any(
        Permission.SHARE in entry.permissions and not access.has_ended(entry.expires_at, facts.now) for entry in lasting
    ):
        raise Conflict("nobody would hold SHARE any more, and nobody but an admin could change that")


def _ordered(entries: Any) -> Sequence[AccessEntry]:
    return sorted(entries, key=lambda entry: (entry.principal_type, entry.principal_id, entry.permissions))

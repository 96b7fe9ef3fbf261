"""Changes what a server is, beside its tools: texts, address, how it is treated.

Source: DESIGN 2 (Rights), DESIGN 5 (`PATCH /api/v1/servers/{id}`). One change may touch several fields; each asks for
its own right, and all are made or none.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from registry import access
from registry.callers import Caller, check_seen, signed, with_right
from registry.entries import Server, ServerEdit
from registry.errors import Forbidden, Invalid, NotFound
from registry.freshness import FactSource
from registry.model import Facts, Scope, ServerPolicy
from registry.paths import path_fault
from registry.ports import Ledger, Transaction
from registry.refresh import Cause, Refresher
from registry.rows import Action
from registry.terms import Terms, check_credentials, check_url

_TEXTS = frozenset({"title", "description", "tags"})
_ADDRESS = frozenset({"url", "path"})
_TREATMENT = frozenset({"enabled", "trusted", "passing"})


class Editor:
    """Edits servers. Raises Unauthenticated, Forbidden, NotFound and StoreUnavailable."""

    def __init__(self, ledger: Ledger, facts: FactSource, refresher: Refresher, terms: Terms) -> None:
        self._ledger = ledger
        self._facts = facts
        self._refresher = refresher
        self._terms = terms

    async def edit(
        self,
        caller: Caller,
        ref: str,
        edit: ServerEdit,
        *,
        reason: str | None = None,
        seen: Collection[str] | None = None,
    ) -> Server:
        """Make the changes that `edit` names, or none; a new url has its tools asked for.

        Args:
            caller: who asks; texts take `manage` and EDIT, the address what registering takes and EDIT, credentials
                `admin`, anything else `manage` and SHARE.
            ref: the server's id, or its path.
            edit: what shall become of it.
            reason: for the activity row.
            seen: as for `Tools.replace`.

        Raises:
            Invalid: a value cannot be used; names the field.
            Conflict: the path is taken.
            PreconditionFailed: the policy is none of `seen`.
        """
        self._entitled(await self._facts.facts(caller.asks(ref)), edit.given())  # who may not is told nothing of names
        await self._check(edit)

        async def work(tx: Transaction) -> tuple[Server, Cause | None]:
            facts = await tx.facts(caller.asks(ref))
            policy = self._entitled(facts, edit.given())
            check_seen(policy, seen)
            server = await tx.server(policy.server_id)
            if server is None:
                raise NotFound("no such server")
            before = _as_is(server, edit)
            after = {name: value for name, value in edit.given().items() if value != before[name]}
            if not after:
                return server, None
            row = replace(signed(caller, facts, Action.SERVER_UPDATED), server_id=server.id, reason=reason)
            revision = policy.revision + (not _TEXTS.issuperset(after))
            await tx.record(replace(row, before=_shown(before, after), after=_shown(after, after), revision=revision))
            cause = Cause(row.actor, caller.request_id) if "url" in after else None
            return await tx.save_edit(server.id, edit), cause

        server, cause = await self._ledger.change(work)
        return server if cause is None else await self._refresher.refresh(server.id, cause)

    async def _check(self, edit: ServerEdit) -> None:
        if edit.path is not None and (fault := path_fault(edit.path)) is not None:
            raise Invalid(fault, field="path")
        if edit.credentials is not None:
            check_credentials(dict(edit.credentials), self._terms)
        if edit.url is not None:
            await check_url(edit.url, self._terms)

    def _entitled(self, facts: Facts, given: Collection[str]) -> ServerPolicy:
        if not _TEXTS.isdisjoint(given):
            with_right(facts, access.may_edit, Scope.MANAGE)
        if not _TREATMENT.isdisjoint(given):
            with_right(facts, access.may_share, Scope.MANAGE)
        if not _ADDRESS.isdisjoint(given):
            with_right(facts, access.may_view, self._terms.scope, Scope.ADMIN)
            if not access.may_move(facts, self._terms.scope):
                raise Forbidden("the permission for this is missing on this server", required_permission="EDIT")
        if "credentials" in given:
            with_right(facts, access.may_view, Scope.ADMIN)  # variables of the environment are the operator's
        return with_right(facts, access.may_view, Scope.MANAGE, Scope.ADMIN)[1]


def _as_is(server: Server, edit: ServerEdit) -> dict[str, Any]:
    """What the server has in the fields that the edit names, in the same form."""
    policy = server.policy
    texts = {"title": server.title, "description": server.description, "tags": server.tags}
    address = {"url": server.url, "path": server.path, "credentials": policy.credentials}
    passing = {name: getattr(policy.passing, name) for name in edit.passing or ()}
    return {**texts, **address, "enabled": policy.enabled, "trusted": policy.trusted, "passing": passing}


def _shown(values: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """For an activity row. Credentials are templates, never a secret."""
    return {name: _plain(name, values[name]) for name in names}


def _plain(name: str, value: Any) -> Any:
    if name in ("credentials", "passing"):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value

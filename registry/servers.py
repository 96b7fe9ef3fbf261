"""Registers, lists, shows and refreshes servers.

Source: DESIGN 2 (rights), DESIGN 5 (registry).
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from registry import access, shown
from registry.callers import Caller, authenticated, check_named, signed, with_right, with_scope
from registry.entries import NewServer, Server, ServerType
from registry.errors import Forbidden, Invalid, NotFound
from registry.freshness import Freshness
from registry.model import OWNER, AccessEntry, ApiKey, Facts, PrincipalType, Scope
from registry.paths import path_fault
from registry.ports import Ledger, ServerStore, Transaction
from registry.refresh import Cause, Refresher
from registry.rows import Action, Activity
from registry.terms import Terms, check_credentials, check_url

_READING = (Scope.READ, Scope.MANAGE, Scope.ADMIN)


class Servers:
    """The servers behind us. Every method raises Unauthenticated, Forbidden and StoreUnavailable."""

    def __init__(
        self,
        ledger: Ledger,
        store: ServerStore,
        freshness: Freshness,
        refresher: Refresher,
        terms: Terms | None = None,
    ) -> None:
        self._ledger = ledger
        self._store = store
        self._freshness = freshness
        self._refresher = refresher
        self._terms = terms if terms is not None else Terms()

    async def create(self, caller: Caller, new: NewServer) -> Server:
        """Register a server, give its creator OWNER, and refresh it once.

        A first refresh that fails does not undo the registration; `refresh_error` of the result says why.

        Raises:
            Invalid: the path, url or type cannot be used, or no downstream may be there; names the field.
            Conflict: the path or the downstream is taken.
        """
        self._registrant(await self._freshness.facts(caller.asks()), new)
        check(new)
        await check_url(new.url, self._terms)
        check_credentials(dict(new.credentials), self._terms)

        async def work(tx: Transaction) -> tuple[str, str]:
            facts = await tx.facts(caller.asks())
            key = self._registrant(facts, new)
            server = await tx.add_server(new)
            await tx.add_entry(AccessEntry(server.id, PrincipalType.USER, key.user, OWNER))
            start = signed(caller, facts, Action.SERVER_CREATED)
            await tx.record(_created(start, server, is_duplicate=new.allows_duplicate))
            return server.id, key.actor

        server_id, actor = await self._ledger.change(work)
        return await self._refresher.refresh(server_id, Cause(actor, caller.request_id))

    def _registrant(self, facts: Facts, new: NewServer) -> ApiKey:
        key = authenticated(facts)
        if new.credentials or new.allows_duplicate:
            with_scope(facts, Scope.ADMIN)  # the environment is the operator's, and a second way in is too
        if not access.may_register(facts, self._terms.scope):
            raise Forbidden("the key may not register servers", required_scope=self._terms.scope)
        if not key.user:
            raise Forbidden("a key without a user cannot own a server")
        return key

    async def list(self, caller: Caller) -> Sequence[Server]:
        """The servers that this caller may read, by path. One batched read decides on all of them."""
        with_scope(await self._freshness.facts(caller.asks()), *_READING)
        servers = await self._store.all()
        facts = await asyncio.gather(*(self._freshness.facts(caller.asks(s.id)) for s in servers))
        return [s for s, known in zip(servers, facts, strict=True) if access.may_read(known)]

    async def get(self, caller: Caller, ref: str) -> Server:
        """One server by id or path, with its tools. Raises NotFound."""
        facts = await self._freshness.facts(caller.asks(ref))
        _, policy = with_right(facts, access.may_read, *_READING)
        server = await self._store.by_ref(policy.server_id)
        if server is None:
            raise NotFound("no such server")
        return server

    async def delete(self, caller: Caller, ref: str, reason: str | None = None) -> None:
        """Remove the server and its access entries; nobody reaches it any more.

        Raises:
            NotFound: no such server.
            Conflict: two servers are stored under the path that `ref` is.
        """

        async def work(tx: Transaction) -> None:
            facts = await tx.facts(caller.asks(ref))
            _, policy = with_right(facts, access.may_delete, Scope.MANAGE)
            check_named(ref, policy)
            server = await _stored(tx, policy.server_id)
            start = replace(signed(caller, facts, Action.SERVER_DELETED), server_id=server.id, reason=reason)
            before = shown.of_removed(server, await tx.entries(server.id))
            await tx.record(replace(start, before=before, revision=policy.revision))
            await tx.remove_server(server.id)

        await self._ledger.change(work)

    async def refresh(self, caller: Caller, ref: str) -> Server:
        """Ask the downstream for its tools again; its failure is in `refresh_error` of the result.

        Raises NotFound.
        """
        facts = await self._freshness.facts(caller.asks(ref))
        key, policy = with_right(facts, access.may_edit, Scope.MANAGE)
        return await self._refresher.refresh(policy.server_id, Cause(key.actor, caller.request_id, caller))


async def _stored(tx: Transaction, server_id: str) -> Server:
    server = await tx.server(server_id)
    if server is None:
        raise NotFound("no such server")
    return server


def _created(start: Activity, server: Server, *, is_duplicate: bool) -> Activity:
    after: dict[str, Any] = {"name": server.name, "path": server.path, "type": server.type}
    after |= {"allows_duplicate": True} if is_duplicate else {}
    return replace(start, server_id=server.id, after=after, revision=server.policy.revision)


def check(new: NewServer) -> None:
    """Raises Invalid, naming the field, when a server cannot be registered like this, whatever its url."""
    if new.type is ServerType.SSE:
        raise Invalid("servers of type 'sse' are not supported yet", field="type")
    if (fault := path_fault(new.path)) is not None:
        raise Invalid(fault, field="path")

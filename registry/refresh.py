"""Asks a downstream for its tools, stores the snapshot, prunes.

Source: DESIGN 5 (Refresh). The downstream is asked outside any transaction; what it said is applied to the lists as
stored at that moment. A failed refresh keeps the last snapshot and says so.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from registry import access
from registry.callers import Caller, with_right
from registry.entries import Server, Snapshot
from registry.errors import DownstreamFailed, NotFound
from registry.lists import PolicyChange, pruned
from registry.model import Asked, Scope
from registry.ports import CatalogueSource, Ledger, ServerStore, Transaction
from registry.rows import Action, Activity
from registry.tools import change_row, save_lists


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a refresh runs: whom its row names, in which request.

    `editor` is the caller whose right to refresh is decided again in the transaction; None when the right came from
    elsewhere (a registration, a timer).
    """

    actor: str
    request_id: str | None = None
    editor: Caller | None = None


class Refresher:
    """Brings the stored tools of a server up to date."""

    def __init__(
        self,
        ledger: Ledger,
        source: CatalogueSource,
        store: ServerStore,
        on_result: Callable[[bool], None] = lambda _succeeded: None,
    ) -> None:
        self._ledger = ledger
        self._on_result = on_result
        self._source = source
        self._store = store

    async def refresh(self, server_id: str, cause: Cause) -> Server:
        """Ask the downstream and store what it said; a downstream's failure is in `refresh_error` of the result.

        Raises:
            NotFound: the server is not there, or not there any more.
            Unauthenticated, Forbidden: `cause.editor` may not, by the time the answer is stored.
            StoreUnavailable: nothing was stored, or (OutcomeUnknown) it may have been.
        """
        server = await self._store.by_ref(server_id)
        if server is None:
            raise NotFound("no such server")
        try:
            snapshot = await self._source.snapshot(server.policy)
        except DownstreamFailed as exc:
            self._on_result(False)
            return await self._ledger.change(_Failure(server_id, cause, str(exc)))
        self._on_result(True)
        return await self._ledger.change(_Success(server_id, cause, snapshot))


@dataclass(frozen=True, slots=True)
class _Failure:
    """The transaction that notes a failed refresh."""

    server_id: str
    cause: Cause
    error: str

    async def __call__(self, tx: Transaction) -> Server:
        await _server(tx, self.server_id, self.cause)
        return await tx.save_refresh_error(self.server_id, self.error)


@dataclass(frozen=True, slots=True)
class _Success:
    """The transaction that stores a snapshot and prunes."""

    server_id: str
    cause: Cause
    snapshot: Snapshot

    async def __call__(self, tx: Transaction) -> Server:
        server = await _server(tx, self.server_id, self.cause)
        change = pruned(server, self.snapshot)
        if change.changes or server.tools != self.snapshot.tools:
            facts = await tx.facts(Asked(None))
            start = Activity(facts.now, self.cause.actor, Action.TOOLS_REFRESHED, request_id=self.cause.request_id)
            await tx.record(_row(start, server, self.snapshot, change))
        saved = await tx.save_snapshot(self.server_id, self.snapshot)
        return await save_lists(tx, server, change) if change.changes else saved


async def _server(tx: Transaction, server_id: str, cause: Cause) -> Server:
    if cause.editor is not None:
        with_right(await tx.facts(cause.editor.asks(server_id)), access.may_edit, Scope.MANAGE)
    server = await tx.server(server_id)
    if server is None:
        raise NotFound("no such server")
    return server


def _row(start: Activity, server: Server, snapshot: Snapshot, change: PolicyChange) -> Activity:
    after: dict[str, Any] = {"tools": len(snapshot.names)}
    if not change.changes:
        return replace(start, server_id=server.id, before={"tools": len(server.tools)}, after=after)
    after |= {"retired": sorted(change.retired), "returned": sorted(change.returned)}
    return replace(change_row(start, server, change), before={"tools": len(server.tools)}, after=after)

"""The authority, as use cases see it. A method that may fail for want of the store raises StoreUnavailable."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from typing import Protocol, TypeVar

from registry.changes import StoreChange
from registry.entries import NewServer, Server, ServerEdit, Snapshot
from registry.mirroring import MirrorLease, MirrorStatus, Order
from registry.model import AccessEntry, ApiKey, Asked, Facts
from registry.rows import Activity

T = TypeVar("T")


class PolicyReader(Protocol):
    """One consistent read of everything that decides."""

    async def read(self, asked: frozenset[Asked]) -> Mapping[Asked, Facts]:
        """Read the facts for all of `asked` from one read-only transaction; every element has its answer.

        A path that two documents hold comes back as a server with a fault. Raises StoreUnavailable.
        """
        ...


class Transaction(Protocol):
    """One attempt at a change: reads see one state, writes are all kept or none.

    The work that uses it may run several times, so it must have no effect but through these methods. The policy
    document is written last (DESIGN 5).
    """

    async def facts(self, asked: Asked) -> Facts:
        """The facts as of this transaction."""
        ...

    async def server(self, ref: str) -> Server | None:
        """One server by id, or by path when `ref` starts with `/`; None when there is none."""
        ...

    async def key(self, key_id: str) -> ApiKey | None:
        """One key by id."""
        ...

    async def admin_keys(self) -> Sequence[ApiKey]:
        """All keys with the scope `admin`, disabled and expired ones included; changes that ask for them take turns."""
        ...

    async def any_key(self) -> bool:
        """True when at least one key is stored."""
        ...

    async def add_server(self, new: NewServer) -> Server:
        """Store a new server, enabled, never refreshed.

        Raises Conflict when its path is taken, or its downstream and the new one does not allow that.
        """
        ...

    async def add_entry(self, entry: AccessEntry) -> None:
        """Store one access entry."""
        ...

    async def entries(self, server_id: str) -> Sequence[AccessEntry]:
        """All access entries of one server that can be read, in any order."""
        ...

    async def replace_entries(self, server_id: str, entries: Sequence[AccessEntry]) -> None:
        """Make these all the entries of one server; those that cannot be read stay as they are.

        Changes of one server's entries take turns. Raises NotFound when there is no such server.
        """
        ...

    async def remove_server(self, server_id: str) -> None:
        """Remove the server, its entries, what was seen of it, and what reserves its path for it.

        Grants of keys stay: no id comes again.
        """
        ...

    async def add_key(self, key: ApiKey) -> None:
        """Store a new key. Raises Conflict when that hash is there already."""
        ...

    async def save_key(self, key: ApiKey) -> None:
        """Replace the stored key of this id."""
        ...

    async def record(self, row: Activity) -> None:
        """Store one activity row."""
        ...

    async def save_policy(
        self,
        server_id: str,
        *,
        disabled_tools: frozenset[str],
        retired_disabled_tools: frozenset[str],
        read_only_tools: frozenset[str],
    ) -> Server:
        """Store the three lists, raise the revision by one, return the server as it is now."""
        ...

    async def save_edit(self, server_id: str, edit: ServerEdit) -> Server:
        """Store the fields that are given; all but the texts raise the revision by one.

        Raises Conflict when a new path or downstream is taken.
        """
        ...

    async def save_snapshot(self, server_id: str, snapshot: Snapshot) -> Server:
        """Store a good snapshot: tools, capabilities, time by the store's clock; clears the refresh error."""
        ...

    async def save_refresh_error(self, server_id: str, error: str) -> Server:
        """Note a failed refresh; the last snapshot stays."""
        ...


class Ledger(Protocol):
    """Runs changes."""

    async def change(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `work` in a transaction, again on a transient conflict, until it commits or the deadline comes.

        It runs in a task of its own: a caller that goes away does not undo it. What `work` raises aborts the
        transaction and comes through. Raises StoreUnavailable (nothing was stored), OutcomeUnknown (it may have been).
        """
        ...


class ServerStore(Protocol):
    """Reads servers for people; decisions read through PolicyReader."""

    async def by_ref(self, ref: str) -> Server | None:
        """One server by id, or by path when `ref` starts with `/`."""
        ...

    async def all(self) -> Sequence[Server]:
        """All servers, by path, unreadable ones included (see `policy.fault`)."""
        ...

    async def ids(self) -> frozenset[str]:
        """The ids of all servers."""
        ...

    async def some(self, ids: Collection[str]) -> Sequence[Server]:
        """Those of these ids that are there, in any order. For a bounded number: each can be a megabyte."""
        ...


class AccessStore(Protocol):
    """Reads access entries for people."""

    async def entries(self, server_id: str) -> Sequence[AccessEntry]:
        """All access entries of one server that can be read, in any order."""
        ...


class KeyStore(Protocol):
    """Reads keys; never a secret."""

    async def all(self) -> Sequence[ApiKey]:
        """All keys, oldest first."""
        ...


class ActivityStore(Protocol):
    """Reads the activity log."""

    async def newest(self, limit: int) -> Sequence[Activity]:
        """The newest rows, newest first."""
        ...


class Health(Protocol):
    """Is the authority there?"""

    async def ping(self) -> None:
        """Return when it answers. Raises StoreUnavailable."""
        ...


class ChangeFeed(Protocol):
    """Hears of every change in the store, whoever makes it."""

    def changes(self) -> AsyncGenerator[StoreChange, None]:
        """Endless. EVERYTHING first, and again whenever changes may have been missed; breaks are mended inside."""
        ...


class LeaseStore(Protocol):
    """The lease by which one replica at a time mirrors. Every method raises StoreUnavailable."""

    async def hold(self, holder: str, ttl_s: float, statuses: Sequence[MirrorStatus]) -> MirrorLease:
        """Take the lease if it is free, keep it if it is `holder`'s, for `ttl_s` from now by the store's clock.

        `statuses` are stored if `holder` holds it then. Returns the lease as it is now, whoever holds it.
        """
        ...

    async def release(self, holder: str) -> None:
        """Give it up, if `holder` holds it."""
        ...

    async def read(self) -> MirrorLease:
        """The lease as it is now."""
        ...

    async def order(self, order: Order) -> None:
        """Count this order up; the holder sees it when it next renews."""
        ...

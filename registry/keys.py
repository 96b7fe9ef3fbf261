"""Makes, lists, disables and enables keys.

Source: DESIGN 2 (rights), DESIGN 5 (Keys). A key's text is returned once, by the call that makes it, and is stored
nowhere; rows and answers carry ids.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from registry import access
from registry.callers import Caller, authenticated, signed, with_scope
from registry.credentials import is_well_formed, key_hash, new_key
from registry.entries import Server
from registry.errors import Conflict, Forbidden, Invalid, NotFound
from registry.freshness import Freshness
from registry.model import ALL_TOOLS, DEFAULT_SCOPES, ApiKey, Asked, Facts, Grant, Scope
from registry.ports import KeyStore, Ledger, Transaction
from registry.rows import Action, Activity
from registry.widths import excess

BOOTSTRAP_ID = "bootstrap"
"""One fixed id, so that of two replicas that start on an empty store only one makes the first key."""


@dataclass(frozen=True, slots=True)
class ToolsOf:
    """Tools of one server, named by id or path, that a new key shall reach; `"*"` is all of them."""

    server: str
    tools: frozenset[str] | Literal["*"]


@dataclass(frozen=True, slots=True)
class NewKey:
    """What is asked for. No scopes: the default ones. None for whom it acts for: as its creator."""

    name: str
    scopes: tuple[str, ...] = ()
    user: str | None = None
    groups: frozenset[str] | None = None
    roles: frozenset[str] | None = None
    expires_at: datetime | None = None
    tools: tuple[ToolsOf, ...] | Literal["*"] = ALL_TOOLS


@dataclass(frozen=True, slots=True)
class MadeKey:
    """A new key and its text, which nobody can have again."""

    key: ApiKey
    secret: str


class Keys:
    """The keys. Every method but `bootstrap` raises Unauthenticated, Forbidden and StoreUnavailable."""

    def __init__(self, ledger: Ledger, store: KeyStore, freshness: Freshness) -> None:
        self._ledger = ledger
        self._store = store
        self._freshness = freshness

    async def own(self, caller: Caller) -> ApiKey:
        """The caller's key."""
        return authenticated(await self._freshness.facts(caller.asks()))

    async def create(self, caller: Caller, new: NewKey) -> MadeKey:
        """Make a key, no wider than the caller's own; only `admin` says for whom it acts.

        Raises:
            Invalid: a scope, server or tool is unknown, or the key would have expired already.
        """
        scopes = known_scopes(new.scopes)
        secret, key_id = new_key(), uuid.uuid4().hex

        async def work(tx: Transaction) -> ApiKey:
            facts = await tx.facts(caller.asks())
            own = with_scope(facts, *_scopes_for(new))
            key = replace(
                _key_like(own, new, facts.now),
                id=key_id,
                hash=key_hash(secret),
                scopes=scopes,
                tools=await _grants(tx, caller, new.tools),
            )
            _check_width(key, own)
            await tx.record(_key_row(signed(caller, facts, Action.KEY_CREATED), None, key))
            await tx.add_key(key)
            return key

        return MadeKey(await self._ledger.change(work), secret)

    async def list(self, caller: Caller) -> Sequence[ApiKey]:
        """All keys for `admin`, else those that act for the same user; oldest first."""
        facts = await self._freshness.facts(caller.asks())
        own = with_scope(facts, Scope.MANAGE, Scope.ADMIN)
        return [key for key in await self._store.all() if _concerns(facts, own, key)]

    async def set_enabled(self, caller: Caller, key_id: str, *, enabled: bool, reason: str | None = None) -> ApiKey:
        """Disable or enable a key of one's own user; `admin` any key. What is set already changes nothing.

        Raises:
            NotFound: no such key, or not one of one's own.
            Forbidden: it would enable a key that is wider than the caller's.
            Conflict: it would disable the last key with `admin` that can be used.
        """

        async def work(tx: Transaction) -> ApiKey:
            facts = await tx.facts(caller.asks())
            own = with_scope(facts, Scope.MANAGE, Scope.ADMIN)
            key = await tx.key(key_id)
            if key is None or not _concerns(facts, own, key):
                raise NotFound("no such key")
            if key.enabled is enabled:
                return key
            if enabled and not access.may_administer(facts):
                _check_width(key, own)
            if not enabled and Scope.ADMIN in key.scopes:
                _check_not_last(key, await tx.admin_keys(), facts.now)
            changed = replace(key, enabled=enabled)
            row = replace(signed(caller, facts, Action.KEY_UPDATED), reason=reason)
            await tx.record(_key_row(row, key, changed))
            await tx.save_key(changed)
            return changed

        return await self._ledger.change(work)

    async def bootstrap(self, secret: str | None) -> str | None:
        """Make the first key, with every scope and acting for `admin`, when no key is stored.

        Args:
            secret: the key's text, None to have one made.

        Returns:
            The text of the key that was made; None when keys were there already.

        Raises:
            Invalid: `secret` is not `sg_` and 43 base64url characters.
        """
        text = secret if secret is not None else new_key()
        if not is_well_formed(text):
            raise Invalid("the bootstrap key must be 'sg_' and 43 base64url characters")

        async def work(tx: Transaction) -> str | None:
            if await tx.any_key():
                return None
            key = _first_key(text, (await tx.facts(Asked(None))).now)
            await tx.record(_key_row(Activity(key.created_at, key.actor, Action.KEY_CREATED), None, key))
            await tx.add_key(key)
            return text

        try:
            return await self._ledger.change(work)
        except Conflict:
            return None  # another replica made it in the same moment

    async def reset_admin(self) -> str:
        """Make another key with every scope that acts for `admin`, for whoever has the store; returns its text."""
        secret, key_id = new_key(), uuid.uuid4().hex

        async def work(tx: Transaction) -> None:
            now = (await tx.facts(Asked(None))).now
            key = replace(_first_key(secret, now), id=key_id, name="reset-admin", created_by="cli")
            await tx.record(_key_row(Activity(now, "cli", Action.KEY_CREATED), None, key))
            await tx.add_key(key)

        await self._ledger.change(work)
        return secret


def known_scopes(names: Sequence[str]) -> frozenset[Scope]:
    """The scopes of these names, the default ones for none. Raises Invalid: `unknown scope: <name>`."""
    unknown = next((name for name in names if name not in set(Scope)), None)
    if unknown is not None:
        raise Invalid(f"unknown scope: {unknown}")
    return frozenset(map(Scope, names)) or DEFAULT_SCOPES


def _scopes_for(new: NewKey) -> tuple[Scope, ...]:
    """Of which one is needed: only `admin` says for whom a key acts."""
    says_for_whom = (new.user, new.groups, new.roles) != (None, None, None)
    return (Scope.ADMIN,) if says_for_whom else (Scope.MANAGE, Scope.ADMIN)


def _key_like(own: ApiKey, new: NewKey, now: datetime) -> ApiKey:
    if new.expires_at is not None and new.expires_at <= now:
        raise Invalid("the key would have expired already", field="expires_at")
    return replace(
        own,
        name=new.name,
        user=own.user if new.user is None else new.user,
        groups=own.groups if new.groups is None else new.groups,
        roles=own.roles if new.roles is None else new.roles,
        expires_at=new.expires_at,
        enabled=True,
        created_at=now,
        created_by=own.actor,
    )


async def _grants(
    tx: Transaction, caller: Caller, wanted: tuple[ToolsOf, ...] | Literal["*"]
) -> tuple[Grant, ...] | Literal["*"]:
    if wanted == ALL_TOOLS:
        return ALL_TOOLS
    return tuple([await _grant(tx, caller, tools_of) for tools_of in wanted])


async def _grant(tx: Transaction, caller: Caller, wanted: ToolsOf) -> Grant:
    facts = await tx.facts(caller.asks(wanted.server))
    server = await tx.server(wanted.server) if access.may_view(facts) else None
    if server is None:
        raise Invalid(f"unknown server: {wanted.server}")
    if wanted.tools != ALL_TOOLS and (unknown := wanted.tools - _nameable(server)):
        raise Invalid(f"unknown tool: {min(unknown)}")
    return Grant(server.id, wanted.tools)


def _nameable(server: Server) -> frozenset[str]:
    return server.tool_names | server.policy.disabled_tools | server.policy.retired_disabled_tools


def _check_width(key: ApiKey, own: ApiKey) -> None:
    if (sentence := excess(key, own)) is not None:
        raise Forbidden(sentence)


def _check_not_last(key: ApiKey, admin_keys: Sequence[ApiKey], now: datetime) -> None:
    usable = [one for one in admin_keys if access.valid_key(Facts(now, one)) is not None]
    if [one.id for one in usable] == [key.id]:
        raise Conflict(
            "this is the last usable key with 'admin'; make another one first (`sluicegate keys reset-admin` makes one "
            "for whoever has the store)"
        )


def _concerns(facts: Facts, own: ApiKey, key: ApiKey) -> bool:
    return access.may_administer(facts) or key.id == own.id or (bool(own.user) and key.user == own.user)


def _first_key(secret: str, now: datetime) -> ApiKey:
    return ApiKey(
        id=BOOTSTRAP_ID,
        hash=key_hash(secret),
        name="bootstrap",
        user="admin",
        groups=frozenset(),
        roles=frozenset(),
        scopes=frozenset(Scope),
        enabled=True,
        created_at=now,
        created_by="admin",
    )


def _key_row(start: Activity, before: ApiKey | None, after: ApiKey) -> Activity:
    if before is not None:
        return replace(
            start,
            subject=after.id,
            before={"enabled": before.enabled},
            after={"enabled": after.enabled},
        )
    shown = {"name": after.name, "user": after.user, "scopes": sorted(after.scopes)}
    return replace(start, subject=after.id, after=shown)

"""Making, listing, disabling keys; the bootstrap key."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import pytest

from registry.credentials import is_well_formed, key_hash, new_key
from registry.errors import Conflict, Forbidden, Invalid, NotFound, Unauthenticated
from registry.keys import BOOTSTRAP_ID, Keys, NewKey, ToolsOf, known_scopes
from registry.model import DEFAULT_SCOPES, Grant, Scope
from registry.ports import Transaction
from registry.rows import Action
from tests.control_plane import CREATED, ControlPlane, caller_of

T = TypeVar("T")
AGENT = (Scope.MCP, Scope.READ, Scope.WRITE)


@pytest.fixture
def plane() -> ControlPlane:
    return ControlPlane()


async def test_a_made_key_works_and_only_its_hash_is_stored(plane: ControlPlane) -> None:
    made = await plane.keys.create(await plane.caller("ann", *AGENT, Scope.MANAGE), NewKey("agent"))
    assert is_well_formed(made.secret)
    assert made.key.hash == key_hash(made.secret)
    assert (made.key.user, made.key.created_by, made.key.scopes) == ("ann", "ann", DEFAULT_SCOPES)
    assert await plane.keys.own(caller_of(made.secret)) == made.key
    [row] = await plane.rows()
    assert (row.actor, row.action, row.subject) == ("ann", Action.KEY_CREATED, made.key.id)
    assert made.secret not in repr(row)
    assert made.key.hash not in repr(row)


@pytest.mark.parametrize("scopes", [AGENT, (Scope.READ,)])
async def test_an_agents_key_makes_no_key(plane: ControlPlane, scopes: tuple[Scope, ...]) -> None:
    with pytest.raises(Forbidden) as refused:
        await plane.keys.create(await plane.caller("ann", *scopes), NewKey("x"))
    assert refused.value.required_scope == Scope.MANAGE


@pytest.mark.parametrize("scopes", [("admin",), ("manage", "admin"), ("write",), ()])
async def test_a_key_is_no_wider_than_its_creators(plane: ControlPlane, scopes: tuple[str, ...]) -> None:
    with pytest.raises(Forbidden):
        await plane.keys.create(await plane.caller("ann", Scope.MCP, Scope.MANAGE), NewKey("x", scopes))
    assert len(await plane.store.keys.all()) == 1


async def test_only_admin_says_for_whom_a_key_acts(plane: ControlPlane) -> None:
    ann = await plane.caller("ann", *AGENT, Scope.MANAGE)
    for new in (
        NewKey("x", user="bob"),
        NewKey("x", groups=frozenset({"g"})),
        NewKey("x", roles=frozenset({"r"})),
    ):
        with pytest.raises(Forbidden) as refused:
            await plane.keys.create(ann, new)
        assert refused.value.required_scope == Scope.ADMIN
    root = await plane.caller("root", *Scope)
    wanted = NewKey("x", user="bob", groups=frozenset({"g"}), roles=frozenset({"r"}))
    made = await plane.keys.create(root, wanted)
    assert (made.key.user, made.key.groups, made.key.roles) == ("bob", {"g"}, {"r"})
    assert made.key.created_by == "root"


async def test_a_scope_that_is_not_known_is_named() -> None:
    with pytest.raises(Invalid, match=r"^unknown scope: everything$"):
        known_scopes(["mcp", "everything"])
    assert known_scopes([]) == DEFAULT_SCOPES
    assert known_scopes(["mcp", "mcp"]) == {Scope.MCP}


async def test_a_key_that_would_have_expired_already_is_refused(plane: ControlPlane) -> None:
    ann = await plane.caller("ann", *AGENT, Scope.MANAGE)
    with pytest.raises(Invalid) as refused:
        await plane.keys.create(ann, NewKey("x", expires_at=CREATED - timedelta(days=400)))
    assert refused.value.field == "expires_at"


async def test_tools_of_a_key_are_stored_by_server_id(plane: ControlPlane) -> None:
    server = await plane.server(tools=["a", "b"])
    ann = await plane.caller("ann", *AGENT, Scope.MANAGE)
    await plane.tools.switch(ann, server.id, "later", enabled=False)
    wanted = (ToolsOf("/demo", frozenset({"a", "later"})), ToolsOf(server.id, "*"))
    made = await plane.keys.create(ann, NewKey("x", tools=wanted))
    assert made.key.tools == (Grant(server.id, frozenset({"a", "later"})), Grant(server.id, "*"))


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (ToolsOf("/demo", frozenset({"a", "zz", "z"})), "^unknown tool: z$"),
        (ToolsOf("/nowhere", "*"), "^unknown server: /nowhere$"),
        (ToolsOf("/theirs", "*"), "^unknown server: /theirs$"),
    ],
)
async def test_tools_and_servers_that_are_not_known_are_named(
    plane: ControlPlane, wanted: ToolsOf, message: str
) -> None:
    await plane.server(tools=["a"])
    await plane.server("/theirs", owner="bob")
    with pytest.raises(Invalid, match=message):
        await plane.keys.create(await plane.caller("ann", *AGENT, Scope.MANAGE), NewKey("x", tools=(wanted,)))


async def test_a_list_of_keys_holds_ones_own_users_and_for_admin_all(plane: ControlPlane) -> None:
    ann = await plane.caller("ann", Scope.MANAGE)
    await plane.key("ann", Scope.MCP)
    root = await plane.caller("root", Scope.ADMIN)
    assert [key.user for key in await plane.keys.list(ann)] == ["ann", "ann"]
    assert len(await plane.keys.list(root)) == 3
    with pytest.raises(Forbidden):
        await plane.keys.list(await plane.caller("eve", *AGENT))
    nobody = await plane.caller("", Scope.MANAGE)
    await plane.key("", Scope.MCP)
    assert [key.id for key in await plane.keys.list(nobody)] == [(await plane.keys.own(nobody)).id]


async def test_a_disabled_key_is_refused_until_it_is_enabled(plane: ControlPlane) -> None:
    ann = await plane.caller("ann", *AGENT, Scope.MANAGE)
    made = await plane.keys.create(ann, NewKey("agent"))
    agent = caller_of(made.secret)
    disabled = await plane.keys.set_enabled(ann, made.key.id, enabled=False, reason="leaked")
    assert disabled == replace(made.key, enabled=False)
    with pytest.raises(Unauthenticated):
        await plane.keys.own(agent)
    assert await plane.keys.set_enabled(ann, made.key.id, enabled=False) == disabled
    assert await plane.keys.set_enabled(ann, made.key.id, enabled=True) == made.key
    _, off, on = await plane.rows()
    assert (off.action, off.subject, off.reason) == (Action.KEY_UPDATED, made.key.id, "leaked")
    assert (off.before, off.after, on.after) == ({"enabled": True}, {"enabled": False}, {"enabled": True})


async def test_somebody_elses_key_is_not_found_but_for_admin(plane: ControlPlane) -> None:
    bobs = await plane.keys.own(await plane.caller("bob", Scope.MANAGE))
    ann = await plane.caller("ann", Scope.MANAGE)
    for key_id in (bobs.id, "nothing"):
        with pytest.raises(NotFound):
            await plane.keys.set_enabled(ann, key_id, enabled=False)
    root = await plane.caller("root", Scope.ADMIN)
    assert not (await plane.keys.set_enabled(root, bobs.id, enabled=False)).enabled
    assert (await plane.keys.set_enabled(root, bobs.id, enabled=True)).enabled


async def test_a_narrow_key_does_not_bring_a_wide_one_back(plane: ControlPlane) -> None:
    wide = await plane.keys.own(await plane.caller("ann", *Scope))
    narrow = await plane.caller("ann", Scope.MANAGE)
    await plane.caller("root", Scope.ADMIN)
    await plane.keys.set_enabled(narrow, wide.id, enabled=False)
    with pytest.raises(Forbidden):
        await plane.keys.set_enabled(narrow, wide.id, enabled=True)


async def test_the_first_start_makes_an_admin_key_and_later_ones_leave_it(plane: ControlPlane) -> None:
    secret = await plane.keys.bootstrap(None)
    assert secret is not None
    key = await plane.keys.own(caller_of(secret))
    assert (key.id, key.user, key.scopes, key.tools) == (BOOTSTRAP_ID, "admin", frozenset(Scope), "*")
    assert await plane.keys.bootstrap(None) is None
    assert await plane.keys.bootstrap(new_key()) is None
    assert await plane.store.keys.all() == [key]
    assert [row.action for row in await plane.rows()] == [Action.KEY_CREATED]


async def test_a_given_bootstrap_key_is_the_key(plane: ControlPlane) -> None:
    given = new_key()
    assert await plane.keys.bootstrap(given) == given
    assert (await plane.keys.own(caller_of(given))).user == "admin"


@pytest.mark.parametrize("secret", ["", "sg_short", "secret", "sg_" + "a" * 44, "sk_" + "a" * 43])
async def test_a_malformed_bootstrap_key_is_refused(plane: ControlPlane, secret: str) -> None:
    with pytest.raises(Invalid):
        await plane.keys.bootstrap(secret)
    assert await plane.store.keys.all() == []


async def test_of_two_replicas_that_start_at_once_the_later_leaves_the_others_key(plane: ControlPlane) -> None:
    first = await plane.keys.bootstrap(None)

    class Late:
        """A ledger whose transactions learn of the other replica's key only when they store their own."""

        async def change(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
            raise Conflict("that key is there already")

    keys = Keys(Late(), plane.store.keys, plane.freshness)
    assert await keys.bootstrap(None) is None
    assert [key.hash for key in await plane.store.keys.all()] == [key_hash(first or "")]


async def test_a_lost_admin_key_is_replaced_by_another_and_no_key_is_touched(plane: ControlPlane) -> None:
    await plane.caller("ann", Scope.READ)
    before = dict(plane.store.state.keys)
    secret = await plane.keys.reset_admin()
    (made,) = [key for key_id, key in plane.store.state.keys.items() if key_id not in before]
    assert (made.hash, made.scopes, made.user, made.name) == (
        key_hash(secret),
        frozenset(Scope),
        "admin",
        "reset-admin",
    )
    assert {**before, made.id: made} == plane.store.state.keys
    row = plane.store.state.activity[-1]
    assert (row.actor, row.action, row.subject) == ("cli", Action.KEY_CREATED, made.id)
    assert (await plane.keys.own(caller_of(secret))).id == made.id


async def test_the_last_usable_admin_key_cannot_be_disabled(plane: ControlPlane) -> None:
    root = await plane.caller("root", *Scope)
    own = await plane.keys.own(root)
    with pytest.raises(Conflict, match=r"the last usable key .* reset-admin"):
        await plane.keys.set_enabled(root, own.id, enabled=False)
    other = await plane.keys.create(root, NewKey("other", scopes=("manage", "admin")))
    await plane.keys.set_enabled(root, own.id, enabled=False)
    with pytest.raises(Conflict, match="the last usable key"):
        await plane.keys.set_enabled(caller_of(other.secret), other.key.id, enabled=False)


async def test_an_admin_key_that_has_expired_or_is_disabled_does_not_count(plane: ControlPlane) -> None:
    root = await plane.caller("root", *Scope)
    own = await plane.keys.own(root)
    for enabled, expires_at in ((False, None), (True, datetime(2020, 1, 1, tzinfo=UTC))):
        other = await plane.keys.create(root, NewKey("other", scopes=("admin",)))
        plane.store.state.keys[other.key.id] = replace(other.key, enabled=enabled, expires_at=expires_at)
    with pytest.raises(Conflict, match="the last usable key"):
        await plane.keys.set_enabled(root, own.id, enabled=False)

"""Who holds which rights on a server (DESIGN 2)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from registry.errors import Conflict, Forbidden, Invalid, NotFound
from registry.model import EDITOR, OWNER, VIEWER, AccessEntry, Permission, PrincipalType, Scope
from registry.rows import Action
from tests.control_plane import ControlPlane

MANAGE = (Scope.READ, Scope.MANAGE)
SOON = datetime.now(UTC).replace(microsecond=123_456) + timedelta(days=1)
PAST = datetime(2020, 1, 1, tzinfo=UTC)


def user(name: str, bits: Permission = OWNER, expires_at: datetime | None = None) -> AccessEntry:
    return AccessEntry("", PrincipalType.USER, name, bits, expires_at)


GROUP = AccessEntry("", PrincipalType.GROUP, "qa", VIEWER)
PUBLIC = AccessEntry("", PrincipalType.PUBLIC, "", VIEWER)


@pytest.fixture
async def plane() -> ControlPlane:
    made = ControlPlane()
    await made.server("/lab", tools=["a"], owner="ann")
    return made


async def test_an_owner_sees_and_replaces_all_entries_and_it_is_on_record(plane: ControlPlane) -> None:
    ann = await plane.caller("ann", *MANAGE)
    server = plane.store.state.server("/lab")
    assert server is not None
    wanted = [user("bob", EDITOR, SOON), user("ann"), GROUP, PUBLIC]
    stored = await plane.permissions.replace(ann, "/lab", wanted, "a new team")
    ends = SOON.replace(microsecond=123_000)
    expected = [GROUP, PUBLIC, user("ann"), user("bob", EDITOR, ends)]
    assert stored == [replace(entry, server_id=server.id) for entry in expected]
    assert await plane.permissions.list(ann, server.id) == stored
    (row,) = [row for row in plane.store.state.activity if row.action is Action.PERMISSION_SET]
    assert (row.actor, row.server_id, row.reason) == ("ann", server.id, "a new team")
    assert row.before == [
        {"principal_type": "user", "principal_id": "ann", "perm_bits": 15, "expired_at": None},
    ]
    assert row.after == [
        {"principal_type": "group", "principal_id": "qa", "perm_bits": 1, "expired_at": None},
        {"principal_type": "public", "principal_id": None, "perm_bits": 1, "expired_at": None},
        {"principal_type": "user", "principal_id": "ann", "perm_bits": 15, "expired_at": None},
        {"principal_type": "user", "principal_id": "bob", "perm_bits": 3, "expired_at": ends},
    ]


async def test_what_is_set_already_changes_nothing(plane: ControlPlane) -> None:
    ann = await plane.caller("ann", *MANAGE)
    for _ in range(2):
        await plane.permissions.replace(ann, "/lab", [user("ann"), user("bob", VIEWER, SOON)])
    assert [row.action for row in plane.store.state.activity].count(Action.PERMISSION_SET) == 1


@pytest.mark.parametrize(
    ("entries", "sentence"),
    [
        ([user("ann"), user("bob", Permission.EDIT)], "permissions.1: an entry without VIEW"),
        ([user("ann"), user("ann", VIEWER)], "permissions.1: .* the same principal"),
        ([user("ann"), user("")], "public has no id"),
        ([user("ann"), replace(PUBLIC, principal_id="x")], "public has no id"),
        ([user(str(number)) for number in range(1_001)], "at most 1000"),
    ],
)
async def test_entries_that_make_no_sense_are_refused(
    plane: ControlPlane, entries: list[AccessEntry], sentence: str
) -> None:
    with pytest.raises(Invalid, match=sentence) as refused:
        await plane.permissions.replace(await plane.caller("ann", *MANAGE), "/lab", entries)
    assert refused.value.field == "permissions"


@pytest.mark.parametrize(
    "entries", [[], [user("ann", EDITOR)], [replace(PUBLIC, permissions=OWNER)], [user("ann", OWNER, PAST)]]
)
async def test_an_owner_cannot_leave_a_server_that_nobody_can_change(
    plane: ControlPlane, entries: list[AccessEntry]
) -> None:
    with pytest.raises(Conflict, match="nobody would hold SHARE"):
        await plane.permissions.replace(await plane.caller("ann", *MANAGE), "/lab", entries)
    root = await plane.caller("root", Scope.ADMIN)
    assert len(await plane.permissions.replace(root, "/lab", entries)) == len(entries), "an admin can mend it"


async def test_who_lacks_the_right_is_told_as_much_as_may_be_known(plane: ControlPlane) -> None:
    ann, bob = await plane.caller("ann", *MANAGE), await plane.caller("bob", *MANAGE)
    with pytest.raises(NotFound):
        await plane.permissions.list(bob, "/lab")
    await plane.permissions.replace(ann, "/lab", [user("ann"), user("bob", EDITOR)])
    with pytest.raises(Forbidden) as refused:
        await plane.permissions.replace(bob, "/lab", [user("bob")])
    assert refused.value.required_permission == "SHARE"
    with pytest.raises(Forbidden) as refused:
        await plane.permissions.list(await plane.caller("ann", Scope.READ), "/lab")
    assert refused.value.required_scope == "manage"


async def test_a_right_that_is_given_and_taken_binds_the_next_question(plane: ControlPlane) -> None:
    ann, bob = await plane.caller("ann", *MANAGE), await plane.caller("bob", *MANAGE)
    await plane.permissions.replace(ann, "/lab", [user("ann"), user("bob", OWNER)])
    await plane.tools.switch(bob, "/lab", "a", enabled=False)
    await plane.permissions.replace(bob, "/lab", [user("bob")])
    with pytest.raises(NotFound):
        await plane.tools.switch(ann, "/lab", "a", enabled=True)


async def test_of_two_servers_under_one_path_the_one_that_is_meant_is_named_by_its_id(plane: ControlPlane) -> None:
    ann = await plane.caller("ann", *MANAGE)
    other = await plane.server("/other", owner="ann")
    plane.store.state.servers[other.id] = replace(other, path="/lab")
    with pytest.raises(Conflict, match="by its id"):
        await plane.permissions.replace(ann, "/lab", [user("ann")])
    assert [entry.server_id for entry in await plane.permissions.replace(ann, other.id, [user("ann")])] == [other.id]

"""An owner's changes: who may, what is stored, what the row says."""

import pytest

from registry.callers import Caller
from registry.errors import Conflict, Forbidden, NotFound, RegistryError, Unauthenticated
from registry.model import VIEWER, Permission, Scope
from registry.rows import Action
from tests.control_plane import ControlPlane, caller_of


@pytest.fixture
def plane() -> ControlPlane:
    return ControlPlane()


async def test_replacing_the_list_stores_it_and_leaves_one_row(plane: ControlPlane) -> None:
    server = await plane.server(tools=["a", "b"])
    ann = await plane.caller("ann", Scope.MANAGE)
    changed = await plane.tools.replace(ann, server.id, disabled=["a", "x"], reason="too risky")
    assert changed.server == await plane.now(server)
    assert changed.server.policy.disabled_tools == {"a"}
    assert changed.server.policy.revision == server.policy.revision + 1
    assert changed.ignored == {"x"}
    [row] = await plane.rows()
    assert (row.actor, row.action, row.server_id) == ("ann", Action.SERVER_UPDATED, server.id)
    assert (row.reason, row.request_id, row.revision) == ("too risky", "r1", changed.server.policy.revision)
    assert (row.before["disabled_tools"], row.after["disabled_tools"]) == ([], ["a"])


async def test_switching_names_the_tool_in_its_row(plane: ControlPlane) -> None:
    server = await plane.server(tools=["a", "b"])
    ann = await plane.caller("ann", Scope.MANAGE)
    await plane.tools.switch(ann, "/demo", "a", enabled=False)
    await plane.tools.switch(ann, "/demo", "a", enabled=True)
    actions = [(row.action, row.subject, row.revision) for row in await plane.rows()]
    start = server.policy.revision
    assert actions == [
        (Action.TOOL_DISABLED, "a", start + 1),
        (Action.TOOL_ENABLED, "a", start + 2),
    ]
    assert (await plane.now(server)).policy.disabled_tools == frozenset()


async def test_setting_what_is_set_makes_no_revision_and_no_row(plane: ControlPlane) -> None:
    server = await plane.server(tools=["a", "b"])
    ann = await plane.caller("ann", Scope.MANAGE)
    await plane.tools.replace(ann, server.id, disabled=["a"])
    before, rows = await plane.now(server), await plane.rows()
    await plane.tools.replace(ann, server.id, disabled=["a", "a", "x"], read_only=[])
    await plane.tools.switch(ann, server.id, "a", enabled=False)
    await plane.tools.switch(ann, server.id, "b", enabled=True)
    assert (await plane.now(server), await plane.rows()) == (before, rows)


async def test_a_tombstone_is_cleared_by_switching_on_only(plane: ControlPlane) -> None:
    server = await plane.server(tools=["a"])
    ann = await plane.caller("ann", Scope.MANAGE)
    await plane.tools.switch(ann, server.id, "later", enabled=False)
    await plane.tools.replace(ann, server.id, disabled=[])
    assert (await plane.now(server)).policy.retired_disabled_tools == {"later"}
    await plane.tools.switch(ann, server.id, "later", enabled=True)
    assert (await plane.now(server)).policy.retired_disabled_tools == frozenset()


async def test_before_the_first_snapshot_every_name_is_kept_as_a_tombstone(plane: ControlPlane) -> None:
    server = await plane.server(tools=None)
    ann = await plane.caller("ann", Scope.MANAGE)
    changed = await plane.tools.replace(ann, server.id, disabled=["a"])
    assert (changed.server.policy.retired_disabled_tools, changed.ignored) == ({"a"}, frozenset())


@pytest.mark.parametrize(
    ("user", "scopes", "error", "required"),
    [
        ("ann", (Scope.MCP, Scope.READ, Scope.WRITE), Forbidden, Scope.MANAGE),
        ("ann", (Scope.ADMIN,), Forbidden, Scope.MANAGE),
        ("editor", (Scope.MANAGE,), Forbidden, None),
        ("viewer", (Scope.MANAGE,), Forbidden, None),
        ("viewer", (Scope.MANAGE, Scope.ADMIN), Forbidden, None),
        ("stranger", (Scope.MANAGE, Scope.ADMIN), Forbidden, None),
        ("stranger", (Scope.MANAGE,), NotFound, None),
        ("stranger", (Scope.READ,), Forbidden, Scope.MANAGE),
    ],
)
async def test_switching_takes_manage_and_share(
    plane: ControlPlane, user: str, scopes: tuple[Scope, ...], error: type[RegistryError], required: str | None
) -> None:
    server = await plane.server(tools=["a"])
    await plane.share(server, "viewer", VIEWER)
    await plane.share(server, "editor", Permission.VIEW | Permission.EDIT | Permission.DELETE)
    who = await plane.caller(user, *scopes)
    with pytest.raises(error) as refused:
        await plane.tools.switch(who, server.id, "a", enabled=False)
    assert getattr(refused.value, "required_scope", None) == required
    with pytest.raises(error):
        await plane.tools.replace(who, server.path, disabled=["a"])
    assert (await plane.now(server), await plane.rows()) == (server, [])


@pytest.mark.parametrize("who", [caller_of(None), caller_of("sg_unknown"), Caller("")])
async def test_without_a_valid_key_nothing_is_told(plane: ControlPlane, who: Caller) -> None:
    server = await plane.server(tools=["a"])
    for ref in (server.id, "/nowhere"):
        with pytest.raises(Unauthenticated):
            await plane.tools.switch(who, ref, "a", enabled=False)


async def test_an_unknown_server_looks_like_an_invisible_one(plane: ControlPlane) -> None:
    server = await plane.server()
    stranger = await plane.caller("stranger", Scope.MANAGE)
    messages = set()
    for ref in (server.id, "/demo", "nowhere", "/nowhere"):
        with pytest.raises(NotFound) as refused:
            await plane.tools.switch(stranger, ref, "a", enabled=False)
        messages.add(str(refused.value))
    assert len(messages) == 1


async def test_a_policy_that_cannot_be_read_is_not_changed(plane: ControlPlane) -> None:
    server = await plane.server(tools=["a"])
    plane.store.write(server.id, fault="registryDisabledTools is null")
    ann = await plane.caller("ann", Scope.MANAGE)
    with pytest.raises(Conflict, match="registryDisabledTools is null"):
        await plane.tools.replace(ann, server.id, disabled=["a"])
    with pytest.raises(Conflict):
        await plane.tools.switch(ann, server.id, "a", enabled=True)
    assert await plane.rows() == []

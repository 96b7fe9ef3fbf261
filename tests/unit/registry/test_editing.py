"""What a server is, beside its tools, and who may change it (DESIGN 2 and 5)."""

from types import SimpleNamespace
from typing import Any

import pytest

from registry.destinations import Destinations
from registry.editing import Editor
from registry.egress import Egress, Entries
from registry.entries import Server, ServerEdit
from registry.errors import Conflict, Forbidden, Invalid, NotFound, PreconditionFailed, Unauthenticated
from registry.fingerprint import fingerprint
from registry.model import EDITOR, OWNER, VIEWER, AccessEntry, Permission, PrincipalType, Scope
from registry.ports import Transaction
from registry.rows import Action, Activity
from registry.terms import Terms
from tests.control_plane import ControlPlane, caller_of

TEXTS = ServerEdit(title="T", description="D", tags=("x", "y"))
ADDRESS = ServerEdit(url="http://127.0.0.1:9/new", path="/new")
TREATMENT = ServerEdit(enabled=False, trusted=True, passing={"list_ttl_ms": 5, "passes_cookies": True})
CREDENTIALS = ServerEdit(credentials=(("Authorization", "Bearer ${SLUICEGATE_CREDENTIAL_A}"),))


@pytest.fixture
async def plane() -> ControlPlane:
    made = ControlPlane()
    made.source.lists("a", "b")
    terms = Terms(variables=("SLUICEGATE_CREDENTIAL_A",))
    made.editor = Editor(made.store.ledger, made.freshness, made.refresher, terms)
    await made.server("/lab", tools=["a"], owner="ann")
    return made


def stored(plane: ControlPlane) -> Server:
    (server,) = plane.store.state.servers.values()
    return server


def rows(plane: ControlPlane) -> list[Activity]:
    return [row for row in plane.store.state.activity if row.action is Action.SERVER_UPDATED]


async def test_texts_are_changed_without_a_new_revision(plane: ControlPlane) -> None:
    before = stored(plane)
    edited = await plane.editor.edit(await plane.caller("ann", Scope.MANAGE), "/lab", TEXTS, reason="clearer")
    assert (edited.title, edited.description, edited.tags) == ("T", "D", ("x", "y"))
    assert edited.policy == before.policy
    (row,) = rows(plane)
    assert (row.actor, row.reason, row.revision) == ("ann", "clearer", before.policy.revision)
    assert row.before == {"title": "Demo", "description": "A demo.", "tags": []}
    assert row.after == {"title": "T", "description": "D", "tags": ["x", "y"]}


async def test_how_it_is_treated_is_changed_with_a_new_revision_and_the_rest_stays(
    plane: ControlPlane,
) -> None:
    ann = await plane.caller("ann", Scope.MANAGE)
    revision = stored(plane).policy.revision
    await plane.editor.edit(ann, "/lab", TREATMENT)
    policy = (await plane.editor.edit(ann, "/lab", ServerEdit(passing={"list_ttl_ms": None}))).policy
    assert (policy.enabled, policy.trusted, policy.passing.passes_cookies) == (False, True, True)
    assert (policy.passing.list_ttl_ms, policy.revision) == (None, revision + 2)
    assert [(row.before, row.after) for row in rows(plane)] == [
        (
            {"enabled": True, "trusted": False, "passing": {"list_ttl_ms": None, "passes_cookies": False}},
            {"enabled": False, "trusted": True, "passing": {"list_ttl_ms": 5, "passes_cookies": True}},
        ),
        ({"passing": {"list_ttl_ms": 5}}, {"passing": {"list_ttl_ms": None}}),
    ]


async def test_a_new_address_keeps_every_switch_and_has_its_tools_asked_for(plane: ControlPlane) -> None:
    ann = await plane.caller("ann", Scope.MANAGE, Scope.ADMIN)
    await plane.tools.switch(ann, "/lab", "a", enabled=False)
    edited = await plane.editor.edit(ann, "/lab", ADDRESS)
    assert (edited.url, edited.path, edited.policy.url, edited.policy.path) == (
        *(ADDRESS.url, ADDRESS.path),
        *(ADDRESS.url, ADDRESS.path),
    )
    assert (edited.policy.disabled_tools, edited.tool_names) == ({"a"}, {"a", "b"})
    assert plane.source.asked == [ADDRESS.url]
    with pytest.raises(NotFound):
        await plane.servers.get(ann, "/lab")


async def test_a_new_path_alone_asks_nobody(plane: ControlPlane) -> None:
    ann = await plane.caller("ann", Scope.MANAGE, Scope.ADMIN)
    assert (await plane.editor.edit(ann, "/lab", ServerEdit(path="/new"))).path == "/new"
    assert plane.source.asked == []


async def test_credentials_are_templates_on_record(plane: ControlPlane) -> None:
    root = await plane.caller("root", Scope.ADMIN)
    edited = await plane.editor.edit(root, "/lab", CREDENTIALS)
    assert edited.policy.credentials == CREDENTIALS.credentials
    assert rows(plane)[0].after == {"credentials": {"Authorization": "Bearer ${SLUICEGATE_CREDENTIAL_A}"}}


async def test_what_is_so_already_changes_nothing(plane: ControlPlane) -> None:
    ann = await plane.caller("ann", Scope.MANAGE)
    for _ in range(2):
        await plane.editor.edit(ann, "/lab", TREATMENT)
        await plane.editor.edit(ann, "/lab", TEXTS)
    assert len(rows(plane)) == 2


@pytest.mark.parametrize(
    ("edit", "scopes", "bits", "lacking"),
    [
        (TEXTS, {Scope.MANAGE}, EDITOR, None),
        (TEXTS, {Scope.MANAGE}, VIEWER, "EDIT"),
        (TEXTS, {Scope.ADMIN}, OWNER, "manage"),
        (TEXTS, {Scope.READ}, OWNER, "manage"),
        (TREATMENT, {Scope.MANAGE}, OWNER, None),
        (TREATMENT, {Scope.MANAGE}, EDITOR, "SHARE"),
        (ADDRESS, {Scope.ADMIN}, EDITOR, None),
        (ADDRESS, {Scope.ADMIN}, VIEWER, "EDIT"),
        (ADDRESS, {Scope.MANAGE}, OWNER, "admin"),
        (CREDENTIALS, {Scope.ADMIN}, Permission.NONE, None),
        (CREDENTIALS, {Scope.MANAGE}, OWNER, "admin"),
        (ServerEdit(title="T", trusted=True), {Scope.MANAGE}, EDITOR, "SHARE"),
    ],
)
async def test_each_field_asks_for_its_own_right(
    plane: ControlPlane, edit: ServerEdit, scopes: set[Scope], bits: Permission, lacking: str | None
) -> None:
    before = stored(plane)
    if bits:
        plane.store.state.entries.append(AccessEntry(before.id, PrincipalType.USER, "bob", bits))
    bob = await plane.caller("bob", *sorted(scopes))
    if lacking is None:
        await plane.editor.edit(bob, "/lab", edit)
        return
    with pytest.raises(Forbidden) as refused:
        await plane.editor.edit(bob, "/lab", edit)
    assert lacking in (refused.value.required_scope, refused.value.required_permission)
    assert (stored(plane), rows(plane)) == (before, [])


async def test_who_may_register_may_move_where_the_operator_says_so(plane: ControlPlane) -> None:
    plane.editor = Editor(plane.store.ledger, plane.freshness, plane.refresher, Terms(Scope.MANAGE))
    assert (await plane.editor.edit(await plane.caller("ann", Scope.MANAGE), "/lab", ADDRESS)).path == "/new"


async def test_strangers_learn_nothing(plane: ControlPlane) -> None:
    with pytest.raises(NotFound):
        await plane.editor.edit(await plane.caller("eve", Scope.MANAGE), "/lab", TEXTS)
    with pytest.raises(Unauthenticated):
        await plane.editor.edit(caller_of(None), "/lab", TEXTS)


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        (ServerEdit(path="new"), "path"),
        (ServerEdit(path="/new/mcp"), "path"),
        (ServerEdit(url="ftp://x/"), "url"),
        (ServerEdit(url="http://169.254.169.254/"), "url"),
        (ServerEdit(url="http://denied.example/"), "url"),
        (ServerEdit(url="http://localhost:8470/mcp"), "url"),
        (ServerEdit(credentials=(("Host", "x"),)), "credentials"),
        (ServerEdit(credentials=(("X-A", "${SLUICEGATE_CREDENTIAL_UNSET}"),)), "credentials"),
    ],
)
async def test_a_value_that_cannot_be_used_names_its_field(plane: ControlPlane, edit: ServerEdit, field: str) -> None:
    terms = Terms(
        destinations=Destinations(Egress(deny=Entries.of(["denied.example"]))), own=frozenset({("localhost", 8470)})
    )
    plane.editor = Editor(plane.store.ledger, plane.freshness, plane.refresher, terms)
    with pytest.raises(Invalid) as refused:
        await plane.editor.edit(await plane.caller("ann", *Scope), "/lab", edit)
    assert refused.value.field == field


@pytest.mark.parametrize("edit", [ServerEdit(url="http://sluicegate.invalid/"), CREDENTIALS])
async def test_who_may_not_change_it_learns_nothing_of_names_and_variables(
    plane: ControlPlane, edit: ServerEdit
) -> None:
    class Unasked(Destinations):
        async def fault(self, url: str) -> str | None:
            raise AssertionError(f"{url} was looked up")

    plane.editor = Editor(plane.store.ledger, plane.freshness, plane.refresher, Terms(destinations=Unasked()))
    with pytest.raises(Unauthenticated):
        await plane.editor.edit(caller_of(None), "/lab", edit)
    with pytest.raises(Forbidden) as refused:
        await plane.editor.edit(await plane.caller("ann", Scope.MANAGE), "/lab", edit)
    assert refused.value.required_scope == Scope.ADMIN


async def test_a_path_that_another_server_has_is_taken(plane: ControlPlane) -> None:
    await plane.server("/other", owner="bob")
    root = await plane.caller("ann", Scope.MANAGE, Scope.ADMIN)
    with pytest.raises(Conflict, match="taken"):
        await plane.editor.edit(root, "/lab", ServerEdit(path="/other"))
    assert (await plane.editor.edit(root, "/lab", ServerEdit(path="/lab", title="T"))).title == "T"


async def test_nothing_is_overwritten_that_the_caller_has_not_seen(plane: ControlPlane) -> None:
    ann = await plane.caller("ann", Scope.MANAGE)
    seen = fingerprint(stored(plane).policy)
    await plane.tools.switch(ann, "/lab", "a", enabled=False)
    with pytest.raises(PreconditionFailed):
        await plane.editor.edit(ann, "/lab", TEXTS, seen={seen})
    await plane.editor.edit(ann, "/lab", TEXTS, seen={seen, fingerprint(stored(plane).policy)})


async def test_a_server_that_goes_during_the_change_is_not_there(plane: ControlPlane) -> None:
    class Gone:
        """A ledger on whose transactions the server is there for the decision alone."""

        async def change(self, work: Any) -> Any:
            async def seen(tx: Transaction) -> Any:
                return await work(SimpleNamespace(facts=tx.facts, server=nothing))

            return await plane.store.ledger.change(seen)

    async def nothing(_ref: str) -> None:
        return None

    editor = Editor(Gone(), plane.freshness, plane.refresher, Terms())
    with pytest.raises(NotFound):
        await editor.edit(await plane.caller("ann", Scope.MANAGE), "/lab", TEXTS)

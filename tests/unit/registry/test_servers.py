"""Registering, listing, showing and refreshing servers."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from registry import shown
from registry.downstreams import url_fault
from registry.entries import NewServer, ServerType
from registry.errors import Conflict, Forbidden, Invalid, NotFound, Unauthenticated
from registry.keys import NewKey, ToolsOf
from registry.model import OWNER, VIEWER, AccessEntry, Grant, Permission, PrincipalType, Scope
from registry.ports import Transaction
from registry.refresh import Refresher
from registry.rows import Action
from registry.servers import Servers
from registry.terms import Terms
from tests.control_plane import ControlPlane, caller_of
from tests.waiting import until

NEW = NewServer("demo", "/demo", "http://127.0.0.1:9/mcp", ServerType.STREAMABLE_HTTP, "Demo", "A demo.")
CREDENTIALS = (("Authorization", "Bearer ${SLUICEGATE_CREDENTIAL_A}"),)
OWNING = (Scope.READ, Scope.MANAGE)


@pytest.fixture
def plane() -> ControlPlane:
    return ControlPlane()


async def test_a_registered_server_is_its_creators_and_has_its_tools(plane: ControlPlane) -> None:
    plane.source.lists("a", "b")
    creator = await plane.caller("root", Scope.ADMIN, Scope.MANAGE)
    server = await plane.servers.create(creator, NEW)
    assert (server.name, server.path, server.url, server.title) == ("demo", "/demo", NEW.url, "Demo")
    assert (server.tool_names, server.refresh_error) == ({"a", "b"}, None)
    assert (await plane.tools.switch(creator, server.id, "a", enabled=False)).server.policy.disabled_tools == {"a"}
    created, refreshed, _ = await plane.rows()
    assert (created.actor, created.action, created.server_id) == ("root", Action.SERVER_CREATED, server.id)
    assert (created.request_id, refreshed.request_id) == ("r1", "r1")


async def test_a_first_refresh_that_fails_does_not_undo_the_registration(plane: ControlPlane) -> None:
    plane.source.failure = "it is down"
    server = await plane.servers.create(await plane.caller("root", Scope.ADMIN), NEW)
    assert (server.refresh_error, server.tools, server.snapshot_good) == ("it is down", (), False)


async def test_a_path_is_registered_once(plane: ControlPlane) -> None:
    root = await plane.caller("root", Scope.ADMIN)
    await plane.servers.create(root, NEW)
    with pytest.raises(Conflict):
        await plane.servers.create(root, replace(NEW, url="http://127.0.0.1:9/other"))
    assert len([row for row in await plane.rows() if row.action is Action.SERVER_CREATED]) == 1


async def test_registering_takes_admin_unless_the_operator_says_manage(plane: ControlPlane) -> None:
    ann = await plane.caller("ann", Scope.MANAGE)
    with pytest.raises(Forbidden) as refused:
        await plane.servers.create(ann, NEW)
    assert refused.value.required_scope == Scope.ADMIN
    store = plane.store
    refresher = Refresher(store.ledger, plane.source, store.servers)
    freshness = plane.freshness
    open_to_managers = Servers(store.ledger, store.servers, freshness, refresher, Terms(Scope.MANAGE))
    assert (await open_to_managers.create(ann, NEW)).path == "/demo"
    with pytest.raises(Unauthenticated):
        await open_to_managers.create(caller_of(None), replace(NEW, path="/other"))


async def test_a_key_without_a_user_registers_nothing(plane: ControlPlane) -> None:
    with pytest.raises(Forbidden):
        await plane.servers.create(await plane.caller("", Scope.ADMIN), NEW)


@pytest.mark.parametrize(
    ("new", "field"),
    [
        (replace(NEW, type=ServerType.SSE), "type"),
        (replace(NEW, path="demo"), "path"),
        (replace(NEW, path="/demo/mcp"), "path"),
        (replace(NEW, url="demo"), "url"),
    ],
)
async def test_what_cannot_be_registered_names_its_field(plane: ControlPlane, new: NewServer, field: str) -> None:
    with pytest.raises(Invalid) as refused:
        await plane.servers.create(await plane.caller("root", Scope.ADMIN), new)
    assert refused.value.field == field
    assert await plane.store.servers.all() == []


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1",
        "https://example.test/mcp?a=1&b=%20",
        "http://[::1]:8080/mcp",
        "HTTP://Example.test:80/",
    ],
)
def test_an_absolute_http_address_can_be_a_downstream(url: str) -> None:
    assert url_fault(url) is None


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/mcp",
        "//example.test/mcp",
        "ftp://example.test/",
        "http:///mcp",
        "http://",
        "http://user@example.test/",
        "http://user:pw@example.test/",
        "http://@example.test/",
        "http://example.test/#",
        "http://example.test/#part",
        "http://example.test:0/",
        "http://example.test:99999/",
        "http://example.test:x/",
        "http://[::1/",
        "http://example.test/a b",
        "http://example.test\\@evil.test/",
        "http://exämple.test/",
        "http://example.test/\n",
        " http://example.test/",
    ],
)
def test_what_is_no_plain_absolute_http_address_cannot(url: str) -> None:
    assert url_fault(url) is not None


async def test_a_list_holds_what_the_caller_may_see(plane: ControlPlane) -> None:
    ours, theirs = await plane.server("/a-ours"), await plane.server("/b-theirs", owner="bob")
    assert await plane.servers.list(await plane.caller("ann", Scope.READ)) == [ours]
    assert await plane.servers.list(await plane.caller("root", Scope.ADMIN)) == [ours, theirs]
    assert await plane.servers.list(await plane.caller("eve", Scope.MANAGE)) == []
    with pytest.raises(Forbidden) as refused:
        await plane.servers.list(await plane.caller("ann", Scope.MCP, Scope.WRITE))
    assert refused.value.required_scope == Scope.READ


async def test_a_list_costs_three_reads_however_many_servers_there_are(plane: ControlPlane) -> None:
    servers = [await plane.server(f"/s{number}") for number in range(10)]
    assert await plane.servers.list(await plane.caller("ann", Scope.READ)) == servers
    assert plane.reads.count == 3


@pytest.mark.parametrize("scope", [Scope.READ, Scope.MANAGE, Scope.ADMIN])
async def test_a_server_is_shown_by_id_and_by_path(plane: ControlPlane, scope: Scope) -> None:
    server = await plane.server(tools=["a"])
    await plane.share(server, "bob", VIEWER)
    bob = await plane.caller("bob", scope)
    assert await plane.servers.get(bob, server.id) == server
    assert await plane.servers.get(bob, "/demo") == server


async def test_an_invisible_server_is_not_found(plane: ControlPlane) -> None:
    server = await plane.server()
    for ref in (server.id, "/demo", "/nowhere"):
        with pytest.raises(NotFound):
            await plane.servers.get(await plane.caller(f"eve{ref}", Scope.READ), ref)


@pytest.mark.parametrize(
    ("bits", "scope", "allowed"),
    [
        (Permission.VIEW | Permission.EDIT, Scope.MANAGE, True),
        (OWNER, Scope.MANAGE, True),
        (Permission.VIEW, Scope.MANAGE, False),
        (OWNER, Scope.READ, False),
        (OWNER, Scope.ADMIN, False),
    ],
)
async def test_refreshing_takes_manage_and_edit(
    plane: ControlPlane, bits: Permission, scope: Scope, allowed: bool
) -> None:
    server = await plane.server(tools=["a"])
    await plane.share(server, "bob", bits)
    bob = await plane.caller("bob", scope)
    plane.source.lists("b")
    if allowed:
        assert (await plane.servers.refresh(bob, "/demo")).tool_names == {"b"}
        assert [row.actor for row in await plane.rows()] == ["bob"]
        return
    with pytest.raises(Forbidden):
        await plane.servers.refresh(bob, server.id)
    assert plane.source.asked == []


@pytest.mark.parametrize("more", [{"credentials": CREDENTIALS}, {"allows_duplicate": True}])
async def test_credentials_and_a_second_way_in_take_admin_whatever_the_operator_says(more: dict[str, Any]) -> None:
    plane = ControlPlane(Terms(Scope.MANAGE, variables=("SLUICEGATE_CREDENTIAL_A",)))
    with pytest.raises(Forbidden) as refused:
        await plane.servers.create(await plane.caller("ann", Scope.MANAGE), replace(NEW, **more))
    assert refused.value.required_scope == Scope.ADMIN
    await plane.servers.create(await plane.caller("root", Scope.ADMIN), replace(NEW, **more))
    assert (await plane.rows())[0].after.get("allows_duplicate", False) is ("allows_duplicate" in more)


async def test_a_deleted_server_is_gone_with_its_entries_and_its_path_is_free(plane: ControlPlane) -> None:
    ann = await plane.caller("ann", *OWNING)
    server = await plane.server(tools=["a"])
    await plane.servers.delete(ann, "/demo", "not needed")
    with pytest.raises(NotFound):
        await plane.servers.get(ann, server.id)
    assert (plane.store.state.servers, plane.store.state.entries) == ({}, [])
    [row] = await plane.rows()
    assert (row.action, row.server_id, row.actor, row.reason) == (Action.SERVER_DELETED, server.id, "ann", "not needed")
    ann_was = AccessEntry(server.id, PrincipalType.USER, "ann", OWNER)
    assert (row.before, row.after) == (shown.of_removed(server, [ann_was]), None)
    again = await plane.server(tools=["a"], owner="bob")
    assert again.id != server.id
    with pytest.raises(NotFound):
        await plane.servers.get(ann, "/demo")


async def test_a_key_that_was_granted_a_deleted_server_reaches_nothing_of_its_successor(plane: ControlPlane) -> None:
    ann = await plane.caller("ann", *OWNING)
    await plane.server(tools=["a"])
    grant = ToolsOf("/demo", frozenset({"a"}))
    agent = await plane.keys.create(ann, NewKey("agent", scopes=("read",), tools=(grant,)))
    await plane.servers.delete(ann, "/demo")
    assert await plane.keys.own(caller_of(agent.secret)) == agent.key
    again = await plane.server(tools=["a"])
    assert again.id not in {one.server_id for one in agent.key.tools if isinstance(one, Grant)}


async def test_deleting_takes_the_bit(plane: ControlPlane) -> None:
    server = await plane.server()
    await plane.share(server, "bob", OWNER & ~Permission.DELETE)
    with pytest.raises(Forbidden) as refused:
        await plane.servers.delete(await plane.caller("bob", *OWNING), "/demo")
    assert refused.value.required_permission == "DELETE"


async def test_of_two_servers_under_one_path_none_is_deleted_by_it(plane: ControlPlane) -> None:
    ann = await plane.caller("ann", *OWNING)
    one, other = await plane.server("/demo"), await plane.server("/other")
    plane.store.state.servers[other.id] = replace(other, path="/demo")
    with pytest.raises(Conflict, match="by its id"):
        await plane.servers.delete(ann, "/demo")
    await plane.servers.delete(ann, other.id)
    assert set(plane.store.state.servers) == {one.id}


async def test_search_forgets_a_server_that_was_deleted(plane: ControlPlane) -> None:
    ann = await plane.caller("ann", Scope.MCP, *OWNING)
    await plane.server(tools=["a"])
    async with plane.indexed():
        assert plane.catalogue.ids()
        await plane.servers.delete(ann, "/demo")
        await until(lambda: not plane.catalogue.ids() and not plane.index._entries)


async def test_a_server_that_goes_meanwhile_is_not_found(plane: ControlPlane) -> None:
    class Gone:
        """A ledger, and a store, in which the server is there for the decision alone."""

        async def change(self, work: Any) -> Any:
            async def seen(tx: Transaction) -> Any:
                return await work(SimpleNamespace(facts=tx.facts, server=self.by_ref))

            return await plane.store.ledger.change(seen)

        async def by_ref(self, _ref: str) -> None:
            return None

    ann = await plane.caller("ann", *OWNING)
    await plane.server()
    gone: Any = Gone()
    servers = Servers(gone, gone, plane.freshness, plane.refresher)
    for late in (servers.get(ann, "/demo"), servers.delete(ann, "/demo")):
        with pytest.raises(NotFound):
            await late

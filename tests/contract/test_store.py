"""One suite for the in-memory twin and the real store (`registry.ports`)."""

import asyncio
import re
from dataclasses import replace
from datetime import timedelta

import pytest

from config.wiring import Store
from registry import access
from registry.access import Permit, Reason, Refusal
from registry.entries import NewServer, Server, ServerEdit, ServerType, Snapshot, Tool
from registry.errors import Conflict
from registry.fingerprint import fingerprint
from registry.model import OWNER, VIEWER, AccessEntry, Asked, Grant, Passing, PrincipalType, Scope
from registry.ports import Transaction
from registry.rows import Action, Activity
from tests import build

LAB = NewServer("lab", "/lab", "http://127.0.0.1:9/mcp", ServerType.STREAMABLE_HTTP, title="Lab", description="Tries.")

ODD_NAMES = ["a.b", "$where", "a/b", "%2F", " ", "-x", "\u00e9", "e\u0301", "\U0001f600", "nul\0nul", "_id", "x" * 200]


async def registered(store: Store, new: NewServer = LAB) -> Server:
    async def work(tx: Transaction) -> Server:
        server = await tx.add_server(new)
        await tx.add_entry(AccessEntry(server.id, PrincipalType.USER, "ann", OWNER))
        if await tx.key("key-1") is None:
            await tx.add_key(build.key())
        return server

    return await store.ledger.change(work)


async def disable(store: Store, server: Server, *names: str) -> Server:
    async def work(tx: Transaction) -> Server:
        return await tx.save_policy(
            server.id,
            disabled_tools=frozenset(names),
            retired_disabled_tools=frozenset(),
            read_only_tools=frozenset(),
        )

    return await store.ledger.change(work)


async def snapshot(store: Store, server: Server, *tools: Tool) -> Server:
    async def work(tx: Transaction) -> Server:
        return await tx.save_snapshot(server.id, Snapshot(tools, {"tools": {"listChanged": True}}))

    return await store.ledger.change(work)


async def test_a_new_server_is_enabled_and_found_by_id_and_path(store: Store) -> None:
    server = await registered(store)

    assert (server.name, server.path, server.url, server.title) == ("lab", "/lab", LAB.url, "Lab")
    assert (server.policy.enabled, server.policy.revision, server.policy.fault) == (True, 1, None)
    assert (server.snapshot_good, server.refreshed_at, server.tools) == (False, None, ())
    assert await store.servers.by_ref("/lab") == await store.servers.by_ref(server.id) == server
    assert await store.servers.by_ref("/other") is None
    assert list(await store.servers.all()) == [server]


async def test_a_path_is_taken_once(store: Store) -> None:
    await registered(store)

    with pytest.raises(Conflict):
        await registered(store)


async def test_of_two_registrations_at_once_one_wins(store: Store) -> None:
    outcomes = await asyncio.gather(*(registered(store) for _ in range(2)), return_exceptions=True)

    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Conflict", "Server"]


async def test_facts_answer_each_question_of_one_read(store: Store) -> None:
    server = await registered(store)
    by_path, by_id = build.asked(), Asked(build.key().hash, server.id)
    nobody, nothing = Asked("0" * 64, "/lab"), Asked(None)

    facts = await store.policies.read(frozenset({by_path, by_id, nobody, nothing}))

    assert facts[by_path].key == build.key()
    assert facts[by_path].server == facts[by_id].server == server.policy
    assert isinstance(access.use_tool(facts[by_path], "anything"), Permit)
    assert access.use_tool(facts[nobody], "anything") == Refusal(Reason.KEY_INVALID, "anything")
    assert (facts[nothing].key, facts[nothing].server) == (None, None)
    assert len({answer.now for answer in facts.values()}) == 1


@pytest.mark.parametrize("name", ODD_NAMES)
async def test_any_name_can_be_switched_off_and_kept(store: Store, name: str) -> None:
    server = await registered(store)
    await snapshot(store, server, Tool(name, {"name": name, "inputSchema": {}}), Tool("other", {"name": "other"}))

    changed = await disable(store, server, name)

    assert (changed.policy.disabled_tools, changed.policy.revision) == (frozenset({name}), 2)
    assert changed.tool_names == {name, "other"}
    facts = (await store.policies.read(frozenset({build.asked()})))[build.asked()]
    assert access.use_tool(facts, name) == Refusal(Reason.TOOL_DISABLED, name)
    assert isinstance(access.use_tool(facts, "other"), Permit)


async def test_a_definition_comes_back_equal_whatever_it_holds(store: Store) -> None:
    definition = {
        "name": "t",
        "inputSchema": {"$schema": "x", "a.b": {"$ref": "#"}, "n": 2**80, "x": {"\0": [1.5, None, True]}},
        "annotations": {"readOnlyHint": True, "odd": -1},
        "_meta": {"deep": {"er": []}},
    }
    server = await registered(store)

    stored = await snapshot(store, server, Tool("t", definition))

    assert stored.tools == (Tool("t", definition),)
    assert stored.policy.declared_read_only == {"t"}
    assert (stored.snapshot_good, stored.refresh_error) == (True, None)
    assert stored.capabilities == {"tools": {"listChanged": True}}
    assert stored.refreshed_at is not None


async def test_a_failed_refresh_keeps_the_snapshot_and_says_so(store: Store) -> None:
    server = await registered(store)
    good = await snapshot(store, server, Tool("t", {"name": "t"}))

    async def work(tx: Transaction) -> Server:
        return await tx.save_refresh_error(server.id, "it is down")

    failed = await store.ledger.change(work)

    assert failed == replace(good, snapshot_good=False, refresh_error="it is down")
    assert (await snapshot(store, server, Tool("t", {"name": "t"}))).snapshot_good


async def test_what_a_change_raises_undoes_it(store: Store) -> None:
    server = await registered(store)

    async def work(tx: Transaction) -> None:
        await tx.record(Activity(build.NOW, "ann", Action.TOOL_DISABLED))
        await tx.save_policy(
            server.id,
            disabled_tools=frozenset({"t"}),
            retired_disabled_tools=frozenset(),
            read_only_tools=frozenset(),
        )
        raise LookupError("no")

    with pytest.raises(LookupError):
        await store.ledger.change(work)

    assert await store.servers.by_ref("/lab") == server
    assert list(await store.activity.newest(10)) == []


async def test_a_caller_that_goes_away_does_not_undo_its_change(store: Store) -> None:
    server = await registered(store)
    is_running = asyncio.Event()
    may_go_on = asyncio.Event()

    async def work(tx: Transaction) -> Server:
        is_running.set()
        await may_go_on.wait()
        return await tx.save_policy(
            server.id,
            disabled_tools=frozenset({"t"}),
            retired_disabled_tools=frozenset(),
            read_only_tools=frozenset(),
        )

    caller = asyncio.ensure_future(store.ledger.change(work))
    await is_running.wait()
    caller.cancel()
    await asyncio.wait({caller})
    may_go_on.set()

    async def nothing(_tx: Transaction) -> None:
        """Comes after the change before it."""

    await store.ledger.change(nothing)
    changed = await store.servers.by_ref("/lab")
    assert changed is not None
    assert changed.policy.disabled_tools == {"t"}


async def test_changes_side_by_side_lose_nothing(store: Store) -> None:
    server = await registered(store)

    def adds(name: str) -> asyncio.Future[Server]:
        async def work(tx: Transaction) -> Server:
            now = await tx.server(server.id)
            assert now is not None
            return await tx.save_policy(
                server.id,
                disabled_tools=now.policy.disabled_tools | {name},
                retired_disabled_tools=frozenset(),
                read_only_tools=frozenset(),
            )

        return asyncio.ensure_future(store.ledger.change(work))

    names = {f"tool-{i}" for i in range(50)}
    await asyncio.gather(*map(adds, names))

    changed = await store.servers.by_ref("/lab")
    assert changed is not None
    assert (changed.policy.disabled_tools, changed.policy.revision) == (names, 51)


async def test_a_key_is_kept_with_all_it_may_do(store: Store) -> None:
    key = build.key(
        groups=frozenset({"g"}),
        roles=frozenset({"r"}),
        tools=(Grant("srv-1", frozenset({"$a", "b.c"})), Grant("srv-2", "*")),
        expires_at=build.NOW + timedelta(days=1),
    )

    async def work(tx: Transaction) -> None:
        assert not await tx.any_key()
        await tx.add_key(key)
        assert await tx.any_key()

    await store.ledger.change(work)

    assert list(await store.keys.all()) == [key]


async def test_a_key_can_be_replaced_and_not_be_added_twice(store: Store) -> None:
    async def add(tx: Transaction) -> None:
        await tx.add_key(build.key())

    async def disable_it(tx: Transaction) -> None:
        await tx.save_key(build.key(enabled=False))

    await store.ledger.change(add)
    with pytest.raises(Conflict):
        await store.ledger.change(add)
    await store.ledger.change(disable_it)

    assert list(await store.keys.all()) == [build.key(enabled=False)]


@pytest.mark.parametrize(
    "entry",
    [
        AccessEntry("", PrincipalType.USER, "ann", VIEWER),
        AccessEntry("", PrincipalType.GROUP, "staff", VIEWER),
        AccessEntry("", PrincipalType.ROLE, "ops", VIEWER),
        AccessEntry("", PrincipalType.PUBLIC, "", VIEWER),
    ],
    ids=lambda entry: entry.principal_type.value,
)
async def test_an_entry_counts_for_whom_it_names(store: Store, entry: AccessEntry) -> None:
    async def work(tx: Transaction) -> None:
        server = await tx.add_server(LAB)
        await tx.add_entry(replace(entry, server_id=server.id))
        await tx.add_key(build.key(groups=frozenset({"staff"}), roles=frozenset({"ops"})))

    await store.ledger.change(work)

    facts = (await store.policies.read(frozenset({build.asked()})))[build.asked()]
    assert access.permissions(facts) == VIEWER


async def test_the_newest_rows_come_first(store: Store) -> None:
    rows = [Activity(build.NOW + timedelta(seconds=i), "ann", Action.TOOL_DISABLED, subject=str(i)) for i in range(5)]

    async def work(tx: Transaction) -> None:
        for row in rows:
            await tx.record(row)

    await store.ledger.change(work)

    assert list(await store.activity.newest(3)) == rows[:1:-1]


async def test_it_answers_when_it_is_there(store: Store) -> None:
    await store.health.ping()


async def test_a_deployment_has_a_name(store: Store) -> None:
    assert re.fullmatch(r"[0-9a-f]{12}", store.deployment_id)


async def test_a_decision_and_a_person_read_the_same_policy(store: Store) -> None:
    """An ETag is made of what a person reads and compared with what a change decides on."""
    server = await registered(store)
    await snapshot(
        store, server, Tool("a", {"name": "a", "annotations": {"readOnlyHint": True}}), Tool("b", {"name": "b"})
    )
    await disable(store, server, "b")
    shown = await store.servers.by_ref(server.id)
    facts = await store.policies.read(frozenset({asked := Asked(None, server.id)}))
    decided = facts[asked].server
    assert shown is not None
    assert decided is not None
    assert fingerprint(decided) == fingerprint(shown.policy)


EDIT = ServerEdit(
    title="T $now",
    description="D",
    tags=("a", "$b"),
    url="http://127.0.0.1:9/new",
    path="/new",
    enabled=False,
    trusted=True,
    passing={"list_ttl_ms": 5, "downstream_timeout_s": 2.5, "passes_cookies": True},
    credentials=(("X-A", "${SLUICEGATE_CREDENTIAL_A}"),),
)


async def edited(store: Store, server_id: str, edit: ServerEdit) -> Server:
    async def work(tx: Transaction) -> Server:
        return await tx.save_edit(server_id, edit)

    return await store.ledger.change(work)


async def test_an_edit_is_stored_whole_and_nothing_else_is_touched(store: Store) -> None:
    server = await registered(store)
    await snapshot(store, server, Tool("a"))
    before = await disable(store, server, "a")
    await edited(store, server.id, EDIT)
    now = await store.servers.by_ref("/new")
    assert now is not None
    assert (now.title, now.description, now.tags, now.url) == (EDIT.title, EDIT.description, EDIT.tags, EDIT.url)
    assert (now.id, now.name, now.tools, now.snapshot_good) == (before.id, before.name, before.tools, True)
    assert now.policy == replace(
        before.policy,
        path="/new",
        url="http://127.0.0.1:9/new",
        enabled=False,
        trusted=True,
        passing=Passing(5, 2.5, passes_cookies=True),
        credentials=(("X-A", "${SLUICEGATE_CREDENTIAL_A}"),),
        revision=before.policy.revision + 1,
    )
    assert await store.servers.by_ref("/lab") is None


async def test_texts_alone_make_no_new_revision_and_a_setting_can_be_reset(store: Store) -> None:
    server = await edited(store, (await registered(store)).id, EDIT)
    texts = await edited(store, server.id, ServerEdit(title="other"))
    assert (texts.title, texts.policy) == ("other", server.policy)
    reset = await edited(store, server.id, ServerEdit(passing={"list_ttl_ms": None}))
    assert reset.policy.passing == Passing(None, 2.5, passes_cookies=True)


async def test_a_path_goes_to_one_server_and_is_free_when_it_moves_on(store: Store) -> None:
    server = await registered(store)
    other = await registered(store, replace(LAB, path="/other", url="http://127.0.0.1:9/other"))
    with pytest.raises(Conflict, match="taken"):
        await edited(store, other.id, ServerEdit(path="/lab"))
    assert (await edited(store, server.id, ServerEdit(path="/lab"))).path == "/lab"
    await edited(store, server.id, ServerEdit(path="/elsewhere"))
    assert (await edited(store, other.id, ServerEdit(path="/lab"))).path == "/lab"
    with pytest.raises(Conflict):
        await registered(store, replace(LAB, url="http://127.0.0.1:9/third"))
    assert (await registered(store, replace(LAB, path="/other", url="http://127.0.0.1:9/third"))).path == "/other"


async def test_of_two_that_move_to_one_path_at_once_one_gets_it(store: Store) -> None:
    servers = [
        await registered(store, replace(LAB, path=f"/s{number}", url=f"http://127.0.0.1:9/{number}")) for number in "ab"
    ]
    outcomes = await asyncio.gather(
        *(edited(store, server.id, ServerEdit(path="/one")) for server in servers), return_exceptions=True
    )
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Conflict", "Server"]


SAME_DOWNSTREAM = ["http://127.0.0.1:9/mcp", "HTTP://127.1:9/a/../mcp", "http://2130706433:9/%6dcp"]


@pytest.mark.parametrize("url", SAME_DOWNSTREAM)
async def test_a_downstream_is_registered_once_however_it_is_spelled(store: Store, url: str) -> None:
    server = await registered(store)
    second = replace(LAB, path="/second", url=url)
    with pytest.raises(Conflict, match="this downstream"):
        await registered(store, second)
    assert await store.servers.by_ref("/second") is None
    allowed = await registered(store, replace(second, allows_duplicate=True))
    assert allowed.url == url
    await edited(store, server.id, ServerEdit(url="http://127.0.0.1:9/elsewhere"))
    with pytest.raises(Conflict, match="this downstream"):
        await edited(store, server.id, ServerEdit(url=url))


async def test_a_downstream_is_free_when_its_server_moves_on_or_goes(store: Store) -> None:
    server = await registered(store)
    await edited(store, server.id, ServerEdit(url="http://127.0.0.1:9/elsewhere"))
    second = await registered(store, replace(LAB, path="/second"))

    async def remove(tx: Transaction) -> None:
        await tx.remove_server(second.id)

    await store.ledger.change(remove)
    assert (await edited(store, server.id, ServerEdit(url=LAB.url))).url == LAB.url


async def test_of_two_registrations_of_one_downstream_at_once_one_gets_it(store: Store) -> None:
    outcomes = await asyncio.gather(
        *(registered(store, replace(LAB, path=f"/{name}")) for name in "abc"), return_exceptions=True
    )
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Conflict", "Conflict", "Server"]


async def test_the_keys_of_admins_are_found(store: Store) -> None:
    async def work(tx: Transaction) -> set[str]:
        await tx.add_key(build.key(id="a", hash="1" * 64, scopes=frozenset({Scope.ADMIN, Scope.READ}), enabled=False))
        await tx.add_key(build.key(id="b", hash="2" * 64, scopes=frozenset({Scope.READ})))
        return {key.id for key in await tx.admin_keys()}

    assert await store.ledger.change(work) == {"a"}

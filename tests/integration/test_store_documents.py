"""What strangers may have stored, and what BSON cannot hold."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from bson import DatetimeMS, Int64, ObjectId
from motor.motor_asyncio import AsyncIOMotorClient, AsyncIOMotorDatabase

from registry import access
from registry.access import Reason, Refusal
from registry.entries import NewServer, Server, ServerType, Snapshot, Tool
from registry.errors import Invalid
from registry.model import VIEWER, AccessEntry, Asked, Facts, PrincipalType
from registry.mongo import documents, records
from registry.mongo.store import MongoStore
from registry.ports import Transaction
from tests import build

Database = AsyncIOMotorDatabase[dict[str, Any]]

CONFIG = {"url": "http://127.0.0.1:9/mcp", "type": "streamable-http"}
NEVER = DatetimeMS(317_000_000_000_000)
"""The year 12015: later than Python can tell."""


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """The store's database through a bare driver."""
    client: AsyncIOMotorClient[dict[str, Any]] = AsyncIOMotorClient(database_url)
    yield client.get_default_database()
    client.close()


async def add_key(store: MongoStore, **changes: Any) -> None:
    async def work(tx: Transaction) -> None:
        await tx.add_key(build.key(**changes))

    await store.ledger.change(work)


async def facts_of(store: MongoStore, ref: str) -> Facts:
    asked = Asked(build.key().hash, ref)
    return (await store.policies.read(frozenset({asked})))[asked]


async def snapshot(store: MongoStore, *tools: Tool) -> Server:
    async def work(tx: Transaction) -> Server:
        server = await tx.server("/a") or await tx.add_server(
            NewServer("a", "/a", CONFIG["url"], ServerType.STREAMABLE_HTTP)
        )
        return await tx.save_snapshot(server.id, Snapshot(tools))

    return await store.ledger.change(work)


async def test_two_servers_under_one_path_are_refused_by_id_too(mongo_store: MongoStore, database: Database) -> None:
    made = await database.mcpservers.insert_many([{"path": "/a", "config": CONFIG}, {"path": "/a", "config": CONFIG}])
    first = str(made.inserted_ids[0])

    for policy in (
        (await facts_of(mongo_store, first)).server,
        getattr(await mongo_store.servers.by_ref(first), "policy", None),
    ):
        assert policy is not None
        assert (policy.server_id, policy.fault) == (first, "two servers are stored under this path")


async def test_a_path_that_is_another_servers_id_takes_nothing_from_it(
    mongo_store: MongoStore, database: Database
) -> None:
    victim = ObjectId()
    config = {**CONFIG, "enabled": True}
    await database.mcpservers.insert_one(
        {"_id": victim, "path": "/a", "config": config, "registryDisabledTools": ["t"]}
    )
    await database.mcpservers.insert_one({"path": str(victim), "config": config})

    known = (await facts_of(mongo_store, str(victim))).server

    assert known is not None
    assert (known.path, known.disabled_tools) == ("/a", {"t"})


async def test_no_question_about_a_server_finds_one_without_a_path(mongo_store: MongoStore, database: Database) -> None:
    await database.mcpservers.insert_one({"config": CONFIG})
    await add_key(mongo_store)

    answers = await mongo_store.policies.read(frozenset({Asked(build.key().hash), Asked(None, "\ud800")}))

    assert [facts.server for facts in answers.values()] == [None, None]


@pytest.mark.parametrize(
    "change",
    [
        {"principalId": None},
        {"principalId": ""},
        {"principalId": 7},
        {"principalId": []},
        {"principalType": "public"},
        {"permBits": 1.5},
        {"permBits": float("nan")},
        {"resourceType": "agent"},
        {"permBits": 0},
    ],
    ids=str,
)
async def test_a_malformed_entry_grants_nothing(
    mongo_store: MongoStore, database: Database, change: dict[str, Any]
) -> None:
    server_id = (await database.mcpservers.insert_one({"path": "/a", "config": CONFIG})).inserted_id
    entry = {"principalType": "user", "principalId": "None", "resourceType": "mcpServer", "resourceId": server_id}
    await database.aclentries.insert_one({**entry, "permBits": 15, **change})
    await add_key(mongo_store, user="None")

    assert access.use_server(await facts_of(mongo_store, "/a")) == Refusal(Reason.NOT_VISIBLE)


@pytest.mark.parametrize("bits", [1, 1.0, Int64(1), 17])
@pytest.mark.parametrize("public", [{}, {"principalId": None}, {"principalId": ""}], ids=str)
async def test_an_entry_for_the_public_counts_however_it_is_spelled(
    mongo_store: MongoStore, database: Database, bits: Any, public: dict[str, Any]
) -> None:
    server_id = (await database.mcpservers.insert_one({"path": "/a", "config": CONFIG})).inserted_id
    await database.aclentries.insert_one(
        {"principalType": "public", **public, "resourceType": "mcpServer", "resourceId": server_id, "permBits": bits}
    )
    await add_key(mongo_store)

    assert access.permissions(await facts_of(mongo_store, "/a")) == VIEWER


async def test_only_entries_for_who_asks_and_the_public_are_read(mongo_store: MongoStore, database: Database) -> None:
    async def work(tx: Transaction) -> None:
        server = await tx.add_server(NewServer("a", "/a", CONFIG["url"], ServerType.STREAMABLE_HTTP))
        for user in ("ann", "bob", "5f1d7f3e8b0c2a0012345678"):
            await tx.add_entry(AccessEntry(server.id, PrincipalType.USER, user, VIEWER))

    await mongo_store.ledger.change(work)
    await add_key(mongo_store)

    assert [entry.principal_id for entry in (await facts_of(mongo_store, "/a")).entries] == ["ann"]


@pytest.mark.parametrize(("stored", "read"), [(3.0, 3), (Int64(3), 3), ("3", 0), (None, 0), (True, 0), (2.5, 0)])
async def test_a_revision_is_read_whatever_wrote_it_and_can_be_raised(
    mongo_store: MongoStore, database: Database, stored: Any, read: int
) -> None:
    made = await database.mcpservers.insert_one({"path": "/a", "config": CONFIG, "registryPolicyRevision": stored})
    lists = frozenset[str]()

    async def work(tx: Transaction) -> tuple[Server | None, Server]:
        return await tx.server("/a"), await tx.save_policy(
            str(made.inserted_id), disabled_tools=lists, retired_disabled_tools=lists, read_only_tools=lists
        )

    before, after = await mongo_store.ledger.change(work)

    assert before is not None
    assert before.policy.revision == read
    assert after.policy.revision >= 1


def test_a_moment_that_python_cannot_tell_is_none_at_all() -> None:
    """The embedded store takes none such, MongoDB does."""
    entry = {"principalType": "user", "principalId": "ann", "resourceType": "mcpServer", "resourceId": ObjectId()}
    key = records.api_key_document(build.key())
    server = {"_id": ObjectId(), "path": "/a", "config": CONFIG}

    assert records.access_entry({**entry, "permBits": 1, "expiredAt": None}) is not None
    assert records.access_entry({**entry, "permBits": 1, "expiredAt": NEVER}) is None
    assert records.api_key(key) == build.key()
    assert records.api_key({**key, "expiresAt": NEVER}) is None
    assert documents.server({**server, "registryRefreshedAt": NEVER}) == documents.server(server)


async def test_what_is_no_moment_makes_no_server_and_no_list_unreadable(
    mongo_store: MongoStore, database: Database
) -> None:
    for path, moment in (("/a", {}), ("/b", "yesterday"), ("/c", 0)):
        await database.mcpservers.insert_one({"path": path, "config": CONFIG, "registryRefreshedAt": moment})

    servers = await mongo_store.servers.all()

    assert [(server.path, server.refreshed_at, server.snapshot_good) for server in servers] == [
        ("/a", None, False),
        ("/b", None, False),
        ("/c", None, False),
    ]


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        ({"function": {"name": "f"}}, "f"),
        ({"function": {"name": "f"}, "mcpToolName": None}, "f"),
        ({"function": {"name": "f"}, "mcpToolName": "t"}, "t"),
    ],
)
async def test_a_strangers_tool_has_its_own_name_or_its_functions(
    mongo_store: MongoStore, database: Database, entry: dict[str, Any], name: str
) -> None:
    functions: dict[str, Any] = {"a": entry, "b": {"function": {}}, "c": None}
    await database.mcpservers.insert_one({"path": "/a", "config": {**CONFIG, "toolFunctions": functions}})

    server = await mongo_store.servers.by_ref("/a")

    assert server is not None
    assert server.tools == (Tool(name, {"name": name}),)


async def test_names_with_nul_stay_apart_in_the_copy_for_other_programs(
    mongo_store: MongoStore, database: Database
) -> None:
    names = ["a\0", "a%00", "a%2500", "a%", "a%25"]

    stored = await snapshot(mongo_store, *(Tool(name, {"name": name}) for name in names))

    assert [tool.name for tool in stored.tools] == names
    document = await database.mcpservers.find_one({})
    assert document is not None
    functions = document["config"]["toolFunctions"]
    assert [entry["mcpToolName"] for entry in functions.values()] == names
    assert list(functions)[3] == "a%_mcp_a"


async def test_a_schema_that_bson_cannot_hold_comes_back_equal(mongo_store: MongoStore, database: Database) -> None:
    deep: dict[str, Any] = {}
    for _ in range(150):
        deep = {"items": [deep]}
    definition = {
        "name": "t",
        "description": "a lone \ud800",
        "inputSchema": {"deep": deep, "huge": 10**400, "big": 2**64, "k\ud800": "v\ud800", "$ref": "#/$defs/a.b"},
    }

    stored = await snapshot(mongo_store, Tool("t", definition))

    assert stored.tools == (Tool("t", definition),)
    document = await database.mcpservers.find_one({})
    assert document is not None
    parameters = document["config"]["toolFunctions"]["t_mcp_a"]["function"]["parameters"]
    assert (parameters["big"], parameters["huge"], parameters["$ref"]) == (2.0**64, str(10**400), "#/$defs/a.b")
    assert _depth(document) < 100  # MongoDB's limit


def _depth(value: Any) -> int:
    items = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return 1 + max(map(_depth, items), default=0)


async def test_a_name_that_has_no_utf8_form_is_invalid(mongo_store: MongoStore) -> None:
    server = await snapshot(mongo_store)

    async def work(tx: Transaction) -> Server:
        lists = frozenset({"\ud800"})
        return await tx.save_policy(
            server.id, disabled_tools=lists, retired_disabled_tools=lists, read_only_tools=lists
        )

    with pytest.raises(Invalid):
        await mongo_store.ledger.change(work)
    assert await mongo_store.servers.by_ref("\ud800") is None

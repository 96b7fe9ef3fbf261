"""What only the real store can show: documents of strangers, outages, cost."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from bson import ObjectId
from motor.motor_asyncio import AsyncIOMotorClient, AsyncIOMotorDatabase

from registry import access
from registry.access import Permit, Reason, Refusal
from registry.entries import Snapshot, Tool
from registry.errors import StoreUnavailable, StoreUnusable
from registry.model import Asked, Facts
from registry.mongo.store import MongoStore
from registry.ports import Transaction
from tests import build
from tests.conftest import StoreProcess, running_store

STRANGE: dict[str, Any] = {
    "serverName": "theirs",
    "path": "/theirs",
    "author": ObjectId(),
    "numTools": 1,
    "config": {
        "url": "http://127.0.0.1:9/mcp",
        "type": "streamable-http",
        "title": "Theirs",
        "requiresOAuth": True,
        "toolFunctions": {
            "read_mcp_theirs": {
                "type": "function",
                "function": {"name": "read_mcp_theirs", "description": "Reads.", "parameters": {"type": "object"}},
                "mcpToolName": "read",
            }
        },
    },
    "registryDisabledTools": ["read"],
    "registryFuture": {"a": 1},
}
"""A document as another registry writes it, with fields that are none of ours."""


@pytest.fixture
async def strangers(database_url: str) -> AsyncIterator[AsyncIOMotorDatabase[dict[str, Any]]]:
    """The same database through a bare driver."""
    client: AsyncIOMotorClient[dict[str, Any]] = AsyncIOMotorClient(database_url)
    yield client.get_default_database()
    client.close()


async def facts_of(store: MongoStore, path: str) -> Facts:
    asked = Asked(build.key().hash, path)
    return (await store.policies.read(frozenset({asked})))[asked]


async def with_key(store: MongoStore) -> None:
    async def work(tx: Transaction) -> None:
        await tx.add_key(build.key())

    await store.ledger.change(work)


async def test_a_server_of_another_registry_is_read_as_it_is(
    mongo_store: MongoStore, strangers: AsyncIOMotorDatabase[dict[str, Any]]
) -> None:
    server_id = (await strangers.mcpservers.insert_one(dict(STRANGE))).inserted_id

    server = await mongo_store.servers.by_ref("/theirs")

    assert server is not None
    assert (server.id, server.name, server.title) == (str(server_id), "theirs", "Theirs")
    assert server.policy.disabled_tools == {"read"}
    assert [(tool.name, tool.description, tool.input_schema) for tool in server.tools] == [
        ("read", "Reads.", {"type": "object"})
    ]


@pytest.mark.parametrize("principal_id", ["5f1d7f3e8b0c2a0012345678", "ann"])
@pytest.mark.parametrize("as_object_id", [True, False])
async def test_ids_of_another_registry_match_in_either_form(
    mongo_store: MongoStore,
    strangers: AsyncIOMotorDatabase[dict[str, Any]],
    principal_id: str,
    as_object_id: bool,
) -> None:
    server_id = (await strangers.mcpservers.insert_one({**STRANGE, "registryDisabledTools": []})).inserted_id
    is_object_id = as_object_id and len(principal_id) == 24
    await strangers.aclentries.insert_one(
        {
            "principalType": "user",
            "principalId": ObjectId(principal_id) if is_object_id else principal_id,
            "resourceType": "mcpServer",
            "resourceId": server_id if as_object_id else str(server_id),
            "permBits": 1,
        }
    )

    async def work(tx: Transaction) -> None:
        await tx.add_key(build.key(user=principal_id))

    await mongo_store.ledger.change(work)

    assert isinstance(access.use_tool(await facts_of(mongo_store, "/theirs"), "read"), Permit)


async def test_an_entry_for_something_else_gives_nothing(
    mongo_store: MongoStore, strangers: AsyncIOMotorDatabase[dict[str, Any]]
) -> None:
    server_id = (await strangers.mcpservers.insert_one(dict(STRANGE))).inserted_id
    rows: list[dict[str, Any]] = [
        {"resourceType": "agent", "permBits": 15},
        {"resourceType": "mcpServer", "permBits": "15"},
        {"resourceType": "mcpServer", "permBits": True},
        {"resourceType": "mcpServer", "permBits": 15, "expiredAt": "later"},
        {"resourceType": "mcpServer", "permBits": 15, "principalType": "planet"},
        {"resourceType": "mcpServer", "permBits": 15, "principalType": ["user"]},
    ]
    named = {"principalType": "user", "principalId": "ann", "resourceId": server_id}
    await strangers.aclentries.insert_many([{**named, **row} for row in rows])
    await with_key(mongo_store)

    assert access.use_server(await facts_of(mongo_store, "/theirs")) == Refusal(Reason.NOT_VISIBLE)


async def test_fields_that_are_not_ours_survive_every_write(
    mongo_store: MongoStore, strangers: AsyncIOMotorDatabase[dict[str, Any]]
) -> None:
    server_id = str((await strangers.mcpservers.insert_one(dict(STRANGE))).inserted_id)

    async def work(tx: Transaction) -> None:
        lists = frozenset({"a"})
        await tx.save_policy(server_id, disabled_tools=lists, retired_disabled_tools=lists, read_only_tools=lists)
        await tx.save_snapshot(server_id, Snapshot((Tool("t", {"name": "t"}),)))
        await tx.save_refresh_error(server_id, "down")

    await mongo_store.ledger.change(work)

    stored = await strangers.mcpservers.find_one({"path": "/theirs"})
    assert stored is not None
    for name in ("serverName", "path", "author", "numTools", "registryFuture"):
        assert stored[name] == STRANGE[name]
    assert stored["config"]["requiresOAuth"] is True
    assert set(stored["config"]["toolFunctions"]) == {"t_mcp_theirs"}
    assert stored["registryPolicyRevision"] == 1


MALFORMED: dict[str, dict[str, Any]] = {
    "a null list": {"registryDisabledTools": None},
    "a text for a list": {"registryDisabledTools": "read"},
    "a mixed list": {"registryDisabledTools": ["read", 7]},
    "a map for a list": {"registryDisabledTools": {"read": True}},
    "null tombstones": {"registryRetiredDisabledTools": None},
    "read-only marks that are no list": {"registryReadOnlyTools": "*"},
    "no config": {"config": None},
    "no url": {"config": {"type": "streamable-http"}},
    "enabled that is no boolean": {"config": {**STRANGE["config"], "enabled": "false"}},
    "a transport that is not there yet": {"config": {**STRANGE["config"], "type": "sse"}},
}


@pytest.mark.parametrize("kind", MALFORMED)
async def test_a_policy_that_cannot_be_read_refuses_its_server_and_says_why(
    mongo_store: MongoStore, strangers: AsyncIOMotorDatabase[dict[str, Any]], kind: str
) -> None:
    server_id = (await strangers.mcpservers.insert_one({**STRANGE, **MALFORMED[kind]})).inserted_id
    await strangers.aclentries.insert_one(
        {"principalType": "public", "resourceType": "mcpServer", "resourceId": server_id, "permBits": 1}
    )
    await with_key(mongo_store)

    verdict = access.use_tool(await facts_of(mongo_store, "/theirs"), "other")

    assert isinstance(verdict, Refusal)
    assert verdict.reason in (Reason.POLICY_UNREADABLE, Reason.NOT_VISIBLE)
    server = await mongo_store.servers.by_ref("/theirs")
    assert server is not None
    assert server.policy.fault


@pytest.mark.parametrize("path", ["theirs", "/Theirs", "/theirs/mcp", "/a//b", "/a/../b", None, 7])
async def test_a_path_against_the_rules_is_listed_with_the_reason(
    mongo_store: MongoStore, strangers: AsyncIOMotorDatabase[dict[str, Any]], path: Any
) -> None:
    await strangers.mcpservers.insert_one({**STRANGE, "path": path})

    servers = await mongo_store.servers.all()

    assert [bool(server.policy.fault) for server in servers] == [True]


async def test_two_documents_under_one_path_are_both_refused(
    mongo_store: MongoStore, strangers: AsyncIOMotorDatabase[dict[str, Any]]
) -> None:
    await strangers.mcpservers.insert_many([dict(STRANGE), dict(STRANGE)])

    for server in (*await mongo_store.servers.all(), await mongo_store.servers.by_ref("/theirs")):
        assert server is not None
        assert server.policy.fault == "two servers are stored under this path"
    known = (await facts_of(mongo_store, "/theirs")).server
    assert known is not None
    assert known.fault


@pytest.mark.parametrize(
    "change", [{"scopes": ["mcp", "everything"]}, {"scopes": "mcp"}, {"user": 7}, {"expiresAt": "never"}, {"tools": 1}]
)
async def test_a_malformed_key_is_no_key(
    mongo_store: MongoStore, strangers: AsyncIOMotorDatabase[dict[str, Any]], change: dict[str, Any]
) -> None:
    await with_key(mongo_store)
    await strangers.apikeys.update_one({}, {"$set": change})

    assert (await facts_of(mongo_store, "/theirs")).key is None
    assert list(await mongo_store.keys.all()) == []


async def test_a_store_that_is_frozen_is_a_refusal_in_time_and_recovers(tmp_path: Path) -> None:
    with running_store(tmp_path) as process:
        store = MongoStore(process.url("frozen"), timeout_s=0.5)
        await store.prepare()
        await with_key(store)
        process.freeze()
        begun = time.monotonic()
        outcomes = await asyncio.gather(
            *(facts_of(store, "/theirs") for _ in range(40)),
            store.ledger.change(lambda tx: tx.any_key()),
            store.servers.by_ref("/theirs"),
            store.health.ping(),
            return_exceptions=True,
        )
        took_s = time.monotonic() - begun
        process.thaw()

        assert {type(outcome) for outcome in outcomes} <= {StoreUnavailable}
        assert took_s < 2  # four times the deadline of each, which all run side by side
        while not await _answers(store):
            pass
        await store.close()


async def _answers(store: MongoStore) -> bool:
    try:
        return (await facts_of(store, "/theirs")).key is not None
    except StoreUnavailable:
        return False


async def test_what_an_abandoned_change_locked_is_free_once_the_store_is_back(tmp_path: Path) -> None:
    """Otherwise the document stays locked for a minute (measured on the embedded store)."""
    with running_store(tmp_path) as process:
        store = MongoStore(process.url("abandoned"), timeout_s=0.5)
        await store.prepare()
        await with_key(store)

        async def freeze_after_writing(tx: Transaction) -> None:
            await tx.save_key(build.key(name="lost"))
            process.freeze()
            await tx.any_key()

        with pytest.raises(StoreUnavailable):
            await store.ledger.change(freeze_after_writing)
        process.thaw()

        async def rename(tx: Transaction) -> None:
            await tx.save_key(build.key(name="kept"))

        while not await _changes(store, rename):
            pass
        assert [key.name for key in await store.keys.all()] == ["kept"]
        await store.close()


async def _changes(store: MongoStore, work: Any) -> bool:
    try:
        await store.ledger.change(work)
    except StoreUnavailable:
        return False
    return True


async def test_a_store_that_is_no_replica_set_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with running_store(tmp_path, "--standalone") as process:
        store = MongoStore(f"mongodb://127.0.0.1:{process.port}/")
        with pytest.raises(StoreUnusable, match="replica set"):
            await store.prepare()
        await store.close()


@pytest.mark.parametrize("url", ["nonsense", "mongodb://", "mongodb://127.0.0.1:x/", "mongodb://127.0.0.1/a?w=-5"])
async def test_a_connection_string_that_makes_no_sense_is_refused_by_its_name(url: str) -> None:
    with pytest.raises(StoreUnusable, match="SLUICEGATE_MONGODB_URL"):
        MongoStore(url)


async def test_a_store_that_cannot_be_reached_is_refused_with_what_to_do() -> None:
    store = MongoStore("mongodb://127.0.0.1:1/?replicaSet=x", timeout_s=0.3)
    with pytest.raises(StoreUnusable, match="SLUICEGATE_MONGODB_URL"):
        await store.prepare()
    await store.close()


@pytest.mark.slow
@pytest.mark.timeout(60)
async def test_a_read_costs_the_same_with_ten_thousand_keys(
    mongo_store: MongoStore, strangers: AsyncIOMotorDatabase[dict[str, Any]]
) -> None:
    """DESIGN 4: every find of the read has an index."""
    await strangers.mcpservers.insert_one(dict(STRANGE))
    await with_key(mongo_store)
    few_s = await _seconds_for_reads(mongo_store)
    template = await strangers.apikeys.find_one({})
    assert template is not None
    for _ in range(10):
        many = [{**template, "_id": uuid.uuid4().hex, "hash": uuid.uuid4().hex} for _ in range(1000)]
        await strangers.apikeys.insert_many(many)
        others = [{**STRANGE, "_id": ObjectId(), "path": f"/s{uuid.uuid4().hex}", "config": {}} for _ in range(100)]
        await strangers.mcpservers.insert_many(others)
        entries = [{"resourceType": "mcpServer", "resourceId": ObjectId(), "permBits": 1} for _ in range(1000)]
        await strangers.aclentries.insert_many(entries)

    many_s = await _seconds_for_reads(mongo_store)

    assert many_s < 3 * few_s


async def _seconds_for_reads(store: MongoStore) -> float:
    """The fastest of several rounds, since the machine is shared."""
    rounds = []
    for _ in range(5):
        begun = time.perf_counter()
        for _ in range(20):
            await facts_of(store, "/theirs")
        rounds.append(time.perf_counter() - begun)
    return min(rounds)


async def test_all_replicas_on_one_database_have_one_name_and_others_have_another(
    store_process: StoreProcess, database_url: str
) -> None:
    stores = [MongoStore(url) for url in [database_url] * 4 + [store_process.url("another")]]
    try:
        await asyncio.gather(*(store.prepare() for store in stores))
        names = [store.deployment_id for store in stores]
    finally:
        for store in stores:
            await store.close()

    assert len(set(names[:4])) == 1
    assert names[4] != names[0]


async def test_a_name_that_is_none_of_ours_is_no_start(
    mongo_store: MongoStore, strangers: AsyncIOMotorDatabase[dict[str, Any]]
) -> None:
    await strangers.deployment.update_one({}, {"$set": {"name": "x, y"}})

    with pytest.raises(StoreUnusable, match=r"^The collection `deployment` holds no name of ours; "):
        await mongo_store.prepare()


async def test_before_a_store_is_prepared_its_name_is_not_known(database_url: str) -> None:
    store = MongoStore(database_url)
    try:
        with pytest.raises(RuntimeError, match="not prepared"):
            _ = store.deployment_id
    finally:
        await store.close()

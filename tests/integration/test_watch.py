"""The change stream of the real store: what strangers write, what a kill interrupts, what was lost."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from bson import ObjectId
from motor.motor_asyncio import AsyncIOMotorClient

from registry.changes import EVERYTHING, StoreChange, Subject
from registry.mongo.watch import MongoChangeFeed
from tests.conftest import running_store

Events = asyncio.Queue[StoreChange]


@contextlib.asynccontextmanager
async def heard(feed: MongoChangeFeed) -> AsyncIterator[Events]:
    """The events as they come; what is on its way when the context is left comes again in the next."""
    events: Events = asyncio.Queue()

    async def hear() -> None:
        async with contextlib.aclosing(feed.changes()) as changes:
            async for change in changes:
                events.put_nowait(change)

    task = asyncio.create_task(hear())
    try:
        yield events
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@contextlib.asynccontextmanager
async def driver(url: str) -> AsyncIterator[Any]:
    """A stranger's connection."""
    client: AsyncIOMotorClient[Any] = AsyncIOMotorClient(url)
    yield client
    client.close()


@contextlib.asynccontextmanager
async def feeding(url: str) -> AsyncIterator[MongoChangeFeed]:
    feed = MongoChangeFeed(url, None)
    yield feed
    await feed.close()


async def test_what_strangers_write_is_told_by_what_it_is_about(database_url: str) -> None:
    async with driver(database_url) as client, feeding(database_url) as feed, heard(feed) as events:
        assert await events.get() == EVERYTHING
        db = client.get_default_database()
        server = (await db.mcpservers.insert_one({"path": "/x"})).inserted_id
        assert await events.get() == StoreChange(Subject.SERVER, str(server))
        await db.activity.insert_one({"not": "ours to hear of"})
        await db.mcpservers.update_one({"_id": server}, [{"$set": {"registryDisabledTools": ["a"]}}])
        assert await events.get() == StoreChange(Subject.SERVER, str(server))
        for collection, subject in (
            ("aclentries", Subject.ENTRY),
            ("apikeys", Subject.KEY),
            ("toolswitches", Subject.SWITCH),
        ):
            made = (await db[collection].insert_one({"_id": f"in {collection}"})).inserted_id
            assert await events.get() == StoreChange(subject, made)
        await db.mcpservers.delete_one({"_id": server})
        assert await events.get() == StoreChange(Subject.SERVER, str(server))


async def test_what_changed_while_nobody_listened_is_told_when_somebody_does_again(database_url: str) -> None:
    async with driver(database_url) as client, feeding(database_url) as feed:
        db = client.get_default_database()
        async with heard(feed) as events:
            assert await events.get() == EVERYTHING
            first = (await db.mcpservers.insert_one({"path": "/x"})).inserted_id
            assert await events.get() == StoreChange(Subject.SERVER, str(first))
        second = (await db.mcpservers.insert_one({"path": "/y"})).inserted_id
        async with heard(feed) as events:
            told = {(await events.get()).id}
            while str(second) not in told:  # the one before may come once more
                told.add((await events.get()).id)
            assert EVERYTHING.id not in told


@pytest.mark.timeout(60)
async def test_a_store_that_is_killed_and_started_again_is_listened_to_again(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    options = ("--port", str(port))
    with running_store(tmp_path, *options) as store, contextlib.ExitStack() as second:
        url = store.url("watched")
        async with driver(url) as client, feeding(url) as feed, heard(feed) as events:
            assert await events.get() == EVERYTHING
            db = client.get_default_database()
            before = (await db.mcpservers.insert_one({"path": "/x"})).inserted_id
            assert await events.get() == StoreChange(Subject.SERVER, str(before))
            store.process.kill()
            store.process.wait()
            await asyncio.to_thread(second.enter_context, running_store(tmp_path, *options))
            after = (await db.mcpservers.insert_one({"path": "/y"})).inserted_id
            told = await events.get()
            while told != StoreChange(Subject.SERVER, str(after)):
                told = await events.get()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("code", [286, 280])
async def test_a_history_that_was_lost_is_everything(tmp_path: Path, code: int) -> None:
    with running_store(tmp_path, "--enable-test-commands") as store:
        url = store.url("watched")
        async with driver(url) as client, feeding(url) as feed, heard(feed) as events:
            assert await events.get() == EVERYTHING
            db = client.get_default_database()
            await db.mcpservers.insert_one({"_id": ObjectId()})
            assert (await events.get()).subject is Subject.SERVER
            lost = {
                "failCommands": ["getMore", "aggregate"],
                "errorCode": code,
                "errorLabels": ["NonResumableChangeStreamError"],
                "appName": "sluicegate watch",
            }
            fail = {"configureFailPoint": "failCommand", "mode": {"times": 1}, "data": lost}
            await client.admin.command(fail)
            assert await events.get() == EVERYTHING
            made = (await db.mcpservers.insert_one({"path": "/x"})).inserted_id
            assert await events.get() == StoreChange(Subject.SERVER, str(made))

"""The transaction loop against a store that fails on command."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from motor.motor_asyncio import AsyncIOMotorClient

from registry.errors import OutcomeUnknown, StoreUnavailable, StoreUnusable
from registry.model import Asked
from registry.mongo.store import MongoStore
from registry.mongo.transaction import MongoTransaction
from registry.ports import Transaction
from tests import build
from tests.conftest import StoreProcess, running_store

TIMEOUT_S = 0.5


@pytest.fixture(scope="module")
def failing_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProcess]:
    """A store of this module's own: what fails in it fails for everybody."""
    with running_store(tmp_path_factory.mktemp("failing"), "--enable-test-commands") as process:
        yield process


class Failing:
    """A prepared store, and what it is told to fail at."""

    def __init__(self, url: str) -> None:
        self.store = MongoStore(url, timeout_s=TIMEOUT_S)
        self._driver: AsyncIOMotorClient[dict[str, Any]] = AsyncIOMotorClient(url)

    async def fail(self, command: str, *, times: int | None = 1, **how: Any) -> None:
        """From now on this command fails, so many times; None: until `mend`."""
        mode = "alwaysOn" if times is None else {"times": times}
        data = {"failCommands": [command], **how}
        await self._driver.admin.command("configureFailPoint", "failCommand", mode=mode, data=data)

    async def mend(self) -> None:
        """Nothing fails any more."""
        await self._driver.admin.command("configureFailPoint", "failCommand", mode="off")

    async def forget(self, session: Any) -> None:
        """The store ends this session's transaction."""
        await self._driver.admin.command("killSessions", [session.session_id])

    async def names(self) -> list[str]:
        """What is stored."""
        return [key.name for key in await self.store.keys.all()]

    def close(self) -> None:
        self._driver.close()


@pytest.fixture
async def failing(failing_process: StoreProcess, request: pytest.FixtureRequest) -> AsyncIterator[Failing]:
    made = Failing(failing_process.url(f"failing_{abs(hash(request.node.name))}"))
    await made.store.prepare()
    yield made
    await made.mend()
    await made.store.close()
    made.close()


class Rename:
    """Work that counts how often it ran."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.runs = 0

    async def __call__(self, tx: Transaction) -> None:
        self.runs += 1
        if await tx.any_key():
            await tx.save_key(build.key(name=self.name))
        else:
            await tx.add_key(build.key(name=self.name))


@pytest.mark.parametrize("command", ["insert", "commitTransaction"])
async def test_a_change_that_lost_a_race_runs_again(failing: Failing, command: str) -> None:
    await failing.fail(command, errorCode=112, errorLabels=["TransientTransactionError"])
    work = Rename("kept")

    await failing.store.ledger.change(work)

    assert (work.runs, await failing.names()) == (2, ["kept"])


async def test_of_a_commit_with_unknown_outcome_only_the_commit_is_repeated(failing: Failing) -> None:
    await failing.fail("commitTransaction", times=3, errorCode=64, errorLabels=["UnknownTransactionCommitResult"])
    work = Rename("kept")

    await failing.store.ledger.change(work)

    assert (work.runs, await failing.names()) == (1, ["kept"])


async def test_a_commit_whose_outcome_stays_unknown_says_so_and_its_work_ran_once(failing: Failing) -> None:
    await failing.fail("commitTransaction", times=None, errorCode=64, errorLabels=["UnknownTransactionCommitResult"])
    work = Rename("lost")

    with pytest.raises(OutcomeUnknown):
        await failing.store.ledger.change(work)

    assert work.runs == 1


async def test_once_a_commits_outcome_is_unknown_the_work_never_runs_again(failing: Failing) -> None:
    """A store that restarted in between knows no such transaction, and may have kept it all the same."""
    await failing.fail("commitTransaction", errorCode=64, errorLabels=["UnknownTransactionCommitResult"])
    work = Rename("lost")

    async def forgotten_by_the_store(tx: Transaction) -> None:
        await work(tx)
        assert isinstance(tx, MongoTransaction)
        await failing.forget(tx.session)

    with pytest.raises(OutcomeUnknown):
        await failing.store.ledger.change(forgotten_by_the_store)

    assert work.runs == 1


async def test_a_commit_that_fails_for_good_may_have_been_kept_and_says_so(failing: Failing) -> None:
    await failing.fail("commitTransaction", errorCode=100)

    with pytest.raises(OutcomeUnknown):
        await failing.store.ledger.change(Rename("x"))


async def test_races_that_never_end_are_a_refusal_at_the_deadline(failing: Failing) -> None:
    await failing.fail("insert", times=None, errorCode=112, errorLabels=["TransientTransactionError"])
    begun = time.monotonic()

    with pytest.raises(StoreUnavailable) as refused:
        await failing.store.ledger.change(Rename("x"))

    assert type(refused.value) is StoreUnavailable
    assert time.monotonic() - begun < 4 * TIMEOUT_S
    await failing.mend()
    assert await failing.names() == []


async def test_a_connection_that_breaks_leaves_nothing_locked(failing: Failing) -> None:
    await failing.store.ledger.change(Rename("first"))
    broken = Rename("broken")

    async def breaks_after_writing(tx: Transaction) -> None:
        await broken(tx)
        if broken.runs == 1:
            await failing.fail("aggregate", closeConnection=True)
            await tx.facts(Asked(build.key().hash))

    await failing.store.ledger.change(breaks_after_writing)

    assert (broken.runs, await failing.names()) == (2, ["broken"])


@pytest.mark.parametrize("command", ["aggregate", "commitTransaction"])
async def test_a_read_that_lost_a_race_is_repeated(failing: Failing, command: str) -> None:
    await failing.store.ledger.change(Rename("kept"))
    await failing.fail(command, times=2, errorCode=246, errorLabels=["TransientTransactionError"])
    asked = Asked(build.key().hash)

    assert (await failing.store.policies.read(frozenset({asked})))[asked].key is not None


@pytest.mark.parametrize("command", ["aggregate", "commitTransaction"])
async def test_a_read_that_fails_is_a_refusal(failing: Failing, command: str) -> None:
    await failing.store.ledger.change(Rename("kept"))
    await failing.fail(command, errorCode=13)

    with pytest.raises(StoreUnavailable):
        await failing.store.policies.read(frozenset({Asked(build.key().hash)}))


async def test_what_the_work_raises_comes_through_even_when_it_is_a_timeout(failing: Failing) -> None:
    async def work(_tx: Transaction) -> None:
        raise TimeoutError("of its own")

    with pytest.raises(TimeoutError, match="of its own"):
        await failing.store.ledger.change(work)


async def test_work_that_never_ends_is_ended_at_the_deadline_and_locks_nothing(failing: Failing) -> None:
    await failing.store.ledger.change(Rename("first"))

    async def work(tx: Transaction) -> None:
        await Rename("never")(tx)
        await asyncio.Event().wait()

    with pytest.raises(StoreUnavailable):
        await failing.store.ledger.change(work)
    await failing.store.ledger.change(Rename("kept"))

    assert await failing.names() == ["kept"]


async def test_freeing_what_a_change_locked_is_tried_again_until_it_works(failing: Failing) -> None:
    await failing.store.ledger.change(Rename("first"))
    await failing.fail("killSessions", errorCode=8)

    async def work(tx: Transaction) -> None:
        await Rename("never")(tx)
        await asyncio.Event().wait()

    with pytest.raises(StoreUnavailable):
        await failing.store.ledger.change(work)
    await failing.store.ledger.change(Rename("kept"))

    assert await failing.names() == ["kept"]


async def test_a_store_that_refuses_us_is_refused_with_what_to_do(failing: Failing) -> None:
    await failing.fail("createIndexes", errorCode=13)

    with pytest.raises(StoreUnusable, match="SLUICEGATE_MONGODB_URL"):
        await failing.store.prepare()


async def test_whatever_the_connection_string_says_the_guarantee_holds(store_process: StoreProcess) -> None:
    options = "readPreference=secondary&w=0&readConcernLevel=local&timeoutMS=1"
    store = MongoStore(f"{store_process.url('overridden')}&{options}")
    await store.prepare()
    work, asked = Rename("kept"), Asked(build.key().hash)

    await store.ledger.change(work)
    facts = (await store.policies.read(frozenset({asked})))[asked]
    await store.close()

    assert facts.key == build.key(name="kept")


async def test_a_connection_string_is_refused_without_a_piece_of_its_password() -> None:
    with pytest.raises(StoreUnusable) as refused:
        MongoStore("mongodb://root:pass/s3cret@127.0.0.1/")

    assert "s3cret" not in str(refused.value)


async def test_two_replicas_may_prepare_one_store_at_once(database_url: str) -> None:
    stores = [MongoStore(database_url) for _ in range(3)]

    await asyncio.gather(*(store.prepare() for store in stores))
    await asyncio.gather(*(store.prepare() for store in stores))
    await asyncio.gather(*(store.close() for store in stores))

"""Every text is embedded once, in the background, and whoever waits for it is told (DESIGN 6)."""

import asyncio
import threading
from array import array
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial

import pytest
from structlog.testing import capture_logs

from config.background import running
from registry.errors import EmbedderUnusable
from registry.indexing import Vector
from registry.vectors import Vectors
from tests.waiting import until


class Toy:
    """An `Embedder` that notes every batch; one of several texts waits while `gate` is shut."""

    name = "toy-1"

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.failure: EmbedderUnusable | None = None
        self.closed_in: threading.Thread | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        self.batches.append([*texts])
        if len(texts) > 1:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return [vector_of(text) for text in texts]

    def close(self) -> None:
        self.closed_in = threading.current_thread()

    @property
    def texts(self) -> list[str]:
        return [text for batch in self.batches for text in batch]


class Kept:
    """`VectorCache` in memory; while `gate` is shut, loading blocks."""

    def __init__(self, vectors: Mapping[str, Vector] | None = None) -> None:
        self.vectors = {"toy-1": dict(vectors or {}), "toy-2": {"foreign": array("f", [9.0])}}
        self.threads: set[threading.Thread] = set()
        self.is_loading, self.gate = threading.Event(), threading.Event()
        self.gate.set()

    def load(self, name: str) -> Mapping[str, Vector]:
        self.threads.add(threading.current_thread())
        self.is_loading.set()
        self.gate.wait()
        return dict(self.vectors[name])

    def save(self, name: str, vectors: Mapping[str, Vector]) -> None:
        self.threads.add(threading.current_thread())
        self.vectors[name] |= vectors


def vector_of(text: str) -> Vector:
    return array("f", [float(len(text)), 1.0])


def vectors_of(*texts: str) -> dict[str, Vector]:
    return {text: vector_of(text) for text in texts}


@pytest.fixture
def toy() -> Toy:
    return Toy()


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def vectors(toy: Toy, kept: Kept) -> Vectors:
    return Vectors(lambda: toy, kept)


@pytest.fixture
async def works(vectors: Vectors) -> AsyncIterator[None]:
    """It runs, and has begun."""
    async with running({"vectors": vectors.run}):
        await vectors.loaded.wait()
        yield


@pytest.fixture
def told() -> list[str]:
    """Who was told, in order."""
    return []


def nothing() -> None:
    """A delivery that is not looked at."""


def refusing() -> Toy:
    raise EmbedderUnusable("no such file")


async def settle() -> None:
    """Let every task that can run do so."""
    for _ in range(20):
        await asyncio.sleep(0)


# From wanted to known


@pytest.mark.usefixtures("works")
async def test_a_wanted_text_is_embedded_kept_and_told(vectors: Vectors, toy: Toy, kept: Kept) -> None:
    known_when_told: list[Mapping[str, Vector]] = []
    delivered = asyncio.Event()

    def delivery() -> None:
        known_when_told.append(vectors.known(["b", "a", "c"]))
        delivered.set()

    vectors.want("index", ["b", "a"], delivery)
    assert vectors.known(["a", "b"]) == {}, "it must return at once"
    await delivered.wait()
    await until(lambda: kept.vectors["toy-1"] == vectors_of("a", "b"))

    assert (known_when_told, toy.batches) == ([vectors_of("b", "a")], [["b", "a"]])


@pytest.mark.usefixtures("works")
async def test_a_text_that_several_want_at_any_time_is_embedded_once_and_all_are_told(
    vectors: Vectors, toy: Toy, told: list[str]
) -> None:
    toy.gate.clear()
    vectors.want(1, ["a", "b"], partial(told.append, "first"))
    vectors.want(2, ["a"], partial(told.append, "second"))
    await until(lambda: toy.batches == [["a", "b"]])
    vectors.want(3, ["b", "a"], partial(told.append, "while it is embedded"))
    toy.gate.set()
    await until(lambda: len(told) == 3)
    vectors.want(4, ["a", "b"], partial(told.append, "never"))
    vectors.want(5, ["c"], partial(told.append, "new"))
    await until(lambda: len(told) == 4)

    assert told == ["first", "second", "while it is embedded", "new"]
    assert toy.texts == ["a", "b", "c"]


@pytest.mark.usefixtures("works")
async def test_who_waits_for_many_is_told_with_each_batch_and_who_waits_for_none_of_it_is_not(
    vectors: Vectors, toy: Toy, told: list[str]
) -> None:
    many = [f"text {number}" for number in range(130)]

    vectors.want("many", many, partial(told.append, "many"))
    vectors.want("last", many[-1:], partial(told.append, "last"))
    await until(lambda: "last" in told)

    assert told == ["many", "many", "many", "last"]
    assert [len(batch) for batch in toy.batches] == [64, 64, 2]
    assert toy.texts == many


@pytest.mark.usefixtures("works")
async def test_a_later_wish_of_the_same_key_takes_the_place_of_the_one_before(
    vectors: Vectors, toy: Toy, told: list[str]
) -> None:
    toy.gate.clear()
    vectors.want("index", ["a", "b"], partial(told.append, "before"))
    vectors.want("index", ["a", "b"], partial(told.append, "after"))
    toy.gate.set()
    await until(lambda: bool(told))
    await settle()

    assert told == ["after"]


@pytest.mark.usefixtures("works")
@pytest.mark.parametrize(
    "key",
    ["another", "one"],
)
async def test_a_delivery_may_want_more(vectors: Vectors, told: list[str], key: str) -> None:
    vectors.want("one", ["a"], lambda: vectors.want(key, ["b"], partial(told.append, "more")))
    await until(lambda: bool(vectors.known(["b"])))

    assert told == ["more"]


async def test_the_watcher_sees_how_far_it_is_and_counts_anew_once_nothing_is_wanted(toy: Toy, kept: Kept) -> None:
    seen: list[tuple[int, int]] = []
    vectors = Vectors(lambda: toy, kept, lambda done, of: seen.append((done, of)))
    async with running({"vectors": vectors.run}):
        await vectors.loaded.wait()
        vectors.want("many", [f"text {number}" for number in range(100)], nothing)
        await until(lambda: len(seen) == 2 and not vectors._wake.is_set())
        vectors.want("one", ["a"], nothing)
        await until(lambda: len(seen) == 3)

    assert seen == [(64, 100), (100, 100), (1, 1)]


@pytest.mark.usefixtures("works")
async def test_of_too_many_the_oldest_are_forgotten_and_embedded_when_wanted_again(
    vectors: Vectors, toy: Toy, kept: Kept, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("registry.vectors._MOST_KNOWN", 3)
    vectors.want(1, ["a", "b"], partial(told.append, "1"))
    await until(lambda: len(told) == 1)
    vectors.want(2, ["c", "d"], partial(told.append, "2"))
    await until(lambda: len(told) == 2)

    assert vectors.known("abcd") == vectors_of("b", "c", "d")
    vectors.want(3, ["a"], partial(told.append, "3"))
    await until(lambda: len(told) == 3)
    assert vectors.known("abcd") == vectors_of("c", "d", "a")
    await until(lambda: kept.vectors["toy-1"].keys() == set("abcd"))


# What was kept


async def test_what_was_kept_of_this_embedder_is_known_and_not_embedded_again(toy: Toy, told: list[str]) -> None:
    vectors = Vectors(lambda: toy, Kept(vectors_of("a")))
    async with running({"vectors": vectors.run}):
        await vectors.loaded.wait()
        vectors.want("index", ["a", "b"], partial(told.append, "b"))
        await until(lambda: told == ["b"])

    assert (toy.texts, vectors.known(["a", "foreign"])) == (["b"], vectors_of("a"))
    assert vectors.name == "toy-1"


async def test_a_kept_text_that_is_wanted_before_it_is_loaded_is_not_embedded(toy: Toy, told: list[str]) -> None:
    kept = Kept(vectors_of("a"))
    kept.gate.clear()
    vectors = Vectors(lambda: toy, kept)
    async with running({"vectors": vectors.run}):
        await until(kept.is_loading.is_set)
        assert not vectors.loaded.is_set()
        vectors.want("early", ["a"], partial(told.append, "early"))
        kept.gate.set()
        await vectors.loaded.wait()
        assert vectors.known(["a"]) == vectors_of("a")
        vectors.want("late", ["b"], partial(told.append, "late"))
        await until(lambda: "late" in told)

    assert toy.texts == ["b"]


@pytest.mark.usefixtures("works")
async def test_disk_and_embedder_block_other_threads_than_the_event_loops(
    vectors: Vectors, toy: Toy, kept: Kept, told: list[str]
) -> None:
    vectors.want("index", ["a"], partial(told.append, "a"))
    await until(lambda: kept.vectors["toy-1"] == vectors_of("a"))
    await vectors.close()

    assert toy.closed_in is not None
    assert threading.current_thread() not in {toy.closed_in, *kept.threads}


# Queries


@pytest.mark.usefixtures("works")
async def test_a_query_goes_before_what_waits_in_the_background(vectors: Vectors, toy: Toy, told: list[str]) -> None:
    toy.gate.clear()
    vectors.want("index", [f"text {number}" for number in range(100)], partial(told.append, "index"))
    await until(lambda: len(toy.batches) == 1)

    assert await vectors.of_query("query") == vector_of("query")
    assert (told, toy.batches[1:]) == ([], [["query"]])


# Without an embedder


async def test_without_an_embedder_nothing_waits_and_nothing_runs(kept: Kept, told: list[str]) -> None:
    vectors = Vectors(lambda: None, kept)
    await vectors.run()
    vectors.want("index", ["a"], partial(told.append, "a"))

    assert vectors.loaded.is_set()
    assert (vectors.name, vectors.known(["a"]), await vectors.of_query("a")) == ("", {}, None)
    assert (vectors._wanted, vectors._waiting, told) == ({}, {}, [])
    await vectors.close()


async def test_an_embedder_that_does_not_load_is_told_and_stops_nothing_else(kept: Kept) -> None:
    vectors = Vectors(refusing, kept)
    with capture_logs() as logs:
        await vectors.run()

    assert logs == [{"event": "embedder.unusable", "log_level": "error", "cause": "no such file"}]
    assert vectors.loaded.is_set()
    assert (vectors.name, await vectors.of_query("a")) == ("", None)


async def test_an_embedder_that_fails_in_the_background_is_given_up_and_what_is_known_stays(
    vectors: Vectors, toy: Toy, told: list[str]
) -> None:
    run = asyncio.ensure_future(vectors.run())
    await vectors.loaded.wait()
    vectors.want(1, ["a"], partial(told.append, "a"))
    await until(lambda: told == ["a"])
    toy.failure = EmbedderUnusable("it broke")
    vectors.want(2, ["b"], partial(told.append, "b"))
    with capture_logs() as logs:
        await run

    assert [line["event"] for line in logs] == ["embedder.unusable"]
    assert (vectors.name, vectors.known("ab"), await vectors.of_query("a")) == ("", vectors_of("a"), None)
    vectors.want(3, ["c"], partial(told.append, "c"))
    assert (vectors._wanted, vectors._waiting, told) == ({}, {}, ["a"])


@pytest.mark.usefixtures("works")
async def test_an_embedder_that_fails_for_a_query_is_given_up(vectors: Vectors, toy: Toy) -> None:
    toy.failure = EmbedderUnusable("it broke")
    with capture_logs() as logs:
        assert await vectors.of_query("a") is None

    assert [line["event"] for line in logs] == ["embedder.unusable"]
    assert (await vectors.of_query("a"), toy.batches) == (None, [["a"]])

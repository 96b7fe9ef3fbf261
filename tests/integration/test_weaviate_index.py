"""Our collection in a real Weaviate: what a person has to mend, what mends itself, and how long that takes."""

import asyncio
import sys
import time
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from registry.errors import IndexUnavailable, IndexUnusable
from registry.indexing import Changes, SearchQuery, ToolEntry, Vector
from registry.weaviate import WeaviateIndex
from registry.words import FORM
from tests import weaviate_server
from tests.weaviate_server import KEYS, WITH_KEYS, WeaviateServer, running_weaviate

weaviate_process, weaviate, collection = weaviate_server.FIXTURES
pytestmark = pytest.mark.timeout(10, func_only=True)  # the server's start is bounded by itself

NOWHERE = ("http://127.0.0.1:9", "127.0.0.1:10")
"""Nobody listens on these ports."""


@asynccontextmanager
async def opened(url: str, grpc: str, collection: str = "Tools", **given: Any) -> AsyncIterator[WeaviateIndex]:
    index = WeaviateIndex(url, grpc, collection=collection, **given)
    try:
        yield index
    finally:
        await index.close()


@pytest.fixture
async def index(weaviate: WeaviateServer, collection: str) -> AsyncIterator[WeaviateIndex]:
    """Ours, prepared and empty."""
    async with opened(weaviate.url, weaviate.grpc, collection) as index:
        await index.prepare()
        yield index
    if weaviate.is_running:
        weaviate.thaw()
        weaviate.ask("DELETE", f"/v1/schema/{collection}")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WeaviateServer]:
    """A server with keys and rights."""
    with running_weaviate(tmp_path_factory.mktemp("guarded"), WITH_KEYS) as server:
        yield server


def entries(count: int, *, source: str = "toy-1") -> tuple[ToolEntry, ...]:
    return tuple(
        ToolEntry("s1", "/s1", "S1", f"t{n}", f"S1 t{n}: does things", True, True, vector_source=source)
        for n in range(count)
    )


def vector(number: int, size: int = 8) -> Vector:
    return array("f", [float((number >> place) & 1) + 0.1 for place in range(size)])


def vectors_of(written: tuple[ToolEntry, ...], size: int = 8) -> dict[str, Vector]:
    return {entry.text: vector(number + 1, size) for number, entry in enumerate(written)}


async def best(index: WeaviateIndex, number: int) -> str:
    return (await index.search(SearchQuery("unheard", vector(number), 1)))[0].tool


Method = Callable[[WeaviateIndex], Awaitable[object]]

METHODS: dict[str, Method] = {
    "prepare": lambda index: index.prepare(),
    "server_ids": lambda index: index.server_ids(),
    "stored": lambda index: index.stored("s1"),
    "flip": lambda index: index.write(Changes(flips=entries(1)), {}),
    "upsert": lambda index: index.write(Changes(upserts=entries(1)), {}),
    "remove": lambda index: index.write(Changes(removals=frozenset({entries(1)[0].id})), {}),
    "clear": lambda index: index.clear(),
    "search": lambda index: index.search(SearchQuery("things", vector(1), 3)),
}


def each_method() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


# what a person has to mend


async def test_the_collection_of_somebody_else_is_left_alone(weaviate: WeaviateServer, collection: str) -> None:
    weaviate.ask("POST", "/v1/schema", {"class": collection, "description": "cats"})

    async with opened(weaviate.url, weaviate.grpc, collection) as index:
        for method in (index.prepare, index.clear):
            with pytest.raises(IndexUnusable, match=f"{collection}.*SLUICEGATE_WEAVIATE_COLLECTION"):
                await method()

    assert weaviate.ask("GET", f"/v1/schema/{collection}")["description"] == "cats"


async def test_a_property_of_another_type_is_a_clash(
    weaviate: WeaviateServer, index: WeaviateIndex, collection: str
) -> None:
    made = weaviate.ask("GET", f"/v1/schema/{collection}")
    await index.clear()
    number = {"name": "tool", "dataType": ["int"]}
    weaviate.ask("POST", "/v1/schema", {**made, "properties": [number]})

    with pytest.raises(IndexUnusable, match=f"{collection} has a property tool of type int"):
        await index.prepare()


async def test_a_missing_property_is_added(weaviate: WeaviateServer, index: WeaviateIndex, collection: str) -> None:
    made = weaviate.ask("GET", f"/v1/schema/{collection}")
    await index.clear()
    weaviate.ask(
        "POST", "/v1/schema", {**made, "properties": [p for p in made["properties"] if p["name"] != "revision"]}
    )

    await index.prepare()

    names = [known["name"] for known in weaviate.ask("GET", f"/v1/schema/{collection}")["properties"]]
    assert sorted(names) == sorted(known["name"] for known in made["properties"])


async def test_what_was_built_by_other_rules_is_made_anew(
    weaviate: WeaviateServer, index: WeaviateIndex, collection: str
) -> None:
    made = weaviate.ask("GET", f"/v1/schema/{collection}")
    await index.clear()
    older = made["description"].replace(f"form={FORM}", "form=0")
    weaviate.ask("POST", "/v1/schema", {"class": collection, "description": older})

    await index.prepare()

    assert weaviate.ask("GET", f"/v1/schema/{collection}") == made


async def test_an_unknown_module_for_vectors_is_said(weaviate: WeaviateServer, collection: str) -> None:
    async with opened(weaviate.url, weaviate.grpc, collection, vectorizer="text2vec-openai") as index:
        with pytest.raises(IndexUnusable, match=r"SLUICEGATE_WEAVIATE_VECTORIZER.*text2vec-openai"):
            await index.prepare()


@each_method()
@pytest.mark.parametrize("key", [None, "wrong-key", KEYS["reader"]], ids=["none", "wrong", "without rights"])
async def test_a_key_that_may_not_is_told_to_a_person(guarded: WeaviateServer, key: str | None, method: Method) -> None:
    async with opened(guarded.url, guarded.grpc, api_key=key) as index:
        with pytest.raises(IndexUnusable, match="SLUICEGATE_WEAVIATE_API_KEY") as caught:
            await method(index)

    assert key is None or key not in str(caught.value)


async def test_a_key_that_may_read_alone_cannot_write(guarded: WeaviateServer, collection: str) -> None:
    """Over gRPC a refusal is a sentence in the error of each object."""
    seeing = [
        {"action": "read_collections", "collections": {"collection": collection}},
        {"action": "read_data", "data": {"collection": collection}},
    ]
    guarded.ask("POST", "/v1/authz/roles", {"name": f"see{collection}", "permissions": seeing}, KEYS["admin"])
    guarded.ask("POST", "/v1/authz/users/reader/assign", {"roles": [f"see{collection}"]}, KEYS["admin"])
    async with opened(guarded.url, guarded.grpc, collection, api_key=KEYS["admin"]) as index:
        await index.prepare()
        await index.write(Changes(upserts=entries(3)), vectors_of(entries(3)))

    async with opened(guarded.url, guarded.grpc, collection, api_key=KEYS["reader"]) as index:
        await index.prepare()
        assert len(await index.stored("s1")) == 3
        for name in ("flip", "upsert", "remove", "clear"):
            with pytest.raises(IndexUnusable, match="SLUICEGATE_WEAVIATE_API_KEY"):
                await METHODS[name](index)


async def test_a_key_that_no_header_can_carry_is_not_quoted() -> None:
    async with opened(*NOWHERE, api_key="sécret\n") as index:
        with pytest.raises(IndexUnusable, match="SLUICEGATE_WEAVIATE_API_KEY") as caught:
            await index.prepare()

    assert "cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ('{"version": "1.26.9"}', "too old: run version 1.27 or newer"),
        ('{"hello": "world"}', "is no Weaviate"),
        ("<html></html>", "is no Weaviate"),
    ],
    ids=["old", "json", "html"],
)
async def test_something_else_at_the_address_is_told_to_a_person(body: str, sentence: str) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=body, content_type="application/json")

    app = web.Application()
    app.router.add_get("/v1/meta", answer)
    async with serving(app) as port, opened(f"http://127.0.0.1:{port}", NOWHERE[1]) as index:
        with pytest.raises(IndexUnusable, match=sentence):
            await index.prepare()


@asynccontextmanager
async def serving(app: web.Application) -> AsyncIterator[int]:
    """Serve it; yields the port."""
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    "where", [("http://127.0.0.1:70000", "127.0.0.1:1"), ("http://h:1", "h:1"), ("http://", "h:1")]
)
async def test_an_impossible_address_is_told_to_a_person(where: tuple[str, str]) -> None:
    async with opened(*where) as index:
        with pytest.raises(IndexUnusable, match="no addresses of Weaviate"):
            await index.prepare()


async def test_a_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "weaviate", None)

    async with opened(*NOWHERE) as index:
        with pytest.raises(IndexUnusable, match="extra `weaviate`"):
            await index.prepare()


async def test_a_lone_surrogate_cannot_be_stored_and_does_no_harm_in_a_query(index: WeaviateIndex) -> None:
    bad = replace(entries(1)[0], text="S1 \ud800")
    with pytest.raises(IndexUnusable, match="lone surrogate"):
        await index.write(Changes(upserts=(bad,)), {})

    assert list(await index.search(SearchQuery("\ud800 things", None, 3))) == []


# what mends itself


@each_method()
async def test_a_server_that_is_not_there_is_unavailable_at_once_or_in_time(method: Method) -> None:
    async with opened(*NOWHERE, timeout_s=2) as index:
        began = time.monotonic()
        with pytest.raises(IndexUnavailable, match=r"127\.0\.0\.1:9"):
            await method(index)

    assert time.monotonic() - began < 2.5


@each_method()
async def test_a_frozen_server_is_unavailable_in_time(
    weaviate: WeaviateServer, index: WeaviateIndex, collection: str, method: Method
) -> None:
    async with opened(weaviate.url, weaviate.grpc, collection, timeout_s=0.5) as hasty:
        await hasty.server_ids()
        weaviate.freeze()
        began = time.monotonic()
        with pytest.raises(IndexUnavailable, match=r"did not answer within 0\.5 s"):
            await method(hasty)

    assert 0.4 < time.monotonic() - began < 1.5


@pytest.mark.slow
@pytest.mark.timeout(60)  # the server starts anew, which takes seven seconds
async def test_a_killed_server_is_unavailable_at_once_and_used_again_when_it_is_back(
    weaviate: WeaviateServer, index: WeaviateIndex, collection: str
) -> None:
    written = entries(10)
    await index.write(Changes(upserts=written), vectors_of(written))
    async with opened(weaviate.url, weaviate.grpc, collection, timeout_s=1) as hasty:
        assert await best(hasty, 3) == "t2"
        weaviate.kill()
        assert await seconds_to_fail(METHODS["search"], hasty) < 1.5  # gRPC tries again until its time is over
        for method in METHODS.values():
            assert await seconds_to_fail(method, hasty) < 0.5

        await asyncio.to_thread(weaviate.start)
        async with asyncio.timeout(3):
            await until_it_answers(hasty)

        assert len(await hasty.stored("s1")) == 10
        assert await best(hasty, 3) == "t2"


async def seconds_to_fail(method: Method, index: WeaviateIndex) -> float:
    began = time.monotonic()
    with pytest.raises(IndexUnavailable):
        await method(index)
    return time.monotonic() - began


async def until_it_answers(index: WeaviateIndex) -> None:
    """Ask again and again: a foreign process gives no other sign."""
    while True:
        try:
            await best(index, 3)
        except IndexUnavailable:
            await asyncio.sleep(0.05)
        else:
            return


async def test_a_caller_that_does_not_wait_leaves_the_connection_usable(
    weaviate: WeaviateServer, index: WeaviateIndex
) -> None:
    await index.server_ids()
    weaviate.freeze()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await index.search(SearchQuery("things", None, 3))
    weaviate.thaw()

    assert list(await index.search(SearchQuery("things", None, 3))) == []


async def test_many_first_users_share_one_connection(weaviate: WeaviateServer, index: WeaviateIndex) -> None:
    await index.close()

    assert await asyncio.gather(*(index.server_ids() for _ in range(20))) == [frozenset()] * 20


async def test_what_a_read_only_server_says_is_passed_on(
    weaviate: WeaviateServer, index: WeaviateIndex, collection: str
) -> None:
    written = entries(3)
    await index.write(Changes(upserts=written), vectors_of(written))
    (shard,) = weaviate.ask("GET", f"/v1/schema/{collection}/shards")
    weaviate.ask("PUT", f"/v1/schema/{collection}/shards/{shard['name']}", {"status": "READONLY"})

    for name in ("flip", "upsert"):
        with pytest.raises(IndexUnavailable, match="read-only"):
            await METHODS[name](index)
    with pytest.raises(IndexUnavailable, match="did not remove 1 objects"):
        await METHODS["remove"](index)


@pytest.mark.parametrize("name", ["flip", "upsert"])
async def test_a_collection_that_was_removed_is_not_made_by_a_write(
    weaviate: WeaviateServer, index: WeaviateIndex, collection: str, name: str
) -> None:
    """With auto-schema the server would make one of its own, which would clash with ours for ever."""
    weaviate.ask("DELETE", f"/v1/schema/{collection}")

    with pytest.raises(IndexUnavailable):
        await METHODS[name](index)
    with pytest.raises(IndexUnavailable):
        await index.server_ids()

    await index.prepare()
    await METHODS[name](index)
    assert len(await index.stored("s1")) == 1


async def test_vectors_of_another_length_make_the_index_start_over(index: WeaviateIndex) -> None:
    """A new embedding model: the old vectors are worth nothing, and the server takes no others beside them."""
    written = entries(10)
    await index.write(Changes(upserts=written), vectors_of(written))
    newer = entries(10, source="toy-2")
    with pytest.raises(IndexUnavailable):
        await index.search(SearchQuery("things", vector(1, size=12), 3))

    with pytest.raises(IndexUnavailable, match="another length"):
        await index.write(Changes(upserts=newer), vectors_of(newer, size=12))
    await index.prepare()
    assert await index.stored("s1") == {}
    await index.write(Changes(upserts=newer), vectors_of(newer, size=12))

    assert (await index.search(SearchQuery("unheard", vector(3, size=12), 1)))[0].tool == "t2"


# how it writes


@pytest.mark.parametrize("given", [False, True], ids=["vectors as stored", "vectors as given"])
@pytest.mark.parametrize("count", [4, 10], ids=["one by one", "at once"])
async def test_flips_keep_the_vectors(index: WeaviateIndex, count: int, given: bool) -> None:
    written = entries(12)
    await index.write(Changes(upserts=written), vectors_of(written))

    flips = tuple(replace(entry, server_enabled=False) for entry in written[:count])
    await index.write(Changes(flips=flips), vectors_of(written) if given else {})
    await index.write(Changes(flips=written[:count]), {})

    assert [await best(index, number + 1) for number in range(12)] == [f"t{number}" for number in range(12)]
    assert {entry.vector_source for entry in (await index.stored("s1")).values()} == {"toy-1"}


async def test_a_flip_of_what_is_missing_does_not_claim_a_vector(index: WeaviateIndex) -> None:
    """So that the next comparison sees that it needs one."""
    for count in (1, 10):
        await index.write(Changes(flips=entries(count)), {})
        assert {entry.vector_source for entry in (await index.stored("s1")).values()} == {""}


async def test_a_thousand_entries_are_written_flipped_found_and_removed(index: WeaviateIndex) -> None:
    written = entries(1_000)
    await index.write(Changes(upserts=written), vectors_of(written, size=16))
    off = tuple(replace(entry, tool_enabled=False) for entry in written[:-1])
    await index.write(Changes(flips=off), {})

    assert len(await index.stored("s1")) == 1_000
    assert [hit.tool for hit in await index.search(SearchQuery("things", None, 50))] == ["t999"]
    assert (await index.search(SearchQuery("", vector(500, size=16), 1, only_enabled=False)))[0].tool == "t499"

    await index.write(Changes(removals=frozenset(entry.id for entry in written)), {})
    assert await index.server_ids() == frozenset()


@pytest.mark.slow
@pytest.mark.timeout(60)  # it starts a server of its own
async def test_a_module_of_weaviate_makes_the_vectors(tmp_path: Path) -> None:
    asked: list[str] = []
    async with serving(_inference(asked)) as port:
        options = {
            "ENABLE_MODULES": "text2vec-transformers",
            "TRANSFORMERS_INFERENCE_API": f"http://127.0.0.1:{port}",
            "TRANSFORMERS_WAIT_FOR_STARTUP": "false",
        }
        server = WeaviateServer(tmp_path, options)
        try:
            await asyncio.to_thread(server.start)
            async with opened(server.url, server.grpc, vectorizer="text2vec-transformers") as index:
                await _check_module(index, asked)
            async with opened(server.url, server.grpc) as other:
                await other.prepare()
                assert await other.server_ids() == frozenset()  # with other vectors it is another index
        finally:
            server.stop()


async def _check_module(index: WeaviateIndex, asked: list[str]) -> None:
    written = entries(10, source="")
    await index.prepare()
    await index.write(Changes(upserts=written), {})
    assert sorted(text.lower() for text in asked) == sorted(
        entry.text.lower() for entry in written
    )  # the text, and nothing else of an entry

    asked.clear()
    flips = tuple(replace(entry, tool_enabled=False) for entry in written[1:])
    await index.write(Changes(flips=flips), {})
    assert asked == []
    assert len(await index.stored("s1")) == 10

    everything = SearchQuery("S1 t7: does THINGS", None, 20, only_enabled=False)
    assert len(await index.search(everything)) == 10
    assert [hit.tool for hit in await index.search(replace(everything, only_enabled=True))] == ["t0"]
    assert [text.lower() for text in asked] == ["s1 t7: does things"] * 2  # the sentence, not its stems


def _inference(asked: list[str]) -> web.Application:
    """What a container of text2vec-transformers answers."""

    async def vectors(request: web.Request) -> web.Response:
        text = (await request.json())["text"]
        asked.append(text)
        return web.json_response({"text": text, "dim": 3, "vector": [1.0, float(len(text)), 1.0]})

    async def meta(request: web.Request) -> web.Response:
        return web.json_response({"model": "toy"})

    app = web.Application()
    app.router.add_post("/vectors", vectors)
    app.router.add_get("/meta", meta)
    return app

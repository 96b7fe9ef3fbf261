"""One suite for the index in this process and the one in Weaviate (`registry.ports.ToolIndex`)."""

from array import array
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from typing import Any

import pytest

from registry.indexing import Changes, Hit, SearchQuery, ToolEntry, Vector, difference
from registry.localindex import LocalIndex
from registry.ports import ToolIndex
from registry.weaviate import WeaviateIndex
from tests import weaviate_server

weaviate_process, weaviate, collection = weaviate_server.FIXTURES
pytestmark = pytest.mark.timeout(10, func_only=True)  # the server's start is bounded by itself


@pytest.fixture(params=["local", "weaviate"])
async def index(request: pytest.FixtureRequest) -> AsyncIterator[ToolIndex]:
    """Each of them, prepared and empty."""
    if request.param == "local":
        yield LocalIndex()
        return
    server = request.getfixturevalue("weaviate")
    real = WeaviateIndex(server.url, server.grpc, collection=request.getfixturevalue("collection"))
    await real.prepare()
    yield real
    await real.clear()
    await real.close()


def entry(tool: str, text: str = "", *, server: str = "s1", on: bool = True, server_on: bool = True) -> ToolEntry:
    return ToolEntry(
        server_id=server,
        server_path=f"/{server}",
        server_name=server.upper(),
        tool=tool,
        text=text or f"{server} {tool}: does things",
        tool_enabled=on,
        server_enabled=server_on,
        revision=3,
    )


def axis(number: int) -> Vector:
    """A vector that is unlike those of other numbers."""
    return array("f", [1.0 if place == number else 0.0 for place in range(8)])


def upserts(*entries: ToolEntry) -> Changes:
    return Changes(upserts=entries)


def embedded(entries: Iterable[ToolEntry]) -> tuple[tuple[ToolEntry, ...], dict[str, Vector]]:
    """The entries with a vector each, the n-th along the n-th axis."""
    with_source = tuple(replace(entry, vector_source="toy-1") for entry in entries)
    return with_source, {entry.text: axis(number % 8) for number, entry in enumerate(with_source)}


def named(hits: Iterable[Hit]) -> list[str]:
    return [hit.tool for hit in hits]


def query(text: str, vector: Vector | None = None, *, limit: int = 10, **chosen: Any) -> SearchQuery:
    return replace(SearchQuery(text, vector, limit), **chosen)


def by_id(*entries: ToolEntry) -> dict[str, ToolEntry]:
    return {entry.id: entry for entry in entries}


async def test_what_was_written_is_stored_as_it_was_written(index: ToolIndex) -> None:
    first, second = entry("read"), entry("write", on=False)
    other = entry("read", server="s2", server_on=False)

    await index.write(upserts(first, second, other), {})

    assert await index.server_ids() == {"s1", "s2"}
    assert await index.stored("s1") == by_id(first, second)
    assert await index.stored("s2") == by_id(other)
    assert await index.stored("s3") == {}


@pytest.mark.parametrize(
    "name", ["a.b", "$where", "a/b", " ", "-x", "é", "e\u0301", "\U0001f600", "nul\0nul", "x" * 200]
)
async def test_an_odd_name_is_stored_as_it_is(index: ToolIndex, name: str) -> None:
    odd = entry(name, text=f"s1 {name}: {name}", server=f"id {name}")

    await index.write(upserts(odd), {})

    assert await index.server_ids() == {odd.server_id}
    assert await index.stored(odd.server_id) == by_id(odd)
    assert named(await index.search(query("s1"))) == [name]


async def test_an_empty_index_holds_and_finds_nothing(index: ToolIndex) -> None:
    assert await index.server_ids() == frozenset()
    assert await index.stored("s1") == {}
    assert list(await index.search(query("anything", axis(0)))) == []


async def test_a_server_with_more_tools_than_a_page_is_stored_whole(index: ToolIndex) -> None:
    many = tuple(entry(f"tool{number}") for number in range(1_100))

    await index.write(upserts(*many), {})

    assert await index.stored("s1") == by_id(*many)


async def test_more_servers_than_a_page_are_all_named(index: ToolIndex) -> None:
    many = tuple(entry("tool", server=f"s{number}") for number in range(150))

    await index.write(upserts(*many), {})

    assert await index.server_ids() == {f"s{number}" for number in range(150)}


async def test_words_find_what_holds_them_in_any_form(index: ToolIndex) -> None:
    deleting = entry("deleteRepository", "hub deleteRepository: Removes everything for good")
    listing = entry("list_issues", "hub list_issues: Lists open issues")
    await index.write(upserts(deleting, listing), {})

    assert named(await index.search(query("remove"))) == ["deleteRepository"]
    assert named(await index.search(query("deleting repositories"))) == ["deleteRepository"]
    assert named(await index.search(query("ISSUE"))) == ["list_issues"]
    assert named(await index.search(query("weather"))) == []


async def test_more_and_rarer_words_in_common_rank_higher(index: ToolIndex) -> None:
    await index.write(
        upserts(
            entry("a", "hub a: open a file"),
            entry("b", "hub b: open a file and delete the file"),
            entry("c", "hub c: open a window"),
        ),
        {},
    )

    found = await index.search(query("delete file"))

    assert named(found) == ["b", "a"]
    assert found[0].score > found[1].score


async def test_equal_scores_are_ordered_by_server_and_tool(index: ToolIndex) -> None:
    same = [entry(tool, "the same text", server=server) for server in ("s2", "s1") for tool in ("bb", "aa")]
    await index.write(upserts(*same), {})

    found = await index.search(query("same text"))

    assert [(hit.server_id, hit.tool) for hit in found] == [("s1", "aa"), ("s1", "bb"), ("s2", "aa"), ("s2", "bb")]


async def test_a_vector_finds_what_is_like_it(index: ToolIndex) -> None:
    entries, vectors = embedded(entry(name) for name in ("a", "b", "c"))
    await index.write(upserts(*entries), vectors)

    for number, name in enumerate(("a", "b", "c")):
        assert named(await index.search(query("unheard", axis(number))))[0] == name
        assert named(await index.search(query("?!", axis(number))))[0] == name


async def test_an_entry_without_a_vector_is_found_by_its_words_among_those_that_have_one(index: ToolIndex) -> None:
    entries, vectors = embedded([entry("a"), entry("b")])
    bare = entry("bare", "s1 bare: forecasts the weather")
    await index.write(upserts(*entries, bare), vectors)

    assert "bare" in named(await index.search(query("weather", axis(0))))
    assert named(await index.search(query("weather"))) == ["bare"]


async def test_words_and_vectors_count_together(index: ToolIndex) -> None:
    plain, worded = entry("plain"), entry("worded", "s1 worded: forecasts the weather")
    entries, _ = embedded([plain, worded, entry("far")])
    same = {entries[0].text: axis(0), entries[1].text: axis(0), entries[2].text: axis(1)}
    await index.write(upserts(*entries), same)

    assert named(await index.search(query("weather", axis(0)))) == ["worded", "plain", "far"]


async def test_a_text_without_words_finds_nothing_without_a_vector(index: ToolIndex) -> None:
    await index.write(upserts(entry("a")), {})

    assert list(await index.search(query("?!"))) == []
    assert list(await index.search(query(""))) == []


async def test_what_is_off_is_found_only_when_it_is_asked_for(index: ToolIndex) -> None:
    await index.write(
        upserts(entry("on"), entry("off", on=False), entry("dark", server="s2", server_on=False)),
        {},
    )

    assert named(await index.search(query("things"))) == ["on"]
    assert sorted(named(await index.search(query("things", only_enabled=False)))) == ["dark", "off", "on"]


async def test_what_is_off_is_not_found_by_its_vector(index: ToolIndex) -> None:
    entries, vectors = embedded([entry("off", on=False), entry("on")])
    await index.write(upserts(*entries), vectors)

    assert named(await index.search(query("unheard", axis(0)))) == ["on"]
    assert named(await index.search(query("unheard", axis(0), only_enabled=False)))[0] == "off"


async def test_only_the_servers_that_were_asked_for_are_searched(index: ToolIndex) -> None:
    await index.write(upserts(*(entry(f"t{number}", server=f"s{number}") for number in range(4))), {})

    found = await index.search(query("things", servers=frozenset({"s1", "s3", "unknown"})))

    assert named(found) == ["t1", "t3"]
    assert list(await index.search(query("things", servers=frozenset()))) == []


async def test_no_more_than_the_limit_are_found_and_those_are_the_best(index: ToolIndex) -> None:
    await index.write(upserts(*(entry(f"t{number}", "open " * (number + 1) + "it") for number in range(6))), {})

    every = named(await index.search(query("open")))

    assert len(every) == 6
    assert named(await index.search(query("open", limit=3))) == every[:3]
    assert len(await index.search(query("open", limit=50_000))) == 6


@pytest.mark.parametrize("count", [1, 10])
async def test_flips_change_the_flags_and_nothing_else(index: ToolIndex, count: int) -> None:
    entries, vectors = embedded(entry(f"t{number}") for number in range(12))
    await index.write(upserts(*entries), vectors)
    flips = tuple(replace(each, tool_enabled=False, server_enabled=False) for each in entries[:count])

    await index.write(Changes(flips=flips), {})

    assert await index.stored("s1") == by_id(*flips, *entries[count:])
    assert named(await index.search(query("unheard", axis(0), only_enabled=False, limit=1)))[0] in ("t0", "t8")
    assert sorted(named(await index.search(query("things", limit=20)))) == sorted(f"t{n}" for n in range(count, 12))


@pytest.mark.parametrize("count", [1, 10])
async def test_a_flip_of_what_is_missing_creates_it(index: ToolIndex, count: int) -> None:
    flips = tuple(entry(f"t{number}") for number in range(count))

    await index.write(Changes(flips=flips), {})

    assert await index.stored("s1") == by_id(*flips)
    assert len(await index.search(query("things"))) == count


async def test_what_is_removed_is_neither_stored_nor_found(index: ToolIndex) -> None:
    entries, vectors = embedded(entry(f"t{number}") for number in range(3))
    await index.write(upserts(*entries), vectors)

    await index.write(Changes(removals=frozenset({entries[0].id, entries[1].id, entry("never").id})), {})

    assert await index.stored("s1") == by_id(entries[2])
    assert named(await index.search(query("things", axis(0)))) == ["t2"]


async def test_the_last_removal_of_a_server_removes_it(index: ToolIndex) -> None:
    lone = entry("a", server="s2")
    await index.write(upserts(entry("a"), lone), {})

    await index.write(Changes(removals=frozenset({lone.id})), {})

    assert await index.server_ids() == {"s1"}


async def test_an_upsert_replaces_the_text_and_is_found_by_the_new_one_alone(index: ToolIndex) -> None:
    await index.write(upserts(entry("a", "s1 a: forecasts weather")), {})
    changed = entry("a", "s1 a: translates languages")

    await index.write(upserts(changed), {})

    assert await index.stored("s1") == by_id(changed)
    assert named(await index.search(query("translate"))) == ["a"]
    assert named(await index.search(query("weather"))) == []


async def test_a_vector_may_come_later(index: ToolIndex) -> None:
    bare = [entry("a"), entry("b")]
    await index.write(upserts(*bare), {})
    entries, vectors = embedded(bare)

    await index.write(upserts(*entries), vectors)

    assert await index.stored("s1") == by_id(*entries)
    assert named(await index.search(query("unheard", axis(1))))[0] == "b"


async def test_a_removal_an_upsert_and_flips_may_come_together(index: ToolIndex) -> None:
    entries, vectors = embedded(entry(f"t{number}") for number in range(3))
    await index.write(upserts(*entries), vectors)
    flip, new = replace(entries[0], tool_enabled=False), entry("new")

    await index.write(Changes((flip,), (new,), frozenset({entries[1].id})), {})

    assert await index.stored("s1") == by_id(flip, entries[2], new)


async def test_the_difference_written_leaves_no_difference(index: ToolIndex) -> None:
    await index.write(upserts(entry("a"), entry("b"), entry("gone")), {})
    wanted, vectors = embedded([entry("a", on=False), entry("b", "another text"), entry("new")])

    await index.write(difference(wanted, await index.stored("s1")), vectors)

    assert not difference(wanted, await index.stored("s1"))


async def test_a_cleared_index_can_be_filled_again(index: ToolIndex) -> None:
    await index.write(upserts(entry("a")), {})

    await index.clear()
    await index.clear()
    await index.prepare()
    await index.prepare()

    assert await index.server_ids() == frozenset()
    assert list(await index.search(query("things"))) == []
    await index.write(upserts(entry("b")), {})
    assert named(await index.search(query("things"))) == ["b"]

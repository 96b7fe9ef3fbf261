"""Whatever came and went, an index finds what one that is built afresh finds, and ranks and scores it alike."""

import asyncio
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.indexing import Changes, Hit, SearchQuery, ToolEntry, Vector, difference, with_vectors, written
from registry.localindex import LocalIndex

AXES = 3
WORDS = st.lists(st.sampled_from(["read", "write", "delete", "file", "issue", "weather"]), max_size=6).map(" ".join)
SERVERS = st.sampled_from(["s1", "s2"])
TOOLS = st.sampled_from(["readFile", "drop", "list_issues", "t"])
ENTRIES = st.builds(
    ToolEntry,
    server_id=SERVERS,
    server_path=st.sampled_from(["/p", "/q"]),
    server_name=st.just("s"),
    tool=TOOLS,
    text=WORDS,
    tool_enabled=st.booleans(),
    server_enabled=st.booleans(),
    vector_source=st.sampled_from(["", "toy-1"]),
)
STEPS = st.lists(st.tuples(st.sampled_from(["upsert", "upsert", "flip", "remove"]), ENTRIES), max_size=20)


def vector_of(text: str) -> Vector:
    """The same for the same text. Asked for along an axis, its products have no rounding in them."""
    return array("f", [(hash_of(text) >> 8 * axis) % 256 / 256 for axis in range(AXES)])


def hash_of(text: str) -> int:
    """Unlike the builtin one, the same in every process."""
    return sum(ord(letter) * 31**place for place, letter in enumerate(text))


def axis(number: int) -> Vector:
    return array("f", [1.0 if place == number else 0.0 for place in range(AXES)])


QUERIES = st.builds(
    SearchQuery,
    text=WORDS,
    vector=st.none() | st.integers(0, AXES - 1).map(axis),
    limit=st.sampled_from([1, 2, 20]),
    servers=st.none() | st.frozensets(st.sampled_from(["s1", "s2", "s3"])),
    only_enabled=st.booleans(),
)


@dataclass
class Model:
    """What the index should hold: entries by id, and the texts whose vector it has, by id."""

    entries: dict[str, ToolEntry] = field(default_factory=dict)
    embedded: dict[str, str] = field(default_factory=dict)

    def upsert(self, entry: ToolEntry) -> Changes:
        self.entries[entry.id] = entry
        if entry.vector_source:
            self.embedded[entry.id] = entry.text
        elif self.embedded.get(entry.id) != entry.text:
            self.embedded.pop(entry.id, None)
        return Changes(upserts=(entry,))

    def flip(self, entry: ToolEntry) -> Changes:
        """Of an entry that is there the flags alone; another comes without a vector."""
        before = self.entries.get(entry.id, replace(entry, vector_source=""))
        flipped = replace(before, tool_enabled=entry.tool_enabled, server_enabled=entry.server_enabled)
        self.entries[entry.id] = flipped
        return Changes(flips=(replace(flipped, vector_source=entry.vector_source),))

    def remove(self, entry: ToolEntry) -> Changes:
        self.entries.pop(entry.id, None)
        self.embedded.pop(entry.id, None)
        return Changes(removals=frozenset({entry.id}))

    async def afresh(self) -> LocalIndex:
        """One that has never held anything else."""
        marked = (replace(each, vector_source="toy-1" * (key in self.embedded)) for key, each in self.entries.items())
        return await _filled(Changes(upserts=tuple(marked)))


async def _filled(*changes: Changes) -> LocalIndex:
    index = LocalIndex()
    for one in changes:
        await _write(index, one)
    return index


async def _write(index: LocalIndex, changes: Changes) -> None:
    await index.write(changes, {each.text: vector_of(each.text) for each in changes.upserts if each.vector_source})


def by_name(hits: Iterable[Hit]) -> dict[tuple[str, str], float]:
    return {(hit.server_id, hit.tool): hit.score for hit in hits}


async def assert_alike(one: LocalIndex, other: LocalIndex, query: SearchQuery) -> None:
    found, expected = await one.search(query), await other.search(query)
    assert [(hit.server_id, hit.tool) for hit in found] == [(hit.server_id, hit.tool) for hit in expected]
    assert by_name(found) == pytest.approx(by_name(expected), abs=1e-5)


def _after(steps: Sequence[tuple[str, ToolEntry]]) -> tuple[Model, LocalIndex]:
    model = Model()
    changes = [getattr(model, kind)(entry) for kind, entry in steps]
    return model, asyncio.run(_filled(*changes))


@given(STEPS, st.lists(QUERIES, min_size=1, max_size=4))
def test_an_index_after_any_changes_is_as_one_built_afresh(
    steps: list[tuple[str, ToolEntry]], queries: list[SearchQuery]
) -> None:
    model, index = _after(steps)

    async def compare() -> None:
        fresh = await model.afresh()
        assert await index.server_ids() == await fresh.server_ids()
        held = {**await index.stored("s1"), **await index.stored("s2")}
        assert held == model.entries
        for query in queries:
            await assert_alike(index, fresh, query)

    asyncio.run(compare())


@given(STEPS, QUERIES)
def test_what_is_found_is_held_matches_the_filter_and_comes_best_first(
    steps: list[tuple[str, ToolEntry]], query: SearchQuery
) -> None:
    model, index = _after(steps)
    by_place = {(each.server_id, each.tool): each for each in model.entries.values()}

    hits = asyncio.run(index.search(query))

    assert len(by_name(hits)) == len(hits) <= query.limit
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    for entry in (by_place[hit.server_id, hit.tool] for hit in hits):
        assert query.servers is None or entry.server_id in query.servers
        assert not query.only_enabled or (entry.tool_enabled and entry.server_enabled)


@settings(max_examples=50)
@given(st.lists(st.lists(ENTRIES, max_size=6), max_size=6), QUERIES)
def test_an_index_that_follows_by_differences_is_as_one_built_afresh(
    states: list[list[ToolEntry]], query: SearchQuery
) -> None:
    """As a mirror writes it: each state in turn, by what differs from the one before."""

    async def follow() -> None:
        index, held = LocalIndex(), dict[str, ToolEntry]()
        for state in states:
            bare = {entry.id: replace(entry, vector_source="") for entry in state}.values()
            texts = {entry.text: vector_of(entry.text) for entry in state if entry.vector_source}
            wanted = with_vectors(bare, "toy-1", texts)
            await _write(index, difference(wanted, held))
            held = written(wanted, held)
        await assert_alike(index, await _filled(Changes(upserts=tuple(held.values()))), query)
        assert {**await index.stored("s1"), **await index.stored("s2")} == held

    asyncio.run(follow())


@settings(max_examples=10)
@given(st.permutations(range(300)), st.integers(1, 299), QUERIES)
def test_many_rows_in_any_order_make_the_same_index(order: list[int], split: int, query: SearchQuery) -> None:
    """More than the first rows hold, and more that match than there are candidates."""
    words = ["read file", "write file", "read issue", "weather", "delete delete file", ""]
    entries = [
        ToolEntry(f"s{n % 3}", "/p", "s", f"t{n}", words[n % 6], n % 5 > 0, True, vector_source="toy-1" * (n % 4 > 0))
        for n in range(300)
    ]

    async def compare() -> None:
        parts = [tuple(entries[n] for n in part) for part in (order[:split], order[split:])]
        index = await _filled(*(Changes(upserts=part) for part in parts))
        gone = Changes(removals=frozenset(entry.id for entry in parts[0]))
        await _write(index, gone)
        await _write(index, Changes(upserts=parts[0]))
        await assert_alike(index, await _filled(Changes(upserts=tuple(entries))), query)

    asyncio.run(compare())

"""The index in this process: what the contract suite does not say, and its ranking against a naive one."""

import math
import random
import time
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.indexing import Changes, Hit, SearchQuery, ToolEntry, Vector, searched_terms
from registry.localindex import LocalIndex
from registry.localindex.bm25 import Bm25
from registry.localindex.fusion import ALPHA, CANDIDATES, best, fused, spread
from registry.words import stems

SEED = 20_261_201


def entry(tool: str, text: str = "does things", *, server: str = "s1", on: bool = True, source: str = "") -> ToolEntry:
    return ToolEntry(server, f"/{server}", server, tool, text, on, server_enabled=True, vector_source=source)


def query(text: str, vector: Vector | None = None, limit: int = 10, **chosen: Any) -> SearchQuery:
    return replace(SearchQuery(text, vector, limit), **chosen)


def named(hits: Iterable[Hit]) -> list[str]:
    return [hit.tool for hit in hits]


def turned(degrees: float) -> Vector:
    """A vector of length 1; the less two are turned from each other, the more alike they are."""
    return array("f", [math.cos(math.radians(degrees)), math.sin(math.radians(degrees))])


async def filled(*entries: ToolEntry, vectors: Mapping[str, Vector] | None = None) -> LocalIndex:
    index = LocalIndex()
    await index.write(Changes(upserts=entries), vectors or {})
    return index


def a_fan(count: int, **changes: Any) -> tuple[tuple[ToolEntry, ...], dict[str, Vector]]:
    """Tools of which the n-th is turned by n tenths of a degree, without a word in common."""
    entries = tuple(replace(entry(f"t{n:03}", f"word{n}", source="toy"), **changes) for n in range(count))
    return entries, {each.text: turned(n / 10) for n, each in enumerate(entries)}


# The limit is filled


@pytest.mark.parametrize("limit", [1, CANDIDATES, CANDIDATES + 50, 1000])
async def test_every_entry_with_a_vector_matches_so_the_limit_is_filled(limit: int) -> None:
    entries, vectors = a_fan(300)
    index = await filled(*entries, vectors=vectors)

    found = await index.search(query("unheard", turned(0), limit))

    assert named(found) == [each.tool for each in entries][:limit]


async def test_the_filter_comes_before_the_candidates_are_taken() -> None:
    near, vectors = a_fan(CANDIDATES + 50, tool_enabled=False)
    far = [entry(f"far{n}", f"far{n}", server="s2", source="toy") for n in range(3)]
    vectors |= {each.text: turned(90 + n) for n, each in enumerate(far)}
    index = await filled(*near, *far, vectors=vectors)

    assert named(await index.search(query("unheard", turned(0)))) == ["far0", "far1", "far2"]
    everywhere = query("unheard", turned(0), only_enabled=False)
    assert named(await index.search(everywhere))[:2] == ["t000", "t001"]
    assert named(await index.search(replace(everywhere, servers=frozenset({"s2"})))) == ["far0", "far1", "far2"]


# The order


@pytest.mark.parametrize("seed", range(3))
async def test_a_tie_longer_than_the_candidates_is_not_cut_by_the_order_of_writes(seed: int) -> None:
    entries = [entry(f"t{n:03}", "the same word") for n in range(3 * CANDIDATES)]
    in_order = await filled(*entries)
    random.Random(seed).shuffle(entries)
    shuffled = await filled(*entries)

    found = named(await shuffled.search(query("word", limit=5)))
    assert (len(found), found) == (5, named(await in_order.search(query("word", limit=5))))


async def test_the_ranking_is_the_weighted_sum_of_both() -> None:
    entries, vectors = a_fan(3)
    worded = entry("worded", "weather")
    index = await filled(*entries, worded, vectors=vectors)

    found = {hit.tool: hit.score for hit in await index.search(query("weather", turned(0)))}

    assert found["t000"] == pytest.approx(ALPHA)
    assert found["worded"] == pytest.approx(1 - ALPHA)
    assert found["t002"] == 0


async def test_words_alone_rank_with_their_whole_weight_while_no_entry_has_a_vector() -> None:
    index = await filled(entry("a", "weather"), entry("b", "weather and much else besides"))

    assert [hit.score for hit in await index.search(query("weather", turned(0)))] == [1.0, 0.0]


async def test_a_query_of_another_embedder_ranks_by_words_alone() -> None:
    entries, vectors = a_fan(2)
    index = await filled(*entries, vectors=vectors)

    assert named(await index.search(query("word1", array("f", [1.0, 0.0, 0.0])))) == ["t001"]


# Rows that come and go


async def test_a_row_that_is_free_again_keeps_nothing_of_who_had_it() -> None:
    entries, vectors = a_fan(2)
    index = await filled(*entries, vectors=vectors)

    await index.write(Changes(upserts=(entry("new", "fresh"),), removals=frozenset({entries[0].id})), {})

    assert named(await index.search(query("word0"))) == []
    assert named(await index.search(query("unheard", turned(0)))) == ["t001"]
    assert named(await index.search(query("fresh", turned(0)))) == ["t001", "new"]


async def test_what_was_removed_can_be_added_again() -> None:
    entries, vectors = a_fan(2)
    index = await filled(*entries, vectors=vectors)
    await index.write(Changes(removals=frozenset(each.id for each in entries)), {})
    assert list(await index.search(query("word0", turned(0)))) == []

    await index.write(Changes(upserts=entries), vectors)

    assert named(await index.search(query("unheard", turned(0)))) == ["t000", "t001"]


async def test_a_new_text_loses_the_vector_of_the_old_one() -> None:
    entries, vectors = a_fan(2)
    index = await filled(*entries, vectors=vectors)

    await index.write(Changes(upserts=(entry("t000", "fresh"),)), {})

    assert named(await index.search(query("unheard", turned(0)))) == ["t001"]


async def test_vectors_of_another_embedder_take_the_place_of_all() -> None:
    entries, vectors = a_fan(2)
    index = await filled(*entries, vectors=vectors)

    await index.write(Changes(upserts=entries[1:]), {entries[1].text: array("f", [0.0, 0.0, 1.0])})

    assert named(await index.search(query("unheard", array("f", [0.0, 0.0, 1.0])))) == ["t001"]


async def test_vectors_may_come_to_entries_that_were_added_before_and_after_the_first_of_them() -> None:
    entries, vectors = a_fan(600)
    index = await filled(*entries[:1], vectors=vectors)
    await index.write(Changes(upserts=tuple(replace(each, vector_source="") for each in entries[1:])), {})

    await index.write(Changes(upserts=entries[1:]), vectors)

    assert named(await index.search(query("unheard", turned(0), 600))) == [each.tool for each in entries]


async def test_a_flip_of_what_is_missing_adds_it_without_a_vector() -> None:
    index, flipped = LocalIndex(), entry("a", "fresh", source="toy")

    await index.write(Changes(flips=(flipped,)), {})

    assert await index.stored("s1") == {flipped.id: replace(flipped, vector_source="")}
    assert named(await index.search(query("fresh"))) == ["a"]


async def test_a_cleared_index_holds_nothing_and_can_be_filled_again() -> None:
    entries, vectors = a_fan(2)
    index = await filled(*entries, vectors=vectors)

    await index.clear()
    await index.prepare()

    assert await index.server_ids() == frozenset()
    assert list(await index.search(query("word0", turned(0)))) == []
    await index.write(Changes(upserts=entries), vectors)
    assert await index.server_ids() == {"s1"}
    assert named(await index.search(query("unheard", turned(0)))) == ["t000", "t001"]


# BM25 against the formula

Texts = dict[int, list[str]]
TERMS = st.lists(st.sampled_from("abcdefgh"), max_size=12)


def naive(texts: Texts, terms: Sequence[str], row: int) -> float:
    """Okapi BM25 by the book, everything computed anew."""
    mean = sum(map(len, texts.values())) / len(texts)
    score = 0.0
    for term in terms:
        holding = sum(term in text for text in texts.values())
        idf = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
        count = Counter(texts[row])[term]
        score += idf * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * len(texts[row]) / (mean or 1)))
    return score


@given(st.lists(st.tuples(st.integers(0, 150), st.none() | TERMS), max_size=40), TERMS)
def test_scores_are_those_of_the_formula_whatever_came_and_went(
    steps: list[tuple[int, list[str] | None]], asked: list[str]
) -> None:
    words, texts = Bm25(), Texts()
    for row, terms in steps:
        if terms is None:
            words.remove(row)
            texts.pop(row, None)
        else:
            words.put(row, terms)
            texts[row] = terms
        words.scores(asked, 151)  # what it keeps from one search to the next must not show
    expected = [naive(texts, asked, row) if row in texts else 0.0 for row in range(151)]

    assert words.scores(asked, 151).tolist() == pytest.approx(expected, rel=1e-4, abs=1e-6)


TOOLS = st.sampled_from("klmnopq")
STEPS = st.lists(
    st.tuples(st.sampled_from(["upsert", "flip", "remove"]), TOOLS, TERMS.map(" ".join), st.booleans()), max_size=30
)


@given(STEPS, TERMS.filter(bool))
async def test_the_index_finds_what_the_formula_finds_in_its_order(
    steps: list[tuple[str, str, str, bool]], asked: list[str]
) -> None:
    index, held = LocalIndex(), dict[str, ToolEntry]()
    for kind, tool, text, on in steps:
        await _step(index, held, kind, entry(tool, text, on=on))
    rows = dict(enumerate(held.values()))
    texts = {row: searched_terms(each) for row, each in rows.items()}
    expected = {each.tool: naive(texts, stems(" ".join(asked)), row) for row, each in rows.items() if each.tool_enabled}

    found = named(await index.search(query(" ".join(asked))))

    assert set(found) == {tool for tool, score in expected.items() if score > 0}
    assert all(expected[better] >= expected[worse] - 1e-4 for better, worse in pairwise(found))
    assert await index.stored("s1") == {each.id: each for each in held.values()}


async def _step(index: LocalIndex, held: dict[str, ToolEntry], kind: str, new: ToolEntry) -> None:
    if kind == "remove":
        held.pop(new.tool, None)
        await index.write(Changes(removals=frozenset({new.id})), {})
    elif kind == "flip" and new.tool in held:
        held[new.tool] = replace(held[new.tool], tool_enabled=new.tool_enabled)
        await index.write(Changes(flips=(held[new.tool],)), {})
    else:
        held[new.tool] = new
        await index.write(Changes(upserts=(new,)), {})


# Fusion


@pytest.mark.parametrize(
    ("most", "expected"), [(1, [2]), (2, [2, 3]), (3, [1, 2, 3]), (4, [0, 1, 2, 3]), (9, [0, 1, 2, 3])]
)
def test_the_best_rows_are_those_with_the_highest_scores_and_ties_go_by_entry(most: int, expected: list[int]) -> None:
    scores = np.array([0.1, 0.5, 0.9, 0.5], dtype=np.float32)
    order = np.array([0, 9, 5, 4], dtype=np.int64)

    assert sorted(best(scores, np.arange(4, dtype=np.int32), most, order).tolist()) == expected


def test_scores_are_spread_from_0_to_1() -> None:
    rows = np.array([0, 2, 3], dtype=np.int32)

    assert spread(np.array([1, 9, 2, 3], dtype=np.float32), rows) == {0: 0.0, 2: 0.5, 3: 1.0}
    assert spread(np.array([4, 9, 4, 4], dtype=np.float32), rows) == {0: 1.0, 2: 1.0, 3: 1.0}
    assert spread(np.zeros(4, dtype=np.float32), rows[:0]) == {}


def test_a_row_that_one_ranking_lacks_has_0_there() -> None:
    assert fused({1: 1.0, 2: 0.5}, {2: 1.0, 3: 0.5}, 0.75) == {1: 0.75, 2: 0.625, 3: 0.125}


# Cost: bounds several times above what was measured, so that only another order of growth breaks them


@pytest.mark.slow
@pytest.mark.timeout(60)
async def test_ten_thousand_tools_are_searchable_within_seconds_and_flip_in_no_time() -> None:
    chance = random.Random(SEED)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(3000)]
    entries = [entry(f"t{n}", " ".join(chance.choices(words, k=40)), server=f"s{n // 100}") for n in range(10_000)]

    begun = time.process_time()
    index = await filled(*entries)
    assert time.process_time() - begun < 5

    begun = time.process_time()
    await index.write(Changes(flips=tuple(replace(each, tool_enabled=False) for each in entries[:1000])), {})
    assert time.process_time() - begun < 0.5

"""The quality and the cost of search: `python -m bench.discovery`.

Source: DESIGN 6. A catalogue of real tools and queries whose answers are known gives the quality: R@1 (the first hit is
right), hit@5 (one of the first five is), MRR@10 (one over the rank of the first right one of ten, 0 without, averaged).
Tools made of random words give the cost at a size that no catalogue has. Times are CPU of this process, all threads of
it; that of a Weaviate's process is not in them.
"""

import argparse
import asyncio
import json
import sys
import time
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from registry.embeddings import MiniLm
from registry.errors import EmbedderUnusable, RegistryError
from registry.indexing import Changes, SearchQuery, ToolEntry, Vector, searched_text, with_vectors
from registry.localindex import LocalIndex
from registry.ports import Embedder, ToolIndex

CATALOGUE = Path(__file__).parents[2] / "shared" / "discovery"

SYNTHETIC = 10_000
"""Tools; a hundred servers of a hundred."""

DIMENSIONS = 384
"""Of the synthetic vectors: those of MiniLM."""

COLLECTION = "SluicegateBench"
"""Ours for the time of a run, emptied before and after; never the one that a proxy mirrors into."""

_AT_ONCE = 16
"""Texts embedded between two steps of the progress bar: a quarter of a second."""

_SEED = 20_261_201


@dataclass(frozen=True, slots=True)
class Query:
    """A question, and the tools as `server/tool` of which each answers it."""

    text: str
    gold: frozenset[str]


@dataclass(frozen=True, slots=True)
class Figures:
    """One row of the table; None where nothing was measured."""

    name: str
    tools: int
    recall_at_1: float | None
    hit_at_5: float | None
    mrr_at_10: float | None
    query_cpu_ms: float
    index_cpu_s_per_tool: float


class Stopwatch:
    """CPU seconds of this process in the `with` blocks so far."""

    def __init__(self) -> None:
        self.cpu_s = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count what runs inside."""
        begun = time.process_time()
        yield
        self.cpu_s += time.process_time() - begun


def entries_in(catalogue: Iterable[Mapping[str, Any]]) -> list[ToolEntry]:
    """The catalogue as an index holds it; a server's name is its id."""
    return [
        ToolEntry(
            server_id=tool["server"],
            server_path=f"/{tool['server']}",
            server_name=tool["server"],
            tool=tool["tool"],
            text=searched_text(tool["server"], tool["tool"], tool["description"] or ""),
            tool_enabled=True,
            server_enabled=True,
        )
        for tool in catalogue
    ]


def synthetic_entries(chance: np.random.Generator) -> list[ToolEntry]:
    """Tools of random words, of which there are 3,000."""
    catalogue = (
        {
            "server": f"server{number // 100}",
            "tool": "_".join(_words(chance, 3)) + f"_{number}",
            "description": " ".join(_words(chance, 40)),
        }
        for number in range(SYNTHETIC)
    )
    return entries_in(catalogue)


def _words(chance: np.random.Generator, count: int) -> list[str]:
    return [np.base_repr(number * 7919 + 36**4, 36).lower() for number in chance.integers(3000, size=count).tolist()]


def synthetic_vector(chance: np.random.Generator) -> Vector:
    """Any direction, of length 1."""
    direction = chance.standard_normal(DIMENSIONS)
    return array("f", (direction / np.linalg.norm(direction)).tolist())


@dataclass(frozen=True, slots=True)
class Bench:
    """Runs the catalogue through one index after the other. `embedder` None: by words alone."""

    entries: Sequence[ToolEntry]
    queries: Sequence[Query]
    embedder: Embedder | None
    console: Console

    async def run(self, name: str, index: ToolIndex) -> Figures:
        """Fill the index, which is empty, and ask everything."""
        indexing, asking = Stopwatch(), Stopwatch()
        with indexing.running():
            await fill(index, self.entries, await self._vectors(name))
        ranks = []
        for query in self.queries:
            with asking.running():
                hits = await index.search(SearchQuery(query.text, await self._vector(query), 10))
            ranks.append(_rank([f"{hit.server_id}/{hit.tool}" for hit in hits], query.gold))
        return Figures(
            name,
            len(self.entries),
            recall_at_1=_mean(rank == 1 for rank in ranks),
            hit_at_5=_mean(rank is not None and rank <= 5 for rank in ranks),
            mrr_at_10=_mean(0 if rank is None else 1 / rank for rank in ranks),
            query_cpu_ms=asking.cpu_s / len(self.queries) * 1000,
            index_cpu_s_per_tool=indexing.cpu_s / len(self.entries),
        )

    async def _vectors(self, name: str) -> dict[str, Vector]:
        if self.embedder is None:
            return {}
        texts = [entry.text for entry in self.entries]
        steps = range(0, len(texts), _AT_ONCE)
        vectors: dict[str, Vector] = {}
        for start in track(steps, name, console=self.console, disable=not self.console.is_terminal):
            some = texts[start : start + _AT_ONCE]
            vectors |= zip(some, await self.embedder.embed(some), strict=True)
        return vectors

    async def _vector(self, query: Query) -> Vector | None:
        return None if self.embedder is None else (await self.embedder.embed([query.text]))[0]


async def fill(index: ToolIndex, entries: Iterable[ToolEntry], vectors: Mapping[str, Vector]) -> None:
    """Write server by server, as a mirror does."""
    for _, of_server in groupby(entries, key=lambda entry: entry.server_id):
        await index.write(Changes(upserts=with_vectors(of_server, "bench", vectors)), vectors)


def _rank(found: Sequence[str], gold: frozenset[str]) -> int | None:
    """Of the first right one, from 1; None when there is none."""
    return next((rank for rank, tool in enumerate(found, 1) if tool in gold), None)


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


async def synthetic_runs(searches: int = 200) -> list[Figures]:
    """The cost at SYNTHETIC tools: by words alone, then with vectors that are written over them."""
    chance = np.random.default_rng(_SEED)
    entries, index = synthetic_entries(chance), LocalIndex()
    asked = [SearchQuery(" ".join(_words(chance, 8)), None, 10) for _ in range(searches)]
    by_words = await _cost("synthetic, words", index, entries, {}, asked)
    vectors = {entry.text: synthetic_vector(chance) for entry in entries}
    asked = [replace(query, vector=synthetic_vector(chance)) for query in asked]
    return [by_words, await _cost("synthetic, vectors", index, entries, vectors, asked)]


async def _cost(
    name: str,
    index: ToolIndex,
    entries: Sequence[ToolEntry],
    vectors: Mapping[str, Vector],
    asked: Sequence[SearchQuery],
) -> Figures:
    indexing, asking = Stopwatch(), Stopwatch()
    with indexing.running():
        await fill(index, entries, vectors)
    with asking.running():
        for query in asked:
            await index.search(query)
    each_ms = asking.cpu_s / len(asked) * 1000
    return Figures(name, len(entries), None, None, None, each_ms, indexing.cpu_s / len(entries))


async def weaviate_run(bench: Bench, url: str, grpc: str) -> Figures:
    """The same catalogue in a Weaviate, in a collection that is gone afterwards."""
    from registry.weaviate import WeaviateIndex  # noqa: PLC0415  its driver is part of an extra

    index = WeaviateIndex(url, grpc, collection=COLLECTION)
    try:
        await index.clear()
        await index.prepare()
        figures = await bench.run("weaviate", index)
        await index.clear()
        return figures
    finally:
        await index.close()


async def measure(bench: Bench, weaviate: tuple[str, str] | None) -> list[Figures]:
    """Every row of the table."""
    rows = [await replace(bench, embedder=None).run("local, words", LocalIndex())]
    if bench.embedder is not None:
        rows.append(await bench.run("local", LocalIndex()))
    if weaviate is not None:
        rows.append(await weaviate_run(bench, *weaviate))
    return rows + await synthetic_runs()


def table_of(rows: Iterable[Figures]) -> Table:
    """For people. A query's time has its embedding in it, a tool's too."""
    table = Table()
    table.add_column("index")
    for column in ("tools", "R@1", "hit@5", "MRR@10", "ms CPU/query", "s CPU/tool"):
        table.add_column(column, justify="right")
    for row in rows:
        quality = ("-" if value is None else f"{value:.2f}" for value in (row.recall_at_1, row.hit_at_5, row.mrr_at_10))
        table.add_row(
            row.name, f"{row.tools:,}", *quality, f"{row.query_cpu_ms:.1f}", f"{row.index_cpu_s_per_tool:.5f}"
        )
    return table


def _embedder(errors: Console) -> Embedder | None:
    try:
        return MiniLm()
    except EmbedderUnusable as exc:
        errors.print(f"by words alone: {exc}")
        return None


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("bench.discovery", description="Measure the quality and the cost of search.")
    parser.add_argument("--catalog", type=Path, default=CATALOGUE, help="folder of catalog.json and queries.json")
    parser.add_argument("--weaviate-url", help="compare with this Weaviate; needs --weaviate-grpc")
    parser.add_argument("--weaviate-grpc", metavar="HOST:PORT")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    chosen = parser.parse_args(given)
    if (chosen.weaviate_url is None) != (chosen.weaviate_grpc is None):
        parser.error("--weaviate-url and --weaviate-grpc go together")
    return chosen


def main(given: Sequence[str] | None = None) -> int:
    """Run the bench; 0 also when there is no catalogue, 1 when an index or the model fails."""
    chosen, errors = _arguments(given), Console(stderr=True)
    try:
        catalogue = json.loads((chosen.catalog / "catalog.json").read_text("utf-8"))
        asked = json.loads((chosen.catalog / "queries.json").read_text("utf-8"))
    except FileNotFoundError as exc:
        errors.print(f"skipped: no {exc.filename}", soft_wrap=True)
        return 0
    queries = [Query(query["query"], frozenset(query["gold"])) for query in asked]
    embedder = _embedder(errors)
    weaviate = (chosen.weaviate_url, chosen.weaviate_grpc) if chosen.weaviate_url is not None else None
    try:
        rows = asyncio.run(measure(Bench(entries_in(catalogue), queries, embedder, errors), weaviate))
    except RegistryError as exc:
        errors.print(f"failed: {exc}")
        return 1
    finally:
        if embedder is not None:
            embedder.close()
    Console().print(table_of(rows))
    if chosen.json is not None:
        chosen.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`registry.ports.ToolIndex` in memory.

Every entry has a row: a number that the ranking by words, the matrix of vectors and the flags share. A row that is free
again is taken by the next entry. Nothing here waits, so no search ever sees half a write.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from registry.indexing import Changes, Hit, SearchQuery, ToolEntry, Vector, searched_terms
from registry.localindex.bm25 import Bm25, Rows, Scores
from registry.localindex.fusion import ALPHA, CANDIDATES, best, fused, spread
from registry.words import stems

_FIRST_ROWS = 256


class LocalIndex:
    """All tools, searchable by words at once and by vectors as they come."""

    def __init__(self) -> None:
        self._empty()

    def _empty(self) -> None:
        self._entries: dict[str, ToolEntry] = {}
        self._rows: dict[str, int] = {}
        self._by_row: dict[int, ToolEntry] = {}
        self._by_server: dict[str, set[str]] = {}
        self._free: list[int] = []
        self._words = Bm25()
        self._matrix = np.zeros((0, 0), dtype=np.float32)
        self._is_there = np.zeros(_FIRST_ROWS, dtype=bool)
        self._is_on = np.zeros(_FIRST_ROWS, dtype=bool)
        self._has_vector = np.zeros(_FIRST_ROWS, dtype=bool)
        self._order = np.zeros(_FIRST_ROWS, dtype=np.int64)

    async def prepare(self) -> None:
        """Nothing to prepare."""

    async def clear(self) -> None:
        """As ToolIndex.clear."""
        self._empty()

    async def server_ids(self) -> frozenset[str]:
        """As ToolIndex.server_ids."""
        return frozenset(self._by_server)

    async def stored(self, server_id: str) -> Mapping[str, ToolEntry]:
        """As ToolIndex.stored."""
        return {key: self._entries[key] for key in self._by_server.get(server_id, ())}

    async def write(self, changes: Changes, vectors: Mapping[str, Vector]) -> None:
        """As ToolIndex.write."""
        for key in changes.removals:
            self._remove(key)
        for entry in changes.upserts:
            self._put(entry, vectors.get(entry.text) if entry.vector_source else None)
        for entry in changes.flips:
            self._flip(entry)

    def _remove(self, key: str) -> None:
        entry, row = self._entries.pop(key, None), self._rows.pop(key, None)
        if entry is None or row is None:
            return
        del self._by_row[row]
        self._by_server[entry.server_id].discard(key)
        if not self._by_server[entry.server_id]:
            del self._by_server[entry.server_id]
        self._words.remove(row)
        self._is_there[row] = self._is_on[row] = self._has_vector[row] = False
        self._free.append(row)

    def _put(self, entry: ToolEntry, vector: Vector | None) -> None:
        before = self._entries.get(entry.id)
        row = self._row(entry)
        self._keep(entry, row)
        if before is None or before.text != entry.text:
            self._words.put(row, searched_terms(entry))
            self._has_vector[row] = False
        if vector is not None:
            self._set_vector(row, vector)

    def _flip(self, entry: ToolEntry) -> None:
        before = self._entries.get(entry.id)
        if before is None:
            self._put(replace(entry, vector_source=""), None)
        else:
            self._keep(replace(entry, vector_source=before.vector_source), self._rows[entry.id])

    def _row(self, entry: ToolEntry) -> int:
        if entry.id in self._rows:
            return self._rows[entry.id]
        row = self._rows[entry.id] = self._free.pop() if self._free else len(self._by_row)
        self._by_server.setdefault(entry.server_id, set()).add(entry.id)
        if row >= len(self._is_there):
            self._is_there, self._is_on, self._has_vector = map(_doubled, self._flags())
            self._order = np.concatenate((self._order, np.zeros_like(self._order)))
        return row

    def _flags(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        return self._is_there, self._is_on, self._has_vector

    def _keep(self, entry: ToolEntry, row: int) -> None:
        self._entries[entry.id] = self._by_row[row] = entry
        self._is_there[row] = True
        self._order[row] = uuid.UUID(entry.id).int >> 65
        self._is_on[row] = entry.tool_enabled and entry.server_enabled

    def _set_vector(self, row: int, vector: Vector) -> None:
        if self._matrix.shape[1] != len(vector):  # the first one, or those of another embedder
            self._matrix = np.zeros((len(self._is_there), len(vector)), dtype=np.float32)
            self._has_vector[:] = False
        if row >= len(self._matrix):
            self._matrix = np.concatenate(
                (self._matrix, np.zeros((len(self._is_there) - len(self._matrix), len(vector)), dtype=np.float32))
            )
        self._matrix[row] = np.frombuffer(vector, dtype=np.float32)
        self._has_vector[row] = True

    async def search(self, query: SearchQuery) -> Sequence[Hit]:
        """As ToolIndex.search."""
        matching = self._matching(query)
        most = max(CANDIDATES, query.limit)
        words = self._words.scores(stems(query.text), len(self._is_there))
        by_words = spread(words, best(words, _rows(matching & (words > 0)), most, self._order))
        by_vector = self._by_vector(query, matching, most)
        merged = fused(by_vector, by_words, ALPHA if by_vector else 0.0)
        return self._hits(merged)[: query.limit]

    def _matching(self, query: SearchQuery) -> npt.NDArray[np.bool_]:
        matching = self._is_on if query.only_enabled else self._is_there
        if query.servers is None:
            return matching
        wanted = np.zeros_like(matching)
        rows = [self._rows[key] for server_id in query.servers for key in self._by_server.get(server_id, ())]
        wanted[rows] = True
        return matching & wanted

    def _by_vector(self, query: SearchQuery, matching: npt.NDArray[np.bool_], most: int) -> Mapping[int, float]:
        if query.vector is None or self._matrix.shape[1] != len(query.vector):
            return {}
        used = len(self._by_row) + len(self._free)  # the rest was made ahead, up to as much again
        alike: Scores = self._matrix[:used] @ np.frombuffer(query.vector, dtype=np.float32)
        rows = _rows(matching & self._has_vector)
        return spread(alike, best(alike, rows, most, self._order))

    def _hits(self, scores: Mapping[int, float]) -> list[Hit]:
        hits = (Hit(self._by_row[row].server_id, self._by_row[row].tool, score) for row, score in scores.items())
        return sorted(hits, key=lambda hit: (-hit.score, hit.server_id, hit.tool))


def _rows(mask: npt.NDArray[np.bool_]) -> Rows:
    return np.flatnonzero(mask).astype(np.int32)


def _doubled(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    return np.concatenate((flags, np.zeros_like(flags)))

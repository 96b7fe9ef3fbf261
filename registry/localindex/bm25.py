"""Ranking by words: Okapi BM25 over rows that come and go.

Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009); k1, b and the form of
the idf are Weaviate's and Lucene's, so that both indexes rank alike.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

K1 = 1.2
B = 0.75

Scores = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int32]


class Bm25:
    """Documents by row number. Adding, removing and asking cost as much as the terms concerned, not as all of them."""

    def __init__(self) -> None:
        self._terms: dict[int, Counter[str]] = {}
        self._postings: dict[str, dict[int, int]] = {}
        self._arrays: dict[str, tuple[Rows, Scores]] = {}
        self._lengths = np.zeros(0, dtype=np.float32)
        self._total = 0

    def put(self, row: int, terms: Sequence[str]) -> None:
        """Take the document of this row, in place of the one that is there."""
        self.remove(row)
        counts = self._terms[row] = Counter(terms)
        for term, count in counts.items():
            self._postings.setdefault(term, {})[row] = count
            self._arrays.pop(term, None)
        if row >= len(self._lengths):
            self._lengths = np.concatenate((self._lengths, np.zeros(row + 64, dtype=np.float32)))
        self._lengths[row] = len(terms)
        self._total += len(terms)

    def remove(self, row: int) -> None:
        """Forget the document of this row; harmless when there is none."""
        for term in self._terms.pop(row, ()):
            del self._postings[term][row]
            self._arrays.pop(term, None)
            if not self._postings[term]:
                del self._postings[term]
        if row < len(self._lengths):
            self._total -= int(self._lengths[row])
            self._lengths[row] = 0

    def scores(self, terms: Iterable[str], rows: int) -> Scores:
        """The score of each of the first `rows` rows; 0 where no term occurs."""
        scores = np.zeros(rows, dtype=np.float32)
        if not self._terms:
            return scores
        mean = max(self._total / len(self._terms), 1e-9)
        for term in terms:
            if term in self._postings:
                found, counts = self._posting(term)
                weight = counts + K1 * (1 - B + B * self._lengths[found] / mean)
                scores[found] += self._idf(term) * counts * (K1 + 1) / weight
        return scores

    def _idf(self, term: str) -> float:
        holding = len(self._postings[term])
        return math.log(1 + (len(self._terms) - holding + 0.5) / (holding + 0.5))

    def _posting(self, term: str) -> tuple[Rows, Scores]:
        if term not in self._arrays:
            posting = self._postings[term]
            self._arrays[term] = (
                np.fromiter(posting.keys(), np.int32, len(posting)),
                np.fromiter(posting.values(), np.float32, len(posting)),
            )
        return self._arrays[term]

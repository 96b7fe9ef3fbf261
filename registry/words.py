"""Texts as stems, for ranking by words. Pure.

Source: the Snowball stemmer for English (Porter 2). Names are split where people read a boundary: `deleteRepository`,
`delete_repository` and "delete the repository" meet. The same function serves documents and queries, in every index.
"""

import functools
import re

import snowballstemmer

FORM = 1
"""Raised when the stems of a text change, so that an index knows what it was built with."""

_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W_]+")

_stemmer = snowballstemmer.stemmer("english")


def stems(text: str) -> list[str]:
    """The stems of the words of `text`, in order, repeated as they are."""
    return [_stem(word) for word in _WORD.findall(_BOUNDARY.sub(" ", text).casefold())]


@functools.lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    stem: str = _stemmer.stemWord(word)
    return stem

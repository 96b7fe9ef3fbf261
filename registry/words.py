"""Texts as stems, for ranking by words. Pure.

Source: the Snowball stemmer for English (Porter 2). Names are split where people read a boundary: `deleteRepository`,
`delete_repository` and "delete the repository" meet. Sentences are not: GitHub is one word. The same functions serve
every index.
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
    return [_stem(word) for word in _WORD.findall(text.casefold())]


def name_stems(name: str) -> list[str]:
    """The stems of the words of a name, which also begin where the case changes."""
    return stems(_BOUNDARY.sub(" ", name))


@functools.lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    stem: str = _stemmer.stemWord(word)
    return stem

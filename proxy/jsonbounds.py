"""How deep and how many: bounds of a JSON text, told from its brackets and commas alone.

Both are linear in the text, and cheap where the bound is far: strings are only looked at when what they hold could make
the difference.
"""

import re
from itertools import accumulate

_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)  # an open string runs to the end: linear time
_NO_BRACKET = re.compile(r"[^\[\]{}]+")
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}


def is_too_deep(text: str, start: int, end: int, most: int) -> bool:
    """True when the value at `text[start:end]` has more than `most` levels of objects and arrays."""
    if text.count("[", start, end) + text.count("{", start, end) <= most:
        return False
    brackets = _NO_BRACKET.sub("", _STRING.sub("", text[start:end]))
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > most


def has_too_many_values(text: str, most: int) -> bool:
    """True when there are more than `most`, or about that many."""
    return _separators(text) > most and _separators(_STRING.sub("", text)) > most


def _separators(text: str) -> int:
    """About as many as there are values: before each but the first stands a comma or a bracket, or its name."""
    return sum(map(text.count, ",[{"))

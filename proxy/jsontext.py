"""JSON text read strictly: duplicates show, and numbers keep their spelling.

Source: RFC 8259; PROTOCOL 10.4 rules 3 and 4. `proxy.jsonplaces` reads it with the place of every value.

Invariant: what this module accepts, every conforming JSON reader accepts too, with the same members.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from proxy import jsonbounds

MAX_DEPTH = 128
"""Levels of nesting. CPython's reader gives up near 1,000 and V8's does not: far below both there is no difference."""

MAX_VALUES = 500_000
"""Of one document: what is decoded costs a Python object each, and millions of them hold up everybody else. A list of
10,000 tools has about 300,000."""

_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")


class NotJson(ValueError):
    """The bytes are not one JSON document in UTF-8, or are nested too deeply. Says what, never the content."""


class Number(str):
    """A number as it is spelled: `1E2` stays `1E2`, and 5,000 digits cost nothing. Ask `string`, not `isinstance`."""

    __slots__ = ()


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


VALUES = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=_refuse_constant)
"""Reads a value, numbers as `Number`."""

PAIRS = json.JSONDecoder(parse_int=len, parse_float=len, parse_constant=_refuse_constant, object_pairs_hook=tuple)
"""Reads the same value with every object as `Pairs`. Numbers by their length: nobody looks at them, and thousands of
digits must not be read."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A text, its value with the last of duplicates, and its `pairs`: the same with every object as `Pairs`.

    Numbers in `value` are `Number`; those in `pairs` are not kept.
    """

    text: str
    value: Any
    pairs: Any


Pairs = tuple[tuple[str, Any], ...]
"""An object's members in the order of the text, duplicates included."""


def decode(body: bytes) -> Decoded:
    """Decode one JSON document, for a reader who needs no places.

    Args:
        body: UTF-8 without a byte order mark, of any size that the caller has bounded.

    Raises:
        NotJson: it is not one document of RFC 8259, deeper than MAX_DEPTH, or has more than MAX_VALUES.
    """
    text = text_of(body)
    try:
        decoded = Decoded(text, VALUES.decode(text), PAIRS.decode(text))
    except RecursionError as exc:
        raise NotJson("nested too deeply") from exc
    except ValueError as exc:
        raise NotJson("not JSON") from exc
    if jsonbounds.is_too_deep(text, 0, len(text), MAX_DEPTH):
        raise NotJson("nested too deeply")
    return decoded


def text_of(body: bytes) -> str:
    """The body as text, with no more values than MAX_VALUES. Raises NotJson."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise NotJson("not UTF-8") from exc
    if text.startswith("\ufeff"):
        raise NotJson("a byte order mark stands before the JSON")
    if jsonbounds.has_too_many_values(text, MAX_VALUES):
        raise NotJson("too many values")
    return text


def ambiguity(names: Iterable[str], deciding: Mapping[str, str]) -> str | None:
    """The first member name that two readers could take differently; None when there is none.

    Args:
        names: the member names of one object, in order.
        deciding: the case-folded form of each name that decides -> its one right spelling.
    """
    seen: set[str] = set()
    for name in names:
        folded = name.casefold()  # "param\u017f" folds to "params", as readers that fold case do
        if folded in seen or deciding.get(folded, name) != name:
            return name
        seen.add(folded)
    return None


def string(value: Any) -> str | None:
    """The value when it is a JSON string, else None; a `Number` is none, though Python takes it for a str."""
    return value if isinstance(value, str) and not isinstance(value, Number) else None


def has_lone_surrogate(text: str) -> bool:
    """True for a text that has no UTF-8 form: an escape that names half a character, or bytes that are not UTF-8."""
    return _LONE_SURROGATE.search(text) is not None

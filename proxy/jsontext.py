"""JSON text read strictly, with the place of every value that decides.

Source: RFC 8259; PROTOCOL 10.4 rules 3 and 4. A `Shape` names the objects and arrays that decide: those are walked
member by member, so that duplicates show and spans are known. All below them is opaque: it is checked to be JSON and
decoded, numbers as text, and nobody looks for duplicates there.

Invariant: what this module accepts, every conforming JSON reader accepts too, with the same members at the levels
that decide.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from json.decoder import scanstring  # type: ignore[attr-defined]  # typeshed lacks it; CPython's own string scanner
from typing import Any, NoReturn

MAX_DEPTH = 128
"""Levels of nesting. CPython's reader gives up near 1,000 and V8's does not: far below both there is no difference."""

_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)  # an open string runs to the end: linear time
_NO_BRACKET = re.compile(r"[^\[\]{}]+")
_SPACE = re.compile(r"[ \t\n\r]*")
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}


class NotJson(ValueError):
    """The bytes are not one JSON document in UTF-8, or are nested too deeply. Says what, never the content."""


class Number(str):
    """A number as it is spelled: `1E2` stays `1E2`, and 5,000 digits cost nothing. Ask `string`, not `isinstance`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Shape:
    """What to walk: these members of an object, and every element of an array."""

    members: Mapping[str, "Shape"] = field(default_factory=dict)
    elements: "Shape | None" = None


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that is not walked: `text[start:end]`, decoded; its numbers are `Number`."""

    value: Any
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an object, its name decoded."""

    name: str
    node: "Node"


@dataclass(frozen=True, slots=True)
class Object:
    """A walked object, its members in the order of the text, duplicates included."""

    members: tuple[Member, ...]
    start: int
    end: int

    def get(self, name: str) -> "Node | None":
        """The first member of exactly this name; None when there is none. Check `ambiguity` before."""
        return next((member.node for member in self.members if member.name == name), None)


@dataclass(frozen=True, slots=True)
class Array:
    """A walked array."""

    elements: tuple["Node", ...]
    start: int
    end: int


Node = Object | Array | Opaque


@dataclass(frozen=True, slots=True)
class Document:
    """A text and what stands in it; positions count characters of `text`."""

    text: str
    root: Node


def read(body: bytes, shape: Shape) -> Document:
    """Read one JSON document.

    Args:
        body: UTF-8 without a byte order mark, of any size that the caller has bounded.
        shape: what to walk; the root is walked when it is an object, or an array and `shape.elements` is given.

    Raises:
        NotJson: it is not one document of RFC 8259, or deeper than MAX_DEPTH.
    """
    text = _text_of(body)
    _check_depth(text)
    try:
        root = _walk(text, _skip(text, 0), shape)
    except (ValueError, StopIteration, IndexError) as exc:
        raise NotJson("not JSON") from exc
    if _skip(text, root.end) != len(text):
        raise NotJson("something follows the JSON document")
    return Document(text, root)


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


def decoded(node: Node) -> Any:
    """The plain value of a node; of duplicates the last. Check `ambiguity` before."""
    if isinstance(node, Object):
        return {member.name: decoded(member.node) for member in node.members}
    if isinstance(node, Array):
        return [decoded(element) for element in node.elements]
    return node.value


def _text_of(body: bytes) -> str:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise NotJson("not UTF-8") from exc
    if text.startswith("\ufeff"):
        raise NotJson("a byte order mark stands before the JSON")
    return text


def _check_depth(text: str) -> None:
    """Raise before any recursive reader sees the text, so that none can overflow."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    brackets = _NO_BRACKET.sub("", _STRING.sub("", text))
    if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > MAX_DEPTH:
        raise NotJson("nested too deeply")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=_refuse_constant)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _walk(text: str, at: int, shape: Shape | None) -> Node:
    if shape is not None and text[at] == "{":
        return _walk_object(text, at, shape)
    if shape is not None and shape.elements is not None and text[at] == "[":
        return _walk_array(text, at, shape.elements)
    value, end = _DECODER.raw_decode(text, at)
    return Opaque(value, at, end)


def _walk_object(text: str, start: int, shape: Shape) -> Object:
    members: list[Member] = []
    at = _skip(text, start + 1)
    while text[at] != "}" or members:  # after a comma a member must follow
        _expect(text, at, '"')
        name, at = scanstring(text, at + 1, True)
        at = _skip(text, at)
        _expect(text, at, ":")
        node = _walk(text, _skip(text, at + 1), shape.members.get(name))
        members.append(Member(name, node))
        at = _skip(text, node.end)
        if text[at] == "}":
            break
        _expect(text, at, ",")
        at = _skip(text, at + 1)
    return Object(tuple(members), start, at + 1)


def _walk_array(text: str, start: int, shape: Shape) -> Array:
    elements: list[Node] = []
    at = _skip(text, start + 1)
    while text[at] != "]" or elements:
        node = _walk(text, at, shape)
        elements.append(node)
        at = _skip(text, node.end)
        if text[at] == "]":
            break
        _expect(text, at, ",")
        at = _skip(text, at + 1)
    return Array(tuple(elements), start, at + 1)


def _expect(text: str, at: int, character: str) -> None:
    if text[at] != character:
        raise ValueError(f"expected {character}")

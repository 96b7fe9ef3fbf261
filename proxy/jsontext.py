"""JSON text read strictly, with the place of every value that decides.

Source: RFC 8259; PROTOCOL 10.4 rules 3 and 4. A `Shape` names the objects and arrays that decide: those are walked
member by member, so that duplicates show and spans are known. All below them is opaque: it is checked to be JSON and
decoded, numbers as text, and nobody looks for duplicates there.

Invariant: what this module accepts, every conforming JSON reader accepts too, with the same members at the levels
that decide.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from json.decoder import scanstring  # type: ignore[attr-defined]  # typeshed lacks it; CPython's own string scanner
from typing import Any, NoReturn

MAX_DEPTH = 128
"""Levels of nesting. CPython's reader gives up near 1,000 and V8's does not: far below both there is no difference."""

MAX_WALKED = 20_000
"""Members and elements at the levels that decide, in one request. Each costs some microseconds of everybody's time, and
a message has a dozen."""

_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)  # an open string runs to the end: linear time
_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")
_NO_BRACKET = re.compile(r"[^\[\]{}]+")
_SPACE = re.compile(r"[ \t\n\r]*")
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}


MAX_VALUES = 500_000
"""Of one document: what is decoded costs a Python object each, and millions of them hold up everybody else. A list of
10,000 tools has about 300,000."""

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


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


def read(body: bytes, shape: Shape, *, max_walked: int = MAX_WALKED) -> Document:
    """Read one JSON document.

    Args:
        body: UTF-8 without a byte order mark, of any size that the caller has bounded.
        shape: what to walk; the root is walked when it is an object, or an array and `shape.elements` is given.
        max_walked: how many members and elements may stand at the levels that are walked.

    Raises:
        NotJson: it is not one document of RFC 8259, deeper than MAX_DEPTH, or has more than `max_walked` or
            MAX_VALUES.
    """
    text = _text_of(body)
    _check_depth(text)
    _check_values(text)
    walker = _Walker(text, max_walked)
    try:
        root = walker.value(walker.skip(0), shape)
    except NotJson:
        raise
    except (ValueError, StopIteration, IndexError) as exc:
        raise NotJson("not JSON") from exc
    if walker.skip(root.end) != len(text):
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


def has_lone_surrogate(text: str) -> bool:
    """True for a text that has no UTF-8 form: an escape that names half a character, or bytes that are not UTF-8."""
    return _LONE_SURROGATE.search(text) is not None


def decoded(node: Node) -> Any:
    """The plain value of a node; of duplicates the last. Check `ambiguity` before."""
    if isinstance(node, Object):
        return {member.name: decoded(member.node) for member in node.members}
    if isinstance(node, Array):
        return [decoded(element) for element in node.elements]
    return node.value


def plain(value: Any) -> Any:
    """A decoded value with Python's own numbers in place of `Number`.

    Raises:
        ValueError: a number that no float holds.
    """
    match value:
        case Number():
            return _number(value)
        case dict():
            return {name: plain(item) for name, item in value.items()}
        case list():
            return [plain(item) for item in value]
    return value


def _number(text: str) -> int | float:
    try:
        number = int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:
        raise ValueError("a number is out of range") from None  # thousands of digits, which Python does not read
    if isinstance(number, float) and not math.isfinite(number):
        raise ValueError("a number is out of range")
    return number


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


def _check_values(text: str) -> None:
    if _separators(text) > MAX_VALUES and _separators(_STRING.sub("", text)) > MAX_VALUES:
        raise NotJson("too many values")


def _separators(text: str) -> int:
    """About as many as there are values: before each but the first stands a comma or a bracket, or its name."""
    return sum(map(text.count, ",[{"))


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=_refuse_constant)


class _Walker:
    """Walks one text; `left` is how many more members and elements it may take."""

    def __init__(self, text: str, left: int) -> None:
        self._text = text
        self._left = left

    def value(self, at: int, shape: Shape | None) -> Node:
        """The value that starts at `at`."""
        if shape is not None and self._text[at] == "{":
            return self._object(at, shape)
        if shape is not None and shape.elements is not None and self._text[at] == "[":
            return self._array(at, shape.elements)
        value, end = _DECODER.raw_decode(self._text, at)
        return Opaque(value, at, end)

    def _object(self, start: int, shape: Shape) -> Object:
        members: list[Member] = []
        at = self.skip(start + 1)
        while self._text[at] != "}" or members:  # after a comma a member must follow
            self._expect(at, '"')
            name, at = scanstring(self._text, at + 1, True)
            at = self.skip(at)
            self._expect(at, ":")
            node = self.value(self.skip(at + 1), shape.members.get(name))
            members.append(Member(name, node))
            at = self._after(node, "}")
            if self._text[at] == "}":
                break
            at = self.skip(at + 1)
        return Object(tuple(members), start, at + 1)

    def _array(self, start: int, shape: Shape) -> Array:
        elements: list[Node] = []
        at = self.skip(start + 1)
        while self._text[at] != "]" or elements:
            node = self.value(at, shape)
            elements.append(node)
            at = self._after(node, "]")
            if self._text[at] == "]":
                break
            at = self.skip(at + 1)
        return Array(tuple(elements), start, at + 1)

    def _after(self, node: Node, closing: str) -> int:
        """Where the comma or the closing bracket after a member or element stands."""
        self._left -= 1
        if self._left < 0:
            raise NotJson("too many members to be judged")
        at = self.skip(node.end)
        if self._text[at] != closing:
            self._expect(at, ",")
        return at

    def _expect(self, at: int, character: str) -> None:
        if self._text[at] != character:
            raise ValueError(f"expected {character}")

    def skip(self, at: int) -> int:
        """The first place from `at` on that is no white space."""
        if self._text[at : at + 1] > " ":
            return at  # the usual case, and half of the cost of a list otherwise
        match = _SPACE.match(self._text, at)
        return match.end() if match else at

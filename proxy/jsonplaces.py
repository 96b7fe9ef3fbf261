"""JSON text read strictly, with the place of every value that decides.

Source: RFC 8259; PROTOCOL 10.4 rules 3 and 4. A `Shape` names the objects and arrays that decide: those are walked
member by member, so that duplicates show and spans are known. All below them is opaque: it is checked to be JSON and
decoded, numbers as text, and nobody looks for duplicates there.

Invariant: what this module accepts, every conforming JSON reader accepts too, with the same members at the levels
that decide.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from json.decoder import scanstring  # type: ignore[attr-defined]  # typeshed lacks it; CPython's own string scanner
from typing import Any

from proxy import jsonbounds
from proxy.jsontext import MAX_DEPTH, PAIRS, VALUES, NotJson, text_of

_SPACE = re.compile(r"[ \t\n\r]*")


@dataclass(frozen=True, slots=True)
class Shape:
    """What to walk: these members of an object, and every element of an array."""

    members: Mapping[str, "Shape"] = field(default_factory=dict)
    elements: "Shape | None" = None
    kept: str | None = None
    """When it is given, an object is read as `Listed`, with the value of this member."""


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
class Listed:
    """An object whose members were read at once, without their places, for a tenth of the time.

    `names` are in the order of the text, duplicates included. `kept` is the decoded value of the member that the shape
    names, the last of duplicates; None when there is none. Numbers in it are not kept, objects are tuples of pairs.
    """

    names: tuple[str, ...]
    kept: Any
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Array:
    """A walked array."""

    elements: tuple["Node", ...]
    start: int
    end: int


Node = Object | Listed | Array | Opaque


@dataclass(frozen=True, slots=True)
class Document:
    """A text and what stands in it; positions count characters of `text`."""

    text: str
    root: Node


def read(body: bytes, shape: Shape, *, max_walked: int) -> Document:
    """Read one JSON document.

    Args:
        body: UTF-8 without a byte order mark, of any size that the caller has bounded.
        shape: what to walk; the root is walked when it is an object, or an array and `shape.elements` is given.
        max_walked: how many members and elements may stand at the levels that are walked.

    Raises:
        NotJson: it is not one document of RFC 8259, deeper than MAX_DEPTH, or has more than `max_walked` or
            MAX_VALUES.
    """
    text = text_of(body)
    walker = _Walker(text, max_walked)
    try:
        root = walker.value(walker.skip(0), shape)
    except NotJson:
        raise
    except RecursionError as exc:  # CPython's readers count their levels
        raise NotJson("nested too deeply") from exc
    except (ValueError, StopIteration, IndexError) as exc:
        raise NotJson("not JSON") from exc
    if walker.skip(root.end) != len(text):
        raise NotJson("something follows the JSON document")
    return Document(text, root)


class _Walker:
    """Walks one text; `left` is how many more members and elements it may take. `_depth` counts the levels walked."""

    def __init__(self, text: str, left: int) -> None:
        self._text = text
        self._left = left
        self._depth = 0

    def value(self, at: int, shape: Shape | None) -> Node:
        """The value that starts at `at`."""
        if shape is not None and self._text[at] == "{":
            return self._object(at, shape) if shape.kept is None else self._listed(at, shape.kept)
        if shape is not None and shape.elements is not None and self._text[at] == "[":
            return self._array(at, shape.elements)
        value, end = VALUES.raw_decode(self._text, at)
        self._check_depth(at, end)
        return Opaque(value, at, end)

    def _listed(self, start: int, kept: str) -> Listed:
        pairs, end = PAIRS.raw_decode(self._text, start)
        self._check_depth(start, end)
        self._take(len(pairs))
        return Listed(tuple(name for name, _ in pairs), dict(pairs).get(kept), start, end)

    def _object(self, start: int, shape: Shape) -> Object:
        members: list[Member] = []
        self._depth += 1
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
        self._depth -= 1
        return Object(tuple(members), start, at + 1)

    def _array(self, start: int, shape: Shape) -> Array:
        elements: list[Node] = []
        self._depth += 1
        at = self.skip(start + 1)
        while self._text[at] != "]" or elements:
            node = self.value(at, shape)
            elements.append(node)
            at = self._after(node, "]")
            if self._text[at] == "]":
                break
            at = self.skip(at + 1)
        self._depth -= 1
        return Array(tuple(elements), start, at + 1)

    def _after(self, node: Node, closing: str) -> int:
        """Where the comma or the closing bracket after a member or element stands."""
        self._take(1)
        at = self.skip(node.end)
        if self._text[at] != closing:
            self._expect(at, ",")
        return at

    def _check_depth(self, start: int, end: int) -> None:
        if jsonbounds.is_too_deep(self._text, start, end, MAX_DEPTH - self._depth):
            raise NotJson("nested too deeply")

    def _take(self, many: int) -> None:
        self._left -= many
        if self._left < 0:
            raise NotJson("too many members to be judged")

    def _expect(self, at: int, character: str) -> None:
        if self._text[at] != character:
            raise ValueError(f"expected {character}")

    def skip(self, at: int) -> int:
        """The first place from `at` on that is no white space."""
        if self._text[at : at + 1] > " ":
            return at  # the usual case, and half of the cost of a list otherwise
        match = _SPACE.match(self._text, at)
        return match.end() if match else at

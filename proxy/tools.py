"""A tool list in a JSON text, and what to cut so that it shows less.

Source: DESIGN 3 (Filter); PROTOCOL 3. A message is known by its shape, whatever its id: an object whose `result` is an
object with a member `tools`. Elements are cut out of the text where they stand; every other byte stays.

Invariant: a text that comes back with edits, or with none, shows no hidden name to any reader; what cannot be read
without doubt raises.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from proxy import jsonplaces, jsontext
from proxy.edits import Edit
from proxy.jsonplaces import Array, Listed, Object, Opaque, Shape
from proxy.jsontext import NotJson, Number, has_lone_surrogate

_MARKER = re.compile(rb'"tool(?:s|\xc5\xbf)"|\\u|\0', re.IGNORECASE)
"""No text without it has a member that any reader takes for `tools`: some fold case, and U+017F folds to `s`; some
guess UTF-16 or UTF-32, which is full of NUL."""

_MAX_WALKED = 1_000_000
"""Members of all tools together: what the limit of an event could hold of the smallest ones."""

_RESULT = Shape({"tools": Shape(elements=Shape(kept="name"))})
_MESSAGES = Shape({"result": _RESULT}, elements=Shape({"result": _RESULT}))


def _spelled(*names: str) -> Mapping[str, str]:
    return {name.casefold(): name for name in names}


_OF_MESSAGE = _spelled("jsonrpc", "id", "method", "params", "result", "error")
_OF_RESULT = _spelled("tools", "ttlMs", "cacheScope", "nextCursor", "resultType", "_meta")
_OF_TOOL = _spelled("name")


class UnreadableList(ValueError):
    """It may be a tool list, and it cannot be read without doubt. Says why, never what it holds."""


def may_hold_list(data: bytes) -> bool:
    """False only when no reader can find a tool list in it. Cheap: one pass of one pattern."""
    return _MARKER.search(data) is not None


@dataclass(frozen=True, slots=True)
class _Tool:
    """One element of a list: where it stands, in characters."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _ToolList:
    """One list; its hints are None when they are absent."""

    tools: tuple[_Tool, ...]
    ttl_ms: Opaque | None
    cache_scope: Opaque | None


@dataclass(frozen=True, slots=True)
class ToolLists:
    """The tool lists of one text: one, or several in a batch. Holds names and places, nothing else that was decoded."""

    _data: bytes
    _lists: tuple[_ToolList, ...]

    @property
    def names(self) -> frozenset[str]:
        """All names listed, exact."""
        return frozenset(tool.name for tool_list in self._lists for tool in tool_list.tools)

    def edits(self, may_list: Callable[[str], bool], *, ttl_ms: int, is_private: bool) -> list[Edit]:
        """What to change, in byte offsets of the text, in order; empty when nothing has to.

        Args:
            may_list: says of an exact name whether this reader may see it; asked once for each tool.
            ttl_ms: the most that a `ttlMs` may say; it is never raised and never added.
            is_private: a `cacheScope` must say `private`; it is never added.
        """
        edits: list[Edit] = []
        for tool_list in self._lists:
            edits += _cuts(tool_list.tools, may_list)
            edits += _hints(tool_list, ttl_ms, is_private)
        return _in_bytes(self._data, sorted(edits, key=lambda edit: edit.start))


def find_lists(data: bytes) -> ToolLists | None:
    """Find the tool lists of one message or batch; None when there is none.

    Args:
        data: the data of one event, or a JSON body.

    Raises:
        UnreadableList: there may be one, and it is not JSON, has members that readers take differently, or elements
            that are no tools.
    """
    if not may_hold_list(data):
        return None
    try:
        document = jsonplaces.read(data, _MESSAGES, max_walked=_MAX_WALKED)
    except NotJson as exc:
        raise UnreadableList(str(exc)) from exc
    lists = tuple(_lists(document.root))
    return ToolLists(data, lists) if lists else None


def _lists(root: jsonplaces.Node) -> Iterator[_ToolList]:
    for message in root.elements if isinstance(root, Array) else (root,):
        if not isinstance(message, Object):
            continue
        _check(message, _OF_MESSAGE)
        result = message.get("result")
        if isinstance(result, Object):
            _check(result, _OF_RESULT)
            if (tools := result.get("tools")) is not None:
                yield _ToolList(tuple(_tools(tools)), _opaque(result, "ttlMs"), _opaque(result, "cacheScope"))


def _check(level: Object, deciding: Mapping[str, str]) -> None:
    _check_names((member.name for member in level.members), deciding)


def _check_names(names: Iterable[str], deciding: Mapping[str, str]) -> None:
    if jsontext.ambiguity(names, deciding) is not None:
        raise UnreadableList("two readers could take its members differently")


def _tools(node: jsonplaces.Node) -> Iterator[_Tool]:
    if not isinstance(node, Array):
        raise UnreadableList("`tools` is no array")
    checked: set[tuple[str, ...]] = set()  # most tools of a server have the same members
    for element in node.elements:
        if not isinstance(element, Listed):
            raise UnreadableList("an element of `tools` is no object")
        if element.names not in checked:
            _check_names(element.names, _OF_TOOL)
            checked.add(element.names)
        yield _Tool(_name(element), element.start, element.end)


def _name(tool: Listed) -> str:
    name = tool.kept
    if not isinstance(name, str) or has_lone_surrogate(name):  # no store can hold such a name, so no switch names it
        raise UnreadableList("an element of `tools` has no name")
    return name


def _opaque(level: Object, name: str) -> Opaque | None:
    node = level.get(name)
    return node if isinstance(node, Opaque) else None


def _cuts(tools: tuple[_Tool, ...], may_list: Callable[[str], bool]) -> Iterator[Edit]:
    """Cut each hidden tool with the comma after it, or before it when it is the last one left."""
    shown = [may_list(tool.name) for tool in tools]
    last_shown = max((i for i, is_shown in enumerate(shown) if is_shown), default=-1)
    for i in range(last_shown):
        if not shown[i]:
            yield Edit(tools[i].start, tools[i + 1].start)
    if last_shown + 1 < len(tools):
        start = tools[last_shown].end if last_shown >= 0 else tools[0].start
        yield Edit(start, tools[-1].end)


def _hints(tool_list: _ToolList, ttl_ms: int, is_private: bool) -> Iterator[Edit]:
    ttl, scope = tool_list.ttl_ms, tool_list.cache_scope
    if ttl is not None and not _is_within(ttl.value, ttl_ms):
        lifetime_ms = ttl_ms if _is_integer(ttl.value) else 0  # what is no lifetime is none: it is never raised
        yield Edit(ttl.start, ttl.end, str(lifetime_ms).encode())
    if scope is not None and is_private and scope.value != "private":
        yield Edit(scope.start, scope.end, b'"private"')


def _is_within(value: Any, limit: int) -> bool:
    return _is_integer(value) and len(value) <= len(str(limit)) and int(value) <= limit  # CPython caps int()


def _is_integer(value: Any) -> bool:
    return isinstance(value, Number) and value.isdigit()


def _in_bytes(data: bytes, edits: list[Edit]) -> list[Edit]:
    """The same edits with places in bytes of UTF-8 rather than in characters."""
    if data.isascii():
        return edits
    text = data.decode()
    moved: list[Edit] = []
    at = offset = 0
    for edit in edits:
        start = offset + len(text[at : edit.start].encode())
        offset = start + len(text[edit.start : edit.end].encode())
        moved.append(Edit(start, offset, edit.replacement))
        at = edit.end
    return moved

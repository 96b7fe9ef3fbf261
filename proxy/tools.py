"""A tool list in a JSON text, and what to cut so that it shows less.

Source: DESIGN 3 (Filter); PROTOCOL 3. A message is known by its shape, whatever its id: an object whose `result` is an
object with a member `tools`. Elements are cut out of the text where they stand; every other byte stays.

Invariant: a text that comes back with edits, or with none, shows no hidden name to any reader; what cannot be read
without doubt raises.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from proxy import jsontext
from proxy.edits import Edit
from proxy.jsontext import Array, NotJson, Number, Object, Opaque, Shape, string

_MARKER = re.compile(rb'"tool(?:s|\xc5\xbf)"|\\u|\0', re.IGNORECASE)
"""No text without it has a member that any reader takes for `tools`: some fold case, and U+017F folds to `s`; some
guess UTF-16 or UTF-32, which is full of NUL."""

_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")

_RESULT = Shape({"tools": Shape(elements=Shape())})
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
class ToolLists:
    """The tool lists of one text: one, or several in a batch."""

    _text: str
    _results: tuple[Object, ...]

    @property
    def names(self) -> frozenset[str]:
        """All names listed, exact."""
        return frozenset(name for result in self._results for _, name in _tools(result))

    def edits(self, may_list: Callable[[str], bool], *, ttl_ms: int, is_private: bool) -> list[Edit]:
        """What to change, in byte offsets of the text, in order; empty when nothing has to.

        Args:
            may_list: says of an exact name whether this reader may see it; asked once for each tool.
            ttl_ms: the most that a `ttlMs` may say; it is never raised and never added.
            is_private: a `cacheScope` must say `private`; it is never added.
        """
        edits: list[Edit] = []
        for result in self._results:
            edits += _cuts(result, may_list)
            edits += _hints(result, ttl_ms, is_private)
        return _in_bytes(self._text, sorted(edits, key=lambda edit: edit.start))


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
        document = jsontext.read(data, _MESSAGES)
    except NotJson as exc:
        raise UnreadableList(str(exc)) from exc
    results = tuple(_results(document.root))
    return ToolLists(document.text, results) if results else None


def _results(root: jsontext.Node) -> Iterator[Object]:
    for message in root.elements if isinstance(root, Array) else (root,):
        if not isinstance(message, Object):
            continue
        _check(message, _OF_MESSAGE)
        result = message.get("result")
        if isinstance(result, Object):
            _check(result, _OF_RESULT)
            if result.get("tools") is not None:
                _check_tools(result)
                yield result


def _check(level: Object, deciding: Mapping[str, str]) -> None:
    if jsontext.ambiguity((member.name for member in level.members), deciding) is not None:
        raise UnreadableList("two readers could take its members differently")


def _check_tools(result: Object) -> None:
    tools = result.get("tools")
    if not isinstance(tools, Array):
        raise UnreadableList("`tools` is no array")
    for element in tools.elements:
        if not isinstance(element, Object):
            raise UnreadableList("an element of `tools` is no object")
        _check(element, _OF_TOOL)
        if (name := _name(element)) is None or _LONE_SURROGATE.search(name):
            raise UnreadableList("an element of `tools` has no name")


def _name(tool: Object) -> str | None:
    node = tool.get("name")
    return string(node.value) if isinstance(node, Opaque) else None


def _tools(result: Object) -> Iterator[tuple[Object, str]]:
    tools = result.get("tools")
    for element in tools.elements if isinstance(tools, Array) else ():
        if isinstance(element, Object) and (name := _name(element)) is not None:
            yield element, name


def _cuts(result: Object, may_list: Callable[[str], bool]) -> Iterator[Edit]:
    """Cut each hidden tool with the comma after it, or before it when it is the last one left."""
    tools = list(_tools(result))
    shown = [may_list(name) for _, name in tools]
    last_shown = max((i for i, is_shown in enumerate(shown) if is_shown), default=-1)
    for i, (tool, _) in enumerate(tools):
        if i < last_shown and not shown[i]:
            yield Edit(tool.start, tools[i + 1][0].start)
    if last_shown + 1 < len(tools):
        start = tools[last_shown][0].end if last_shown >= 0 else tools[0][0].start
        yield Edit(start, tools[-1][0].end)


def _hints(result: Object, ttl_ms: int, is_private: bool) -> Iterator[Edit]:
    ttl, scope = result.get("ttlMs"), result.get("cacheScope")
    if isinstance(ttl, Opaque) and not _is_within(ttl.value, ttl_ms):
        yield Edit(ttl.start, ttl.end, str(ttl_ms).encode())
    if isinstance(scope, Opaque) and is_private and scope.value != "private":
        yield Edit(scope.start, scope.end, b'"private"')


def _is_within(value: object, limit: int) -> bool:
    is_short_integer = isinstance(value, Number) and value.isdigit() and len(value) <= len(str(limit))
    return is_short_integer and int(str(value)) <= limit


def _in_bytes(text: str, edits: list[Edit]) -> list[Edit]:
    """The same edits in bytes of UTF-8 rather than characters."""
    if text.isascii():
        return edits
    moved: list[Edit] = []
    at = offset = 0
    for edit in edits:
        start = offset + len(text[at : edit.start].encode())
        offset = start + len(text[edit.start : edit.end].encode())
        moved.append(Edit(start, offset, edit.replacement))
        at = edit.end
    return moved

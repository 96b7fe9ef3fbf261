"""Tools out of the pages of `tools/list`, whatever else is odd about them. Pure.

Source: MCP 2026-07-28 server/tools and server/utilities/pagination. Lenient where a downstream is: a tool without
`inputSchema` is a tool that clients may call, so it must be seen here to be switched off. Strict where not knowing
would hide a tool: a list, an element or a name that cannot be read fails the whole refresh.
"""

from typing import Any

from registry.entries import Tool
from registry.errors import DownstreamFailed

MAX_PAGES = 1000
"""Ends a downstream that pages for ever (DESIGN 5)."""


class Catalogue:
    """The pages of one listing, in their order; `next_cursor` None once the last one is in."""

    def __init__(self) -> None:
        self.next_cursor: str | None = None
        self._tools: dict[str, Tool] = {}
        self._cursors: set[str] = set()
        self._pages = 0

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools so far, in their order; of two with one name the first, since a name is what is switched."""
        return tuple(self._tools.values())

    def add(self, page: dict[str, Any]) -> None:
        """Take the next page, a decoded `result`. Raises DownstreamFailed."""
        for tool in _tools_of(page):
            self._tools.setdefault(tool.name, tool)
        self._pages += 1
        self.next_cursor = self._checked(page.get("nextCursor"))

    def _checked(self, cursor: Any) -> str | None:
        if cursor is None:
            return None
        if not isinstance(cursor, str):
            raise DownstreamFailed("the downstream sent a cursor that is no string")
        if cursor in self._cursors:
            raise DownstreamFailed("the downstream sent the same cursor twice")
        if self._pages >= MAX_PAGES:
            raise DownstreamFailed(f"the downstream sent more than {MAX_PAGES} pages of tools")
        self._cursors.add(cursor)
        return cursor


def _tools_of(page: dict[str, Any]) -> list[Tool]:
    elements = page.get("tools")
    if not isinstance(elements, list):
        raise DownstreamFailed("the downstream sent no list of tools")
    return [_tool(element) for element in elements]


def _tool(element: Any) -> Tool:
    name = element.get("name") if isinstance(element, dict) else None
    if not isinstance(name, str) or not _encodable(name):
        raise DownstreamFailed("the downstream listed a tool whose name cannot be read")
    return Tool(name, element)


def _encodable(name: str) -> bool:
    # A lone surrogate is no character: such a name has no UTF-8 form, so no store can hold it and no switch name it.
    return not any("\ud800" <= char <= "\udfff" for char in name)

"""A session with a downstream for calls: it takes results as they come, and tells whose an error is.

Source: MCP 2026-07-28 server/tools (`Mcp-Param-*`), basic/lifecycle (client capabilities); mcp 2.3.0, which reports
its own trouble as JSON-RPC errors, with the downstream's text in some.
"""

import json
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from http import HTTPStatus
from typing import Any, Literal

import httpx2
from mcp.shared.dispatcher import CallOptions, ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import find_invalid_x_mcp_header, mcp_param_headers, x_mcp_header_map
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    ClientCapabilities,
    Request,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from registry.downstream.exchanges import Exchange, exchange
from registry.downstream.failures import failure
from registry.downstream.pages import Catalogue
from registry.downstream.session import AsReceived, DecliningSession, Lenient, entered, tools_page
from registry.entries import Tool
from registry.errors import DownstreamFailed

_ANSWERED: tuple[tuple[int, str], ...] = (
    (INTERNAL_ERROR, "Server returned an error response"),
    (METHOD_NOT_FOUND, "Not Found"),
    (INVALID_REQUEST, "server answered a request with 202 Accepted"),
    (INVALID_REQUEST, "Unexpected content type: "),
    (PARSE_ERROR, "Failed to parse JSON response: "),
    (PARSE_ERROR, "Failed to parse SSE message: "),
    (CONNECTION_CLOSED, "SSE stream failed: "),
)
"""How the library's words begin for an answer that is not MCP."""

_BROKEN: tuple[tuple[int, str], ...] = (
    (CONNECTION_CLOSED, "Connection closed"),
    (CONNECTION_CLOSED, "SSE stream ended "),
)
"""The same for an answer that did not come to its end."""


MOST_PAGES = 100
"""Of tools that are looked through for mirrored arguments."""

MOST_ASKED = 256
"""Requests of a downstream that a session declines; it has no reason for any. Beyond them nothing is answered, since
each costs a task that waits for its answer to be sent, and the session is not used again."""


class SessionLost(DownstreamFailed):
    """The downstream does not know the session, so it has not run the call."""


class ToolRequest(Request[dict[str, Any], Literal["tools/call"]]):
    """A call whose params are sent as they are."""

    method: Literal["tools/call"] = "tools/call"


def opened_for_calls(url: str, http: httpx2.AsyncClient) -> AbstractAsyncContextManager["CallingSession"]:
    """A session for calls, as `entered` gives it."""
    return entered(url, http, _Calling, CallingSession)


class CallingSession(DecliningSession):
    """A session for calls. `usable` turns False when the next call should have another one."""

    def __init__(self, calls: "_Calling") -> None:
        super().__init__(calls, "this client answers no requests")
        self._calls = calls

    @property
    def usable(self) -> bool:
        """False once the connection broke, or the downstream refused a message of the session as a whole."""
        return self._calls.usable

    async def call(self, params: Mapping[str, Any], on_progress: ProgressFnT | None) -> dict[str, Any]:
        """The result as it came. Raises MCPError, the downstream's own alone; SessionLost; DownstreamFailed."""
        request = ToolRequest(params=dict(params))
        return (await self.send_request(request, AsReceived, progress_callback=on_progress)).as_received

    async def learn_parameters(self) -> bool:
        """Learn, by listing the tools, which arguments of which tool are mirrored in header fields.

        Returns False where the revision has no such fields. Raises as `call` does.
        """
        if self.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return False
        mirrors: dict[str, partial[dict[str, str]]] = {}
        cursor, pages = None, 0
        while pages == 0 or (cursor is not None and pages < MOST_PAGES):
            page = Catalogue()  # one at a time: all of them could be gigabytes
            page.add(await tools_page(self, cursor))
            mirrors |= {tool.name: partial(_mirrored, tool.input_schema) for tool in page.tools if _mirrors(tool)}
            cursor, pages = page.next_cursor, pages + 1
        self._calls.mirrors = mirrors
        return True

    def _build_capabilities(self, version: str) -> ClientCapabilities:
        # What is asked for is carried to the client in a result since 2026-07-28, and not at all before.
        return super()._build_capabilities(version) if version in MODERN_PROTOCOL_VERSIONS else ClientCapabilities()


def _mirrors(tool: Tool) -> bool:
    return "x-mcp-header" in json.dumps(tool.input_schema)


def _mirrored(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, str]:
    if find_invalid_x_mcp_header(schema) is not None:
        return {}
    return mcp_param_headers(x_mcp_header_map(schema), arguments)


class _Calling(Lenient):
    """Sends lists and calls each in an exchange of its own, and judges their errors by it."""

    asked = 0

    usable = True
    mirrors: Mapping[str, partial[dict[str, str]]] = {}

    async def _dispatch_request(self, *args: Any, **more: Any) -> None:
        self.asked += 1  # the library has no public place to count them
        if self.asked <= MOST_ASKED:
            await super()._dispatch_request(*args, **more)
        else:
            self.usable = False

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None, **more: Any
    ) -> dict[str, Any]:
        if not method.startswith("tools/"):
            return await super().send_raw_request(method, params, opts, **more)
        with exchange() as noted:
            try:
                return await super().send_raw_request(method, params, self._with_mirrors(params, opts), **more)
            except MCPError as exc:
                if (failed := _failed(exc, noted)) is not None:
                    self.usable = False
                    raise failed from exc
                self.usable = self.usable and not noted.doubts_session
                raise

    def _with_mirrors(self, params: Mapping[str, Any] | None, opts: CallOptions | None) -> CallOptions:
        options = opts if opts is not None else CallOptions()
        mirror = self.mirrors.get((params or {}).get("name", ""))
        if mirror is not None and params is not None:
            options.setdefault("headers", {}).update(mirror(params["arguments"]))
        return options


def _failed(error: MCPError, noted: Exchange) -> DownstreamFailed | None:
    """What failed, None when this is the downstream's own error."""
    if noted.lost_session:
        return SessionLost("the downstream does not know the session any more")
    if not _is_any(error, (*_ANSWERED, *_BROKEN)):
        return None
    if noted.error is not None or (noted.status or 0) >= HTTPStatus.MULTIPLE_CHOICES:
        return failure(noted.error or error, noted.status)
    if _is_any(error, _BROKEN):
        return DownstreamFailed("the connection to the downstream broke")
    return DownstreamFailed("the downstream sent an answer that is not MCP")


def _is_any(error: MCPError, words: tuple[tuple[int, str], ...]) -> bool:
    return any(error.error.code == code and error.error.message.startswith(start) for code, start in words)

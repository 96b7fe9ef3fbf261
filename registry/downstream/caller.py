"""Calls a tool of a downstream, for the gateway.

Source: MCP 2026-07-28 server/tools and its HTTP transport (mirrored parameters, -32020), 2025-11-25 basic/transports
(404: the session is gone); DESIGN 6. The result comes through as it was received.

Invariant: a call is sent a second time only where the first is known not to have run: the server did not know the
session, or refused the header fields.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT, CallToolRequest, CallToolRequestParams

from registry.access import Permit
from registry.calls import CallError, CallResult, Progress, ToolCall
from registry.downstream.failures import EXPECTED, failure
from registry.downstream.http import BoundedTransport, Credentials, http_client
from registry.downstream.pool import Pool, SessionKey
from registry.downstream.session import AsReceived, learn_parameters, opened
from registry.errors import DownstreamFailed

_HEADER_MISMATCH = -32020
_SESSION_GONE = "Session terminated"
"""The client library's word for a 404 to a request with a session id."""

_BROKEN = frozenset({CONNECTION_CLOSED, REQUEST_TIMEOUT})
_ABOUT_HTTP = frozenset({"Server returned an error response", "Not Found"})
"""The client library's words for an answer that is no JSON-RPC."""

_OPEN_TIMEOUT_S = 30.0
"""For connecting and the handshake."""


@dataclass(frozen=True, slots=True)
class _Line:
    """An open session and the transport beneath it, which knows the last HTTP status."""

    session: ClientSession
    transport: BoundedTransport


class McpToolCaller:
    """`registry.ports.ToolCaller` on the official MCP client library.

    Args:
        credentials: the static header fields of a server, or raises DownstreamFailed.
        timeout_s: for one call, from its start to its result.
        idle_s: after which an unused session is ended.
        most_sessions: at once.
    """

    def __init__(
        self, credentials: Credentials, *, timeout_s: float = 300.0, idle_s: float = 300.0, most_sessions: int = 256
    ) -> None:
        self._credentials = credentials
        self._timeout_s = timeout_s
        self._pool: Pool[_Line] = Pool(self._opened, idle_s=idle_s, most=most_sessions)

    async def close(self) -> None:
        """End all sessions."""
        await self._pool.close()

    async def call(self, permit: Permit, call: ToolCall, on_progress: Progress | None = None) -> CallResult | CallError:
        """As ToolCaller.call."""
        if permit.tool is None:
            raise ValueError("this permit names no tool")
        key = self._key(permit, call)
        request = _request(permit.tool, call)
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._sent(key, request, on_progress)
        except TimeoutError as exc:
            raise DownstreamFailed(f"the downstream did not answer in {self._timeout_s:g} s") from exc

    def _key(self, permit: Permit, call: ToolCall) -> SessionKey:
        fields = {name.title(): value for name, value in self._credentials(permit.server).items()}
        if call.authorization is not None:
            fields["Authorization"] = call.authorization
        return SessionKey(permit.server.server_id, permit.server.url, call.session, tuple(sorted(fields.items())))

    async def _sent(
        self, key: SessionKey, request: CallToolRequest, on_progress: Progress | None
    ) -> CallResult | CallError:
        """The outcome; sent again once where the first has surely not run."""
        first = await self._once(key, request, on_progress)
        if isinstance(first, CallError) and await self._may_repeat(key, first):
            return await self._once(key, request, on_progress)
        return first

    async def _may_repeat(self, key: SessionKey, error: CallError) -> bool:
        if error.code == _HEADER_MISMATCH:
            async with self._pool.lent(key) as line:
                return await learn_parameters(line.session)
        return error.message == _SESSION_GONE

    async def _once(
        self, key: SessionKey, request: CallToolRequest, on_progress: Progress | None
    ) -> CallResult | CallError:
        async with self._pool.lent(key) as line:
            try:
                answer = await line.session.send_request(request, AsReceived, progress_callback=on_progress)
            except MCPError as exc:
                return self._error(key, line, exc)
            except (*EXPECTED, ExceptionGroup) as exc:
                self._pool.drop(key, line)
                raise failure(exc, line.transport.last_status) from exc
            return CallResult(answer.as_received)

    def _error(self, key: SessionKey, line: _Line, exc: MCPError) -> CallError:
        """The downstream's own error. What the client library says of the transport is a failure instead."""
        if exc.error.message == _SESSION_GONE or exc.error.code in _BROKEN:
            self._pool.drop(key, line)
        if exc.error.code in _BROKEN or exc.error.message in _ABOUT_HTTP:
            raise failure(exc, line.transport.last_status) from exc
        return CallError(exc.error.code, exc.error.message, exc.error.data)

    @contextlib.asynccontextmanager
    async def _opened(self, key: SessionKey) -> AsyncIterator[_Line]:
        transport = BoundedTransport()
        try:
            async with (
                http_client(transport, self._timeout_s, dict(key.fields)) as http,
                asyncio.timeout(_OPEN_TIMEOUT_S) as opening,
                opened(key.url, http) as session,
            ):
                opening.reschedule(None)
                yield _Line(session, transport)
        except TimeoutError as exc:
            raise DownstreamFailed("the downstream did not open a session in time") from exc
        except (DownstreamFailed, *EXPECTED, ExceptionGroup) as exc:
            raise failure(exc, transport.last_status) from exc


def _request(tool: str, call: ToolCall) -> CallToolRequest:
    params: Mapping[str, Any] = {"name": tool, "arguments": dict(call.arguments), **call.retry}
    return CallToolRequest(params=CallToolRequestParams.model_validate({**params, "_meta": dict(call.meta)}))

"""Calls a tool of a downstream, for the gateway.

Source: MCP 2026-07-28 server/tools and basic/transports (mirrored parameters, -32020), 2025-11-25 basic/transports
(404: the session is gone); DESIGN 6. The result comes through as it was received.

Invariant: a call is sent a second time only where the first is known not to have run: the downstream did not know the
session, or refused the header fields.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

import httpx2
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    PROTOCOL_VERSION_META_KEY,
    JSONRPCRequest,
)

from registry.access import Permit
from registry.calls import CallError, CallResult, Progress, ToolCall
from registry.downstream.calling import CallingSession, SessionLost, opened_for_calls
from registry.downstream.exchanges import ContainedTransport
from registry.downstream.failures import EXPECTED, failure
from registry.downstream.http import CONNECT_TIMEOUT_S, Credentials, http_client
from registry.downstream.network import Network
from registry.downstream.pool import Pool, SessionKey
from registry.downstream.progress import relayed
from registry.errors import DownstreamFailed
from registry.model import ServerPolicy

_OPEN_TIMEOUT_S = 30.0
"""For connecting and the handshake; the library alone waits 10 s for a server that is silent to `server/discover`."""

_RETRY = ("inputResponses", "requestState")
_OWN_META = frozenset({PROTOCOL_VERSION_META_KEY, CLIENT_INFO_META_KEY, CLIENT_CAPABILITIES_META_KEY, "progressToken"})
"""Ours to set, as the client of the downstream. A foreign token could be that of another call in the session."""

_UNSENDABLE = CallError(
    INVALID_PARAMS,
    "the call cannot be sent: its arguments hold half a character or a number out of range, or are nested too deeply",
)


class McpToolCaller:
    """`registry.ports.ToolCaller` on the official MCP client library.

    Args:
        credentials: the static header fields of a server, or raises DownstreamFailed.
        network: as McpCatalogue's.
        timeout_s: for one call, from its start to its result.
        connect_timeout_s: for each connection.
        idle_s: after which an unused session is ended.
        max_sessions: at once, beyond which unused ones are ended earlier.
    """

    def __init__(
        self,
        credentials: Credentials,
        network: Network | None = None,
        *,
        timeout_s: float = 300.0,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        idle_s: float = 300.0,
        max_sessions: int = 256,
    ) -> None:
        self._credentials = credentials
        self._network = network or Network()
        self._timeout_s = timeout_s
        self._http_timeout = httpx2.Timeout(timeout_s, connect=min(connect_timeout_s, timeout_s))
        self._pool: Pool[CallingSession] = Pool(self._opened, idle_s=idle_s, most=max_sessions)

    async def close(self) -> None:
        """End all sessions, and fail the calls that are in them."""
        await self._pool.close()

    async def call(self, permit: Permit, call: ToolCall, on_progress: Progress | None = None) -> CallResult | CallError:
        """As ToolCaller.call. What `on_progress` raises comes through."""
        if permit.tool is None:
            raise ValueError("this permit names no tool")
        params = _params(permit.tool, call)
        if not _is_sendable(params):
            return _UNSENDABLE
        key = self._key(permit, call)
        try:
            async with asyncio.timeout(self._timeout_s) as limit, relayed(on_progress) as tell:
                return await self._sent(key, params, tell)
        except TimeoutError as exc:
            if not limit.expired():
                raise
            raise DownstreamFailed(f"the downstream did not answer in {self._timeout_s:g} s") from exc

    def _key(self, permit: Permit, call: ToolCall) -> SessionKey:
        fields = {name.lower(): value for name, value in self._credentials(_lacking(permit.server, call)).items()}
        if call.authorization is not None:
            fields["authorization"] = call.authorization
        if not all(value.isascii() and value.isprintable() for value in fields.values()):
            raise DownstreamFailed("a credential for the downstream holds what no header field can")
        return SessionKey(permit.server.server_id, permit.server.url, call.session, tuple(sorted(fields.items())))

    async def _sent(
        self, key: SessionKey, params: Mapping[str, Any], tell: ProgressFnT | None
    ) -> CallResult | CallError:
        """The outcome; sent again once where the first has surely not run."""
        try:
            first = await self._once(key, params, tell)
        except SessionLost:
            return await self._once(key, params, tell)
        if isinstance(first, CallError) and first.code == HEADER_MISMATCH and await self._has_learned(key):
            return await self._once(key, params, tell)
        return first

    async def _once(
        self, key: SessionKey, params: Mapping[str, Any], tell: ProgressFnT | None
    ) -> CallResult | CallError:
        async with self._lent(key) as session:
            try:
                return CallResult(await session.call(params, tell))
            except MCPError as exc:
                return CallError(exc.error.code, exc.error.message, exc.error.data)

    async def _has_learned(self, key: SessionKey) -> bool:
        async with self._lent(key) as session:
            try:
                return await session.learn_parameters()
            except (MCPError, DownstreamFailed):
                return False  # its error to the call says more

    @contextlib.asynccontextmanager
    async def _lent(self, key: SessionKey) -> AsyncIterator[CallingSession]:
        async with self._pool.lent(key) as session:
            try:
                yield session
            finally:
                if not session.usable:
                    self._pool.drop(key, session)

    @contextlib.asynccontextmanager
    async def _opened(self, key: SessionKey) -> AsyncIterator[CallingSession]:
        transport = ContainedTransport(self._network)
        try:
            async with (
                http_client(transport, self._timeout_s, dict(key.fields)) as http,
                asyncio.timeout(min(_OPEN_TIMEOUT_S, self._timeout_s)) as opening,
                opened_for_calls(key.url, _with(http, self._http_timeout)) as session,
            ):
                opening.reschedule(None)
                transport.contain()
                yield session
        except TimeoutError as exc:
            raise DownstreamFailed("the downstream did not open a session in time") from exc
        except (DownstreamFailed, *EXPECTED, ExceptionGroup) as exc:
            raise failure(exc, transport.last_status) from exc


def _lacking(server: ServerPolicy, call: ToolCall) -> ServerPolicy:
    """The server with those static credentials alone that the caller has not brought itself."""
    if call.authorization is None:
        return server
    kept = tuple(template for template in server.credentials if template[0].lower() != "authorization")
    return replace(server, credentials=kept)


def _params(tool: str, call: ToolCall) -> dict[str, Any]:
    retry = {name: call.retry[name] for name in _RETRY if name in call.retry}
    meta = {name: value for name, value in call.meta.items() if name not in _OWN_META}
    return {"name": tool, "arguments": dict(call.arguments), **retry, "_meta": meta}


def _is_sendable(params: Mapping[str, Any]) -> bool:
    """False for what the library's last steps fail on, where it would end the whole session. They are taken here."""
    message = JSONRPCRequest(jsonrpc="2.0", id=0, method="tools/call", params=dict(params))
    try:
        message.model_dump(mode="json")  # bounds the depth; makes null of an infinity, so what follows takes params
        json.dumps(params, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        return False
    return True


def _with(http: httpx2.AsyncClient, timeout: httpx2.Timeout) -> httpx2.AsyncClient:
    http.timeout = timeout
    return http

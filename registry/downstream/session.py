"""One MCP session with a downstream on the official client library, lenient about what a tool list holds.

Source: MCP 2026-07-28 basic/lifecycle; mcp 2.3.0, whose session validates each `tools/list` result and fails all of it
over one tool without `inputSchema`. So the result is taken where the library hands it over, before it is judged.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.context import ClientRequestContext
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    INVALID_REQUEST,
    ErrorData,
    Implementation,
    ListToolsRequest,
    PaginatedRequestParams,
)
from pydantic import BaseModel, ValidationError

MAX_EVENT_BYTES = 16 * 1024 * 1024
"""Large servers list more than a megabyte of schemas."""

_LIST = "tools/list"
_EMPTY_LIST: dict[str, Any] = {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
_DECLINED = ErrorData(code=INVALID_REQUEST, message="this client only lists tools")


class _Page(BaseModel):
    """A `tools/list` result as it came."""

    as_received: dict[str, Any]


class _Lenient(JSONRPCDispatcher[TransportContext]):
    """Hands a tool list on inside an empty one, which every revision's validator takes."""

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None, **more: Any
    ) -> dict[str, Any]:
        result = await super().send_raw_request(method, params, opts, **more)
        return {**_EMPTY_LIST, "as_received": result} if method == _LIST else result


@asynccontextmanager
async def opened(url: str, http: httpx2.AsyncClient) -> AsyncIterator[ClientSession]:
    """A session that is ready for requests; it is ended with a DELETE when the block is left.

    It declares every client capability, since some servers list tools only to clients that have them, and declines
    whatever the downstream then asks for.
    """
    transport = streamable_http_client(url, http_client=http, max_sse_event_size=MAX_EVENT_BYTES)
    async with transport as (received, sent):
        session = ClientSession(
            dispatcher=_Lenient(received, sent),
            client_info=Implementation(name="sluicegate", version="0.1.0"),
            sampling_callback=_decline,
            elicitation_callback=_decline,
            list_roots_callback=_decline_roots,
        )
        async with session:
            await _negotiate(session)
            yield session


async def _negotiate(session: ClientSession) -> None:
    try:
        await session.discover()
    except (MCPError, RuntimeError, ValidationError):
        # Not a server of 2026-07-28 that shares a revision with us; the handshake decides what it is.
        await session.initialize()


async def tools_page(session: ClientSession, cursor: str | None) -> dict[str, Any]:
    """One decoded `tools/list` result, as received. `cursor` None asks for the first page."""
    request = ListToolsRequest(params=PaginatedRequestParams(cursor=cursor))
    return (await session.send_request(request, _Page)).as_received


async def _decline(context: ClientRequestContext, params: Any) -> ErrorData:
    del context, params
    return _DECLINED


async def _decline_roots(context: ClientRequestContext) -> ErrorData:
    del context
    return _DECLINED

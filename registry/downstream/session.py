"""One MCP session with a downstream on the official client library, lenient about what a result holds.

Source: MCP 2026-07-28 basic/lifecycle; mcp 2.3.0, whose session validates each result, and fails a whole `tools/list`
over one tool without `inputSchema`. So a result is taken where the library hands it over, before it is judged.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

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

from registry.downstream.http import MAX_EVENT_BYTES

_STAND_INS: Mapping[str, dict[str, Any]] = {
    "tools/list": {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"},
    "tools/call": {"content": [], "resultType": "complete"},
}
"""Results that every revision's validator takes, in which those of downstreams are handed on."""


class AsReceived(BaseModel):
    """A result as it came."""

    as_received: dict[str, Any]


class Lenient(JSONRPCDispatcher[TransportContext]):
    """Hands the result of a list or a call on inside a stand-in."""

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None, **more: Any
    ) -> dict[str, Any]:
        """As the library's."""
        result = await super().send_raw_request(method, params, opts, **more)
        return {**_STAND_INS[method], "as_received": result} if method in _STAND_INS else result


class DecliningSession(ClientSession):
    """Declares every client capability, and declines with `refusal` whatever the downstream then asks for."""

    def __init__(self, dispatcher: Lenient, refusal: str) -> None:
        declined = ErrorData(code=INVALID_REQUEST, message=refusal)

        async def decline(context: ClientRequestContext, params: Any = None) -> ErrorData:
            del context, params
            return declined

        super().__init__(
            dispatcher=dispatcher,
            client_info=Implementation(name="sluicegate", version="0.1.0"),
            sampling_callback=decline,
            elicitation_callback=decline,
            list_roots_callback=decline,
        )


def opened(url: str, http: httpx2.AsyncClient) -> AbstractAsyncContextManager[ClientSession]:
    """A session for listing, as `entered` gives it.

    It declares every client capability, since some servers list tools only to clients that have them.
    """
    return entered(url, http, Lenient, _listing)


def _listing(dispatcher: Lenient) -> ClientSession:
    return DecliningSession(dispatcher, "this client only lists tools")


DispatcherT = TypeVar("DispatcherT", bound=Lenient)
SessionT = TypeVar("SessionT", bound=ClientSession)


@asynccontextmanager
async def entered(
    url: str, http: httpx2.AsyncClient, dispatcher: type[DispatcherT], session: Callable[[DispatcherT], SessionT]
) -> AsyncIterator[SessionT]:
    """A session on a dispatcher, ready for requests; it is ended with a DELETE when the block is left."""
    transport = streamable_http_client(url, http_client=http, max_sse_event_size=MAX_EVENT_BYTES)
    async with transport as (received, sent), session(dispatcher(received, sent)) as begun:
        await _negotiate(begun)
        yield begun


async def _negotiate(session: ClientSession) -> None:
    try:
        await session.discover()
    except (MCPError, RuntimeError, ValidationError):
        # Not a server of 2026-07-28 that shares a revision with us; the handshake decides what it is.
        await session.initialize()


async def tools_page(session: ClientSession, cursor: str | None) -> dict[str, Any]:
    """One decoded `tools/list` result, as received. `cursor` None asks for the first page."""
    request = ListToolsRequest(params=PaginatedRequestParams(cursor=cursor))
    return (await session.send_request(request, AsReceived)).as_received

"""`McpCatalogue` against servers on the official SDK, and against one that does as it likes."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from aiohttp import web
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

from registry.downstream import McpCatalogue
from registry.errors import DownstreamFailed
from tests.build import policy
from tests.listening import tcp_listener

Answer = Callable[[web.Request, dict[str, Any]], Awaitable[web.StreamResponse]]


def sdk_server() -> MCPServer:
    server = MCPServer("fake", log_level="ERROR")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def read(name: str) -> str:
        """Read something."""
        return name

    @server.tool(name="löschen")
    def delete(name: str) -> str:
        """Delete something."""
        return name

    return server


@asynccontextmanager
async def sdk_downstream(*, stateless: bool, json_response: bool) -> AsyncIterator[str]:
    app = sdk_server().streamable_http_app(stateless_http=stateless, json_response=json_response)
    listener = tcp_listener()
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        await serving


@pytest.mark.parametrize("stateless", [False, True])
@pytest.mark.parametrize("json_response", [False, True])
async def test_every_tool_of_an_sdk_server_is_in_the_snapshot(stateless: bool, json_response: bool) -> None:
    async with sdk_downstream(stateless=stateless, json_response=json_response) as url:
        snapshot = await McpCatalogue().snapshot(policy(url=url))
    assert [tool.name for tool in snapshot.tools] == ["read", "löschen"]
    assert [tool.declares_read_only for tool in snapshot.tools] == [True, False]
    assert snapshot.tools[0].description == "Read something."
    assert snapshot.tools[0].input_schema["required"] == ["name"]
    assert "tools" in snapshot.capabilities


class RawDownstream:
    """A server of the handshake era that answers `tools/list` with the result that a test gives for the cursor."""

    version = "2025-06-18"

    def __init__(self, pages: dict[str | None, Any]) -> None:
        self.pages = pages
        self.requests: list[tuple[str, str]] = []
        self.initialize: dict[str, Any] = {}

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.method != "POST":
            self.requests.append((request.method, request.headers.get("Mcp-Session-Id", "")))
            return web.Response(status=200 if request.method == "DELETE" else 405)
        message = await request.json()
        self.requests.append(("POST", message["method"]))
        match message["method"]:
            case "initialize":
                self.initialize = message["params"]
                return self._result(message, self._handshake(), {"Mcp-Session-Id": "s1"})
            case "tools/list":
                return self._result(message, self.pages[(message.get("params") or {}).get("cursor")])
            case "notifications/initialized":
                return web.Response(status=202)
        error = {"code": -32601, "message": "Method not found"}
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "error": error})

    def _handshake(self) -> dict[str, Any]:
        return {
            "protocolVersion": self.version,
            "capabilities": {"tools": {"listChanged": True}, "experimental": {"x": {}}},
            "serverInfo": {"name": "raw", "version": "1"},
        }

    @staticmethod
    def _result(message: dict[str, Any], result: Any, headers: dict[str, str] | None = None) -> web.Response:
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result}, headers=headers)


@asynccontextmanager
async def served(handle: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/mcp", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    listener = socket.create_server(("127.0.0.1", 0))
    await web.SockSite(runner, listener).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    finally:
        await runner.cleanup()


async def snapshot_of(pages: dict[str | None, Any], timeout_s: float = 5) -> Any:
    async with served(RawDownstream(pages).handle) as url:
        return await McpCatalogue(timeout_s=timeout_s).snapshot(policy(url=url))


def page(*names: str, cursor: Any = None) -> dict[str, Any]:
    more = {} if cursor is None else {"nextCursor": cursor}
    return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names], **more}


async def test_all_pages_are_one_snapshot_in_their_order() -> None:
    pages = {None: page("b", cursor=""), "": page(cursor="2"), "2": page("a")}
    snapshot = await snapshot_of(pages)
    assert [tool.name for tool in snapshot.tools] == ["b", "a"]
    assert snapshot.capabilities == {"tools": {"listChanged": True}, "experimental": {"x": {}}}


async def test_tools_that_the_sdk_finds_invalid_are_kept_whole() -> None:
    odd = [
        {"name": "bare", "vendor": {"x": [1.5]}},
        {"name": "numbered", "inputSchema": 5, "description": 7},
        {
            "name": "header",
            "inputSchema": {"type": "object", "properties": {"a": {"type": "object", "x-mcp-header": "a b"}}},
        },
    ]
    snapshot = await snapshot_of({None: {"tools": odd}})
    assert [dict(tool.definition) for tool in snapshot.tools] == odd
    assert snapshot.tools[1].input_schema == {}


async def test_two_tools_of_one_name_are_one_and_the_first() -> None:
    twice = {"tools": [{"name": "a", "description": "first"}, {"name": "a", "description": "second"}]}
    snapshot = await snapshot_of({None: twice})
    assert [tool.description for tool in snapshot.tools] == ["first"]


@pytest.mark.parametrize(
    "pages",
    [
        {None: page("a", cursor="1"), "1": page("b", cursor="1")},
        {None: page("a", cursor="1"), "1": page("b", cursor="2"), "2": page("c", cursor="1")},
        {None: page("a", cursor=7)},
        {None: {}},
        {None: {"tools": {"a": {}}}},
        {None: {"tools": None}},
        {None: {"tools": ["a"]}},
        {None: {"tools": [{"name": 5}]}},
        {None: {"tools": [{"inputSchema": {}}]}},
        {None: {"tools": [{"name": "\ud800"}]}},
        {None: page("a", cursor="x"), "x": {"tools": 1}},
        {None: []},
    ],
)
async def test_a_list_that_cannot_be_read_to_its_end_is_an_error(pages: dict[str | None, Any]) -> None:
    with pytest.raises(DownstreamFailed):
        await snapshot_of(pages)


async def test_paging_without_end_stops_at_the_bound() -> None:
    class Endless(dict[str | None, Any]):
        def __missing__(self, cursor: str) -> Any:
            return page("a", cursor=str(int(cursor or 0) + 1))

    downstream = RawDownstream(Endless({None: page("a", cursor="1")}))
    async with served(downstream.handle) as url:
        with pytest.raises(DownstreamFailed, match="1000 pages"):
            await McpCatalogue().snapshot(policy(url=url))
    assert downstream.requests.count(("POST", "tools/list")) == 1000


async def test_every_client_capability_is_declared_and_the_session_is_ended() -> None:
    downstream = RawDownstream({None: page("a")})
    async with served(downstream.handle) as url:
        await McpCatalogue().snapshot(policy(url=url))
    assert {"sampling", "elicitation", "roots"} <= downstream.initialize["capabilities"].keys()
    assert downstream.requests[-1] == ("DELETE", "s1")


ASKS: dict[str, dict[str, Any]] = {
    "roots/list": {},
    "sampling/createMessage": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}],
        "maxTokens": 10,
    },
    "elicitation/create": {"message": "name?", "requestedSchema": {"type": "object", "properties": {}}},
}


@pytest.mark.parametrize("method", ASKS)
async def test_what_the_downstream_asks_for_is_declined_and_the_list_still_comes(method: str) -> None:
    declined = asyncio.get_running_loop().create_future()
    raw = RawDownstream({None: page("a")})

    async def handle(request: web.Request) -> web.StreamResponse:
        message = await request.json() if request.method == "POST" else {}
        if "error" in message or "result" in message:
            declined.set_result(message)
            return web.Response(status=202)
        if message.get("method") != "tools/list":
            return await raw.handle(request)
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        await stream.write(event({"id": 1, "method": method, "params": ASKS[method]}))
        await declined
        await stream.write(event({"id": message["id"], "result": page("a")}))
        return stream

    async with served(handle) as url:
        snapshot = await McpCatalogue(timeout_s=5).snapshot(policy(url=url))
    assert snapshot.names == {"a"}
    assert declined.result()["id"] == 1
    assert declined.result()["error"]["message"] == "this client only lists tools"


def event(message: dict[str, Any]) -> bytes:
    return f"data: {json.dumps({'jsonrpc': '2.0', **message})}\n\n".encode()


async def test_no_redirect_is_followed() -> None:
    seen: list[str] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        seen.append(request.query_string)
        raise web.HTTPTemporaryRedirect("/mcp?elsewhere=1")

    async with served(handle) as url:
        with pytest.raises(DownstreamFailed) as failed:
            await McpCatalogue(timeout_s=5).snapshot(policy(url=url))
    assert set(seen) == {""}
    assert str(failed.value) == "the downstream redirects (HTTP status 307), which is never followed"


async def test_a_downstream_that_wants_a_credential_is_said_to() -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response(status=401, headers={"WWW-Authenticate": "Bearer"})

    async with served(handle) as url:
        with pytest.raises(DownstreamFailed, match=r"HTTP status 401$"):
            await McpCatalogue(timeout_s=5).snapshot(policy(url=url))


async def test_a_downstream_of_an_unknown_revision_is_an_error() -> None:
    downstream = RawDownstream({None: page("a")})
    downstream.version = "1999-01-01"
    async with served(downstream.handle) as url:
        with pytest.raises(DownstreamFailed, match="did not speak MCP"):
            await McpCatalogue(timeout_s=5).snapshot(policy(url=url))


async def test_an_address_that_no_client_can_use_is_an_error() -> None:
    with pytest.raises(DownstreamFailed):
        await McpCatalogue(timeout_s=5).snapshot(policy(url="http://999.1.1.1/mcp"))


async def test_a_connection_that_breaks_is_an_error() -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async with served(handle) as url:
        with pytest.raises(DownstreamFailed, match=r"broke$"):
            await McpCatalogue(timeout_s=5).snapshot(policy(url=url))


async def test_a_downstream_that_is_not_there_is_named_without_its_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(DownstreamFailed) as failed:
        await McpCatalogue(timeout_s=5).snapshot(policy(url=f"http://127.0.0.1:{port}/mcp?token=secret"))
    assert str(failed.value) == "the downstream could not be connected to"


async def test_a_downstream_that_stays_silent_fails_within_the_timeout_and_leaves_no_task() -> None:
    arrived, hang = asyncio.Event(), asyncio.Event()

    async def handle(request: web.Request) -> web.StreamResponse:
        arrived.set()
        await hang.wait()
        return web.Response()

    before = asyncio.all_tasks()
    async with served(handle) as url:
        with pytest.raises(DownstreamFailed, match=r"in 0\.2 s"):
            await McpCatalogue(timeout_s=0.2).snapshot(policy(url=url))
        hang.set()
    assert arrived.is_set()
    assert asyncio.all_tasks() <= before


@pytest.mark.parametrize(
    "response",
    [
        {"status": 500},
        {"status": 200, "body": b'{"\xff": 1}', "content_type": "application/json"},
        {"status": 200, "body": b"data: \xff\n\n", "content_type": "text/event-stream"},
        {"status": 200, "text": "<html>", "content_type": "text/html"},
        {"status": 200, "text": "{", "content_type": "application/json"},
        {"status": 200, "text": "[]", "content_type": "application/json"},
        {"status": 202},
        {"status": 200, "text": "data: {\n\n", "content_type": "text/event-stream"},
        {"status": 200, "text": "", "content_type": "text/event-stream"},
    ],
)
async def test_whatever_is_not_mcp_is_a_downstream_that_failed(response: dict[str, Any]) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response(**response)

    async with served(handle) as url:
        with pytest.raises(DownstreamFailed):
            await McpCatalogue(timeout_s=5).snapshot(policy(url=url))


async def test_a_compressed_answer_is_refused() -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.json_response({"jsonrpc": "2.0", "id": 1, "result": {}})
        response.headers["Content-Encoding"] = "gzip"
        return response

    async with served(handle) as url:
        with pytest.raises(DownstreamFailed, match="compressed"):
            await McpCatalogue(timeout_s=5).snapshot(policy(url=url))


async def test_an_answer_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("registry.downstream.http.MAX_ANSWER_BYTES", 100_000)

    async def handle(request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse(headers={"Content-Type": "application/json"})
        await stream.prepare(request)
        while True:
            await stream.write(b" " * 10_000)

    async with served(handle) as url:
        with pytest.raises(DownstreamFailed, match="too large"):
            await McpCatalogue(timeout_s=5).snapshot(policy(url=url))

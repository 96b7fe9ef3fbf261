"""`McpToolCaller` against servers on the official SDK, of both eras, and against one that does as it likes."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from pydantic import Field
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from registry.access import Permit, use_server, use_tool
from registry.calls import CallError, CallResult, ToolCall
from registry.downstream import McpToolCaller
from registry.downstream.calling import MOST_ASKED
from registry.downstream.pool import MOST_PER_CALLER, Pool, SessionKey
from registry.errors import DownstreamFailed
from tests.build import facts, policy
from tests.fake_downstream import Connection, FakeDownstream, Received, Script, answer, chunk, head
from tests.listening import tcp_listener

MODERN = "2026-07-28"
LEGACY = "2025-11-25"


def permit(url: str, tool: str = "echo", server_id: str = "srv-1") -> Permit:
    made = use_tool(facts(server=policy(url=url)), tool)
    assert isinstance(made, Permit)
    object.__setattr__(made, "server", policy(url=url, server_id=server_id))
    return made


def to_call(session: str = "ann", authorization: str | None = None, **arguments: Any) -> ToolCall:
    return ToolCall(arguments, session, authorization)


def content(outcome: CallResult | CallError) -> Mapping[str, Any]:
    assert isinstance(outcome, CallResult), outcome
    return outcome.content


def text(outcome: CallResult | CallError) -> str:
    return str(content(outcome)["content"][0]["text"])


@contextlib.asynccontextmanager
async def caller(credentials: Mapping[str, str] | None = None, **options: Any) -> AsyncIterator[McpToolCaller]:
    """One whose static credentials are for srv-1."""
    own = {"srv-1": credentials or {}}
    made = McpToolCaller(lambda one: own.get(one.server_id, {}), **options)
    try:
        yield made
    finally:
        await made.close()


@dataclass(frozen=True)
class Seen:
    """One HTTP request at a server."""

    http: str
    method: str | None
    session: str | None
    authorization: str | None


@dataclass
class Lab:
    """A server on the official SDK; one of the handshake era when it does not know `server/discover`.

    `forgotten` are sessions that it no longer knows.
    """

    modern: bool
    url: str = ""
    seen: list[Seen] = field(default_factory=list)
    forgotten: set[str] = field(default_factory=set)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    runs: list[str] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is true of what was seen."""
        while not is_so():
            self.changed.clear()
            await self.changed.wait()

    def sessions(self, method: str = "tools/call") -> list[str | None]:
        """The sessions that messages of this method came in."""
        return [one.session for one in self.seen if one.method == method]

    @property
    def deleted(self) -> list[str | None]:
        """The sessions that were ended."""
        return [one.session for one in self.seen if one.http == "DELETE"]

    def recording(self, app: ASGIApp) -> ASGIApp:
        """Notes each request, and makes an older server of a newer one."""

        async def handle(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            messages = await _whole(receive)
            if self._note(scope, b"".join(message.get("body", b"") for message in messages)) and not self.modern:
                await send({"type": "http.response.start", "status": 404, "headers": []})
                await send({"type": "http.response.body"})
                return
            await app(scope, _again(messages, receive), send)

        return handle

    def _note(self, scope: Scope, body: bytes) -> bool:
        """True when it asks what the server is."""
        fields = {name.decode(): value.decode() for name, value in scope["headers"]}
        session = fields.get("mcp-session-id")
        method = json.loads(body).get("method") if body else None
        self.seen.append(Seen(scope["method"], method, session, fields.get("authorization")))
        self.changed.set()
        if session in self.forgotten:
            fields["mcp-session-id"] = "unknown"
            scope["headers"] = [(name.encode(), value.encode()) for name, value in fields.items()]
        return method == "server/discover"


async def _whole(receive: Receive) -> list[Message]:
    messages = [await receive()]
    while messages[-1].get("more_body"):
        messages.append(await receive())
    return messages


def _again(messages: list[Message], receive: Receive) -> Receive:
    left = iter(messages)

    async def next_one() -> Message:
        return next(left, None) or await receive()

    return next_one


def server(lab: Lab) -> MCPServer:
    mcp = MCPServer("lab", log_level="CRITICAL")

    @mcp.tool()
    def echo(text: str) -> str:
        lab.runs.append(text)
        return text

    @mcp.tool()
    async def slow(text: str = "") -> str:
        lab.started.set()
        try:
            await lab.release.wait()
        finally:
            lab.ended.set()
        return text

    @mcp.tool()
    async def steps(context: Context, count: int) -> str:
        for step in range(count):
            await context.report_progress(step, count, f"step {step}")
        return "done"

    _plain_tools(mcp, lab)
    return mcp


def _plain_tools(mcp: MCPServer, lab: Lab) -> None:
    @mcp.tool()
    def fails() -> str:
        raise ToolError("no luck")

    @mcp.tool()
    def refuses() -> str:
        raise MCPError(-32042, "asks", {"elicitations": []})

    @mcp.tool()
    def structured() -> dict[str, int]:
        return {"answer": 42}

    @mcp.tool()
    def regional(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
        lab.runs.append(region)
        return region


@contextlib.asynccontextmanager
async def serving(*, modern: bool = False, stateless: bool = False, json_response: bool = False) -> AsyncIterator[Lab]:
    lab = Lab(modern)
    app = lab.recording(server(lab).streamable_http_app(stateless_http=stateless, json_response=json_response))
    listener = tcp_listener()
    running = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
    task = asyncio.create_task(running.serve(sockets=[listener]))
    lab.url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    try:
        yield lab
    finally:
        lab.release.set()
        running.should_exit = True
        await task


eras = pytest.mark.parametrize("modern", [True, False], ids=["modern", "legacy"])


@eras
@pytest.mark.parametrize("stateless", [False, True])
@pytest.mark.parametrize("json_response", [False, True])
async def test_results_and_errors_of_tools_come_through(modern: bool, stateless: bool, json_response: bool) -> None:
    async with (
        serving(modern=modern, stateless=stateless, json_response=json_response) as lab,
        caller() as made,
    ):
        assert text(await made.call(permit(lab.url), to_call(text="héllo"))) == "héllo"
        assert content(await made.call(permit(lab.url, "structured"), to_call()))["structuredContent"] == {"answer": 42}
        failed = content(await made.call(permit(lab.url, "fails"), to_call()))
        assert (failed["isError"], "resultType" in failed) == (True, modern)
        refused = await made.call(permit(lab.url, "refuses"), to_call())
        assert refused == CallError(-32042, "asks", {"elicitations": []})


async def test_calls_of_one_key_share_a_session_and_no_others_do() -> None:
    async with serving() as lab, serving() as other, caller() as made:
        same = [to_call(text="1"), to_call(text="2")]
        different = [to_call("bob", text="3"), to_call(authorization="Bearer a", text="4")]
        different += [to_call(authorization="Bearer b", text="5"), to_call("bob", "Bearer b", text="6")]
        await asyncio.gather(*(made.call(permit(lab.url), one) for one in (*same, *different)))
        await made.call(permit(lab.url, server_id="srv-2"), to_call(text="7"))
        await made.call(permit(other.url), to_call(text="8"))
    assert (len(lab.sessions()), len(set(lab.sessions())), None in lab.sessions()) == (7, 6, False)
    assert len(other.sessions()) == 1
    assert sorted(map(str, lab.deleted)) == sorted(map(str, set(lab.sessions())))
    assert other.deleted == other.sessions()


async def test_servers_with_other_static_credentials_share_no_session() -> None:
    fields = {"Authorization": "Bearer one"}
    async with serving() as lab, caller(fields) as made:
        await made.call(permit(lab.url), to_call(text="1"))
        fields["Authorization"] = "Bearer two"
        await made.call(permit(lab.url), to_call(text="2"))
    assert len(set(lab.sessions())) == 2


async def test_a_caller_s_own_credential_goes_before_the_static_one_and_to_that_server_alone() -> None:
    fields = {"authorization": "Bearer static", "X-Other": "x"}
    async with serving() as lab, serving() as other, caller(fields) as made:
        await made.call(permit(lab.url), to_call(text="1"))
        static = {one.authorization for one in lab.seen}
        lab.seen.clear()
        await made.call(permit(lab.url), to_call(authorization="Bearer own", text="2"))
        owned = {one.authorization for one in lab.seen}
        await made.call(permit(other.url, server_id="srv-2"), to_call(text="3"))
    assert (static, owned) == ({"Bearer static"}, {"Bearer own"})
    assert {one.authorization for one in other.seen} == {None}


@eras
async def test_fifty_calls_at_once_are_in_one_session(modern: bool) -> None:
    async with serving(modern=modern) as lab, caller() as made:
        outcomes = await asyncio.gather(*(made.call(permit(lab.url), to_call(text=str(n))) for n in range(50)))
    assert [text(outcome) for outcome in outcomes] == [str(n) for n in range(50)]
    opening = "server/discover" if modern else "initialize"
    assert [one.method for one in lab.seen].count(opening) == 1
    assert len(set(lab.sessions())) == 1


@eras
async def test_all_progress_is_told_in_order_before_the_result(modern: bool) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        for _ in range(10 - int(progress)):
            await asyncio.sleep(0)  # a listener that would be overtaken
        told.append((progress, total, message))

    async with serving(modern=modern) as lab, caller() as made:
        assert text(await made.call(permit(lab.url, "steps"), to_call(count=5), on_progress)) == "done"
    assert told == [(float(n), 5.0, f"step {n}") for n in range(5)]


@pytest.mark.parametrize("error", [ConnectionResetError, TimeoutError])
async def test_what_a_listener_raises_comes_through_and_the_session_goes_on(error: type[Exception]) -> None:
    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        raise error

    async with serving() as lab, caller() as made:
        with pytest.raises(error):
            await made.call(permit(lab.url, "steps"), to_call(count=200), on_progress)
        await made.call(permit(lab.url), to_call(text="1"))
    assert len(set(lab.sessions())) == 1


@eras
async def test_cancelling_a_call_cancels_it_downstream_and_no_other(modern: bool) -> None:
    async with serving(modern=modern) as lab, caller() as made:
        slow = asyncio.create_task(made.call(permit(lab.url, "slow"), to_call()))
        await lab.started.wait()
        lab.started.clear()
        other = asyncio.create_task(made.call(permit(lab.url, "slow"), to_call(text="other")))
        await lab.started.wait()
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        await lab.ended.wait()
        assert text(await made.call(permit(lab.url), to_call(text="after"))) == "after"
        lab.release.set()
        assert text(await other) == "other"
    assert len(set(lab.sessions())) == 1


@eras
async def test_a_call_that_takes_too_long_fails_and_is_cancelled(modern: bool) -> None:
    async with serving(modern=modern) as lab, caller(timeout_s=0.3) as made:
        with pytest.raises(DownstreamFailed, match=r"in 0\.3 s"):
            await made.call(permit(lab.url, "slow"), to_call())
        await lab.ended.wait()
        assert text(await made.call(permit(lab.url), to_call(text="after"))) == "after"
    assert len(set(lab.sessions())) == 1


async def test_a_session_that_the_server_forgot_is_opened_anew_and_the_call_runs_once() -> None:
    async with serving() as lab, caller() as made:
        await made.call(permit(lab.url), to_call(text="before"))
        lab.forgotten = set(map(str, lab.sessions()))
        outcomes = await asyncio.gather(*(made.call(permit(lab.url), to_call(text=str(n))) for n in range(5)))
        assert [text(outcome) for outcome in outcomes] == ["0", "1", "2", "3", "4"]
    assert sorted(lab.runs) == ["0", "1", "2", "3", "4", "before"]
    assert len(set(lab.sessions())) == 2


async def test_an_unused_session_is_ended() -> None:
    async with serving() as lab, caller(idle_s=0.05) as made:
        await made.call(permit(lab.url), to_call(text="1"))
        await lab.until(lambda: bool(lab.deleted))
        await made.call(permit(lab.url), to_call(text="2"))
        assert lab.deleted == lab.sessions()[:1]
        assert len(set(lab.sessions())) == 2


async def test_a_used_session_outlives_the_idle_time() -> None:
    async with serving() as lab, caller(idle_s=0.05) as made:
        slow = asyncio.create_task(made.call(permit(lab.url, "slow"), to_call(text="x")))
        await lab.started.wait()
        await made.call(permit(lab.url), to_call("bob", text="1"))
        await lab.until(lambda: bool(lab.deleted))  # bob's, whose idle time began later
        lab.release.set()
        assert text(await slow) == "x"


async def test_beyond_the_most_sessions_the_longest_unused_one_is_ended_and_none_that_is_used() -> None:
    async with serving() as lab, caller(max_sessions=3) as made:
        slow = asyncio.create_task(made.call(permit(lab.url, "slow"), to_call("used", text="x")))
        await lab.started.wait()
        for name in ("a", "b", "a", "c", "d"):
            await made.call(permit(lab.url), to_call(name, text=name))
        used, a, b, _, c, d = lab.sessions()
        await lab.until(lambda: len(lab.deleted) == 2)
        assert {*lab.deleted} == {b, a}
        await made.call(permit(lab.url), to_call("c", text="c"))
        assert lab.sessions()[-1] == c
        lab.release.set()
        assert text(await slow) == "x"
    assert {*lab.deleted} == {used, a, b, c, d}


async def test_the_session_that_was_used_again_is_not_the_longest_unused_one() -> None:
    async with serving() as lab, caller(max_sessions=2) as made:
        for name in ("a", "b", "a", "c"):
            await made.call(permit(lab.url), to_call(name, text=name))
        await lab.until(lambda: bool(lab.deleted))
        assert lab.deleted == [lab.sessions()[1]]


async def test_close_fails_the_calls_under_way_and_refuses_later_ones() -> None:
    async with serving() as lab, caller() as made:
        slow = asyncio.create_task(made.call(permit(lab.url, "slow"), to_call()))
        await lab.started.wait()
        await made.close()
        with pytest.raises(DownstreamFailed):
            await slow
        with pytest.raises(DownstreamFailed):
            await made.call(permit(lab.url), to_call(text="late"))
    assert lab.deleted == lab.sessions()


async def test_parameters_that_are_mirrored_in_header_fields_are_learned_when_they_are_missed() -> None:
    """MCP 2026-07-28 basic/transports: a server answers -32020 to a call without them, and does not run it."""
    async with serving(modern=True) as lab, caller() as made:
        assert text(await made.call(permit(lab.url, "regional"), to_call(region="Zürich"))) == "Zürich"
        assert text(await made.call(permit(lab.url, "regional"), to_call(region="Bern"))) == "Bern"
    methods = [one.method for one in lab.seen]
    assert methods == ["server/discover", "tools/call", "tools/list", "tools/call", "tools/call"]
    assert lab.runs == ["Zürich", "Bern"]


async def test_a_permit_that_names_no_tool_is_a_mistake_of_ours() -> None:
    entered = use_server(facts())
    assert isinstance(entered, Permit)
    async with caller() as made:
        with pytest.raises(ValueError, match="names no tool"):
            await made.call(entered, to_call())


async def test_arguments_that_cannot_be_sent_are_an_error_of_the_call_alone() -> None:
    deep: list[Any] = []
    for _ in range(300):
        deep = [deep]
    async with serving() as lab, caller() as made:
        for odd in ("\ud800", float("inf"), deep, 10**5000):
            outcome = await made.call(permit(lab.url), to_call(text=odd))
            assert isinstance(outcome, CallError)
            assert outcome.code == -32602
        assert lab.seen == []


# A downstream that does as it likes.


def speaking(call: Script, *, modern: bool = False, listed: Any = None) -> Script:
    """Opens a session as it should, and answers calls as told; each session is called s<n>."""
    opened: list[int] = []

    async def initialize(request: Received, connection: Connection) -> None:
        opened.append(1)
        await result(_INITIALIZED, f"Mcp-Session-Id: s{len(opened)}")(request, connection)

    scripts = {
        "server/discover": result(_DISCOVERED) if modern else answer(b"", "", "404 Not Found"),
        "initialize": initialize,
        "tools/list": result(listed),
        "tools/call": call,
        "GET": answer(b"", "", "405 Method Not Allowed"),
        "DELETE": answer(b"", "", "204 No Content"),
    }

    async def script(request: Received, connection: Connection) -> None:
        message = json.loads(request.body) if request.body else {"method": request.request_line.split()[0]}
        await scripts.get(message.get("method", ""), answer(b"", "", "202 Accepted"))(request, connection)

    return script


_DISCOVERED = {
    "supportedVersions": [MODERN],
    "capabilities": {"tools": {}},
    "resultType": "complete",
    "ttlMs": 0,
    "cacheScope": "private",
}
_INITIALIZED = {
    "protocolVersion": LEGACY,
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "odd", "version": "1"},
}


def result(value: Any, *fields: str) -> Script:
    return reply({"result": value}, "200 OK", *fields)


def reply(outcome: Mapping[str, Any], status: str = "200 OK", *fields: str) -> Script:
    async def script(request: Received, connection: Connection) -> None:
        body = json.dumps({"jsonrpc": "2.0", "id": json.loads(request.body)["id"], **outcome}).encode()
        await answer(body, "application/json", status, *fields)(request, connection)

    return script


def calls(fake: FakeDownstream) -> list[Received]:
    return [one for one in fake.received if b'"tools/call"' in one.body]


def bodies(fake: FakeDownstream) -> list[dict[str, Any]]:
    return [json.loads(body) for body in fake.bodies if body]


CALL_RESULTS: list[dict[str, Any]] = [
    {"resultType": "input_required", "inputRequests": {"k": {"method": "x/unknown"}}, "requestState": "opaque"},
    {"content": [{"type": "vendor", "x": None}], "structuredContent": [1], "_meta": {"v": {}}, "vendor": 1.5},
    {"content": "wrong", "resultType": "task", "ttlMs": -1},
    {},
]


@eras
@pytest.mark.parametrize("sent", CALL_RESULTS)
async def test_a_result_comes_through_as_it_was_received(modern: bool, sent: dict[str, Any]) -> None:
    async with FakeDownstream(speaking(result(sent), modern=modern)) as fake, caller() as made:
        assert content(await made.call(permit(fake.url), to_call())) == sent


@eras
@pytest.mark.parametrize(
    ("code", "status"), [(-32602, "400 Bad Request"), (-32042, "200 OK"), (-32000, "200 OK"), (-32001, "200 OK")]
)
async def test_an_error_of_the_downstream_comes_through(modern: bool, code: int, status: str) -> None:
    error = {"code": code, "message": "odd", "data": {"elicitations": [{"url": "https://example.com"}]}}
    script = speaking(reply({"error": error}, status), modern=modern)
    async with FakeDownstream(script) as fake, caller() as made:
        assert await made.call(permit(fake.url), to_call()) == CallError(code, "odd", error["data"])
    assert len(calls(fake)) == 1


async def test_a_call_is_sent_with_its_meta_and_its_retry_and_what_we_can_carry() -> None:
    sent = ToolCall(
        {"a": None, "b": [1.5, {"c": True}]},
        "ann",
        retry={"inputResponses": {"k": {"action": "accept", "odd": None}}, "requestState": "s", "name": "other"},
        meta={"traceparent": "00-1", "progressToken": 1, "io.modelcontextprotocol/protocolVersion": "1999"},
    )
    async with FakeDownstream(speaking(result({}), modern=True)) as fake, caller() as made:
        await made.call(permit(fake.url, "t"), sent)
    params = json.loads(calls(fake)[0].body)["params"]
    meta = params.pop("_meta")
    retry = {"inputResponses": sent.retry["inputResponses"], "requestState": "s"}
    assert params == {"name": "t", "arguments": sent.arguments, **retry}
    assert meta["traceparent"] == "00-1"
    assert meta["io.modelcontextprotocol/protocolVersion"] == MODERN
    assert meta["io.modelcontextprotocol/clientCapabilities"].keys() == {"sampling", "elicitation", "roots"}
    assert "progressToken" not in meta


async def test_before_2026_no_capability_is_declared() -> None:
    async with FakeDownstream(speaking(result({}))) as fake, caller() as made:
        await made.call(permit(fake.url), to_call())
    asked = next(body for body in bodies(fake) if body["method"] == "initialize")
    assert asked["params"]["capabilities"] == {}
    assert "_meta" not in json.loads(calls(fake)[0].body)["params"]


async def test_what_the_downstream_asks_for_is_declined_and_the_result_still_comes() -> None:
    declined: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    async def asks(request: Received, connection: Connection) -> None:
        connection.write(head())
        asked = {"jsonrpc": "2.0", "id": 7, "method": "roots/list"}
        connection.write(chunk(b"data: " + json.dumps(asked).encode() + b"\n\n"))
        await fake.until(lambda it: any(b'"error"' in body for body in it.bodies))
        declined.set_result(next(body for body in bodies(fake) if "error" in body))
        done = {"jsonrpc": "2.0", "id": json.loads(request.body)["id"], "result": {"content": []}}
        connection.write(chunk(b"data: " + json.dumps(done).encode() + b"\n\n") + b"0\r\n\r\n")

    async with FakeDownstream(speaking(asks)) as fake, caller() as made:
        assert content(await made.call(permit(fake.url), to_call())) == {"content": []}
    assert (declined.result()["id"], declined.result()["error"]["code"]) == (7, -32600)


async def broken(_request: Received, connection: Connection) -> None:
    connection.abort()


async def cut(_request: Received, connection: Connection) -> None:
    connection.write(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"json')
    connection.close()


async def cut_stream(_request: Received, connection: Connection) -> None:
    connection.write(head() + chunk(b": wait\n\n"))
    connection.close()


SECRET = b'{"secret": "leak"}'
ODD_ANSWERS: dict[str, tuple[Script, str]] = {
    "broken": (broken, "connection to the downstream broke"),
    "cut": (cut, "connection to the downstream broke"),
    "cut stream": (cut_stream, "connection to the downstream broke"),
    "stream without a response": (answer(b": none\n\n", "text/event-stream"), "connection to the downstream broke"),
    "500": (answer(b"leak", "text/html", "500 Internal Server Error"), "HTTP status 500"),
    "401": (answer(SECRET, "application/json", "401 Unauthorized"), "HTTP status 401"),
    "redirect": (answer(b"", "", "307 Temporary Redirect", "Location: /leak"), "redirects .HTTP status 307."),
    "accepted": (answer(b"", "", "202 Accepted"), "not MCP"),
    "HTML": (answer(b"<p>leak", "text/html"), "not MCP"),
    "no JSON": (answer(b"leak", "application/json"), "not MCP"),
    "other JSON": (answer(SECRET, "application/json"), "not MCP"),
    "odd result": (reply({"result": "leak"}), "not MCP"),
    "odd event": (answer(b"data: leak\n\n", "text/event-stream"), "not MCP"),
    "compressed": (answer(b"leak", "application/json", "200 OK", "Content-Encoding: gzip"), "compressed"),
}


@eras
@pytest.mark.parametrize("name", ODD_ANSWERS)
async def test_what_is_no_answer_fails_that_call_alone_and_is_not_sent_again(modern: bool, name: str) -> None:
    odd, sentence = ODD_ANSWERS[name]
    may_answer, asked = asyncio.Event(), asyncio.Event()

    async def call(request: Received, connection: Connection) -> None:
        if b'"good"' not in request.body:
            await odd(request, connection)
            return
        asked.set()
        await may_answer.wait()
        await result({"good": True})(request, connection)

    async with FakeDownstream(speaking(call, modern=modern)) as fake, caller() as made:
        good = asyncio.create_task(made.call(permit(fake.url), to_call(which="good")))
        await asked.wait()
        with pytest.raises(DownstreamFailed, match=sentence) as failed:
            await made.call(permit(fake.url), to_call(which="odd"))
        may_answer.set()
        assert content(await good) == {"good": True}
        assert content(await made.call(permit(fake.url), to_call(which="good"))) == {"good": True}
    assert "leak" not in str(failed.value)
    assert len(calls(fake)) == 3


async def test_a_call_that_never_ends_does_not_end_the_others_of_its_session() -> None:
    """The handshake era's cancellation leaves the POST as it is; the bound on its silence comes later."""
    given_up = asyncio.Event()

    async def call(request: Received, connection: Connection) -> None:
        if b'"good"' in request.body:
            await given_up.wait()
            await result({"good": True})(request, connection)
            return
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()

    async with FakeDownstream(speaking(call)) as fake, caller(timeout_s=0.5) as made:
        with pytest.raises(DownstreamFailed, match=r"in 0\.5 s"):
            await made.call(permit(fake.url), to_call(which="odd"))
        assert content(await made.call(permit(fake.url), to_call(which="good"))) == {"good": True}
    assert [one.values("mcp-session-id") for one in calls(fake)] == [["s1"], ["s1"]]


async def test_a_notification_that_is_not_answered_holds_up_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("registry.downstream.exchanges.ASIDE_TIMEOUT_S", 0.1)

    async def call(request: Received, connection: Connection) -> None:
        if b'"good"' in request.body:
            await result({"good": True})(request, connection)

    async def script(request: Received, connection: Connection) -> None:
        if b"notifications/cancelled" not in request.body:
            await speaks(request, connection)

    speaks = speaking(call)
    async with FakeDownstream(script) as fake, caller() as made:
        odd = asyncio.create_task(made.call(permit(fake.url), to_call(which="odd")))
        await fake.until(lambda it: bool(calls(it)))
        odd.cancel()
        with pytest.raises(asyncio.CancelledError):
            await odd
        assert content(await made.call(permit(fake.url), to_call(which="good"))) == {"good": True}
    assert [one.values("mcp-session-id") for one in calls(fake)] == [["s1"], ["s1"]]


async def test_the_session_of_a_failure_is_not_used_again() -> None:
    async with FakeDownstream(speaking(broken)) as fake, caller() as made:
        for _ in range(2):
            with pytest.raises(DownstreamFailed):
                await made.call(permit(fake.url), to_call())
    assert [one.values("mcp-session-id") for one in calls(fake)] == [["s1"], ["s2"]]


async def test_a_server_that_answers_400_to_a_session_is_given_another_one_next_time() -> None:
    error = {"error": {"code": -32000, "message": "No valid session"}}
    async with FakeDownstream(speaking(reply(error, "400 Bad Request"))) as fake, caller() as made:
        for _ in range(2):
            assert isinstance(await made.call(permit(fake.url), to_call()), CallError)
    assert [one.values("mcp-session-id") for one in calls(fake)] == [["s1"], ["s2"]]


async def test_a_server_that_never_knows_its_sessions_fails_after_the_second_one() -> None:
    async with FakeDownstream(speaking(answer(SECRET, "application/json", "404 Not Found"))) as fake, caller() as made:
        with pytest.raises(DownstreamFailed, match="does not know the session"):
            await made.call(permit(fake.url), to_call())
    assert len(calls(fake)) == 2


INVALID = {"type": "object", "properties": {"a": {"type": "object", "x-mcp-header": "a b"}}}


@pytest.mark.parametrize(
    ("modern", "listed", "sent"),
    [
        (True, {"tools": "none"}, 1),
        (True, {"tools": []}, 2),
        (True, {"tools": [{"name": "echo", "inputSchema": INVALID}]}, 2),
        (False, {"tools": []}, 1),
    ],
)
async def test_a_mismatch_that_listing_cannot_mend_comes_through(modern: bool, listed: Any, sent: int) -> None:
    script = speaking(
        reply({"error": {"code": -32020, "message": "m"}}, "400 Bad Request"), modern=modern, listed=listed
    )
    async with FakeDownstream(script) as fake, caller() as made:
        assert await made.call(permit(fake.url), to_call()) == CallError(-32020, "m")
    assert len(calls(fake)) == sent


async def test_an_opening_that_fails_fails_all_that_wait_for_it_and_is_forgotten() -> None:
    may_answer = asyncio.Event()

    async def script(request: Received, connection: Connection) -> None:
        await may_answer.wait()
        await answer(b"", "", "503 Service Unavailable")(request, connection)

    async with FakeDownstream(script) as fake, caller() as made:
        waiting = [asyncio.create_task(made.call(permit(fake.url), to_call())) for _ in range(3)]
        await fake.until(lambda it: bool(it.received))
        may_answer.set()
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert [str(outcome) for outcome in outcomes] == ["the downstream answered with HTTP status 503"] * 3
        assert [body["method"] for body in bodies(fake)] == ["server/discover", "initialize"]
        fake.script = speaking(result({"up": True}))
        assert content(await made.call(permit(fake.url), to_call())) == {"up": True}


async def test_a_downstream_that_is_not_there_is_named_without_its_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    async with caller() as made:
        with pytest.raises(DownstreamFailed) as failed:
            await made.call(permit(f"http://127.0.0.1:{port}/mcp?token=secret"), to_call())
    assert str(failed.value) == "the downstream could not be connected to"


async def test_a_downstream_that_is_silent_at_the_opening_fails_in_time_and_leaves_no_task() -> None:
    async def silent(_request: Received, _connection: Connection) -> None:
        await asyncio.Event().wait()

    before = asyncio.all_tasks()
    async with FakeDownstream(silent) as fake, caller(timeout_s=0.2) as made:
        with pytest.raises(DownstreamFailed, match=r"in time$|in 0\.2 s$"):
            await made.call(permit(fake.url), to_call())
        await made.close()
    assert {task for task in asyncio.all_tasks() if not task.done()} <= before


async def test_an_opening_has_a_bound_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("registry.downstream.caller._OPEN_TIMEOUT_S", 0.1)

    async def silent(_request: Received, _connection: Connection) -> None:
        await asyncio.Event().wait()

    async with FakeDownstream(silent) as fake, caller() as made:
        with pytest.raises(DownstreamFailed, match="did not open a session in time"):
            await made.call(permit(fake.url), to_call())


async def test_a_fault_of_ours_in_an_opening_fails_the_call_and_says_nothing() -> None:
    def opener(_key: SessionKey) -> contextlib.AbstractAsyncContextManager[str]:
        raise KeyError("secret")

    pool: Pool[str] = Pool(opener, idle_s=1, most=1)
    with pytest.raises(DownstreamFailed) as failed:
        async with pool.lent(SessionKey("srv-1", "http://x", "ann", ())):
            pass
    await pool.close()
    assert "secret" not in str(failed.value)
    assert len(pool) == 0


async def test_close_does_not_wait_for_an_opening() -> None:
    async def silent(_request: Received, _connection: Connection) -> None:
        await asyncio.Event().wait()

    async with FakeDownstream(silent) as fake, caller() as made:
        waiting = asyncio.create_task(made.call(permit(fake.url), to_call()))
        await fake.until(lambda it: bool(it.received))
        await made.close()
        with pytest.raises(DownstreamFailed, match="closed"):
            await waiting


@pytest.mark.parametrize("value", ["Bearer ü", "Bearer a\r\nX-Evil: 1"])
async def test_a_credential_that_is_no_field_value_is_not_sent(value: str) -> None:
    async with FakeDownstream() as fake, caller() as made:
        with pytest.raises(DownstreamFailed, match="no header field can"):
            await made.call(permit(fake.url), to_call(authorization=value))
    assert fake.received == []


# A downstream that means harm.


async def test_a_flood_of_requests_is_declined_up_to_a_bound_and_the_session_is_not_used_again() -> None:
    async def floods(request: Received, connection: Connection) -> None:
        connection.write(head())
        for number in range(2 * MOST_ASKED):
            asked = {"jsonrpc": "2.0", "id": number, "method": "ping"}
            connection.write(chunk(b"data: " + json.dumps(asked).encode() + b"\n\n"))
        done = {"jsonrpc": "2.0", "id": json.loads(request.body)["id"], "result": {"content": []}}
        connection.write(chunk(b"data: " + json.dumps(done).encode() + b"\n\n") + b"0\r\n\r\n")

    async with FakeDownstream(speaking(floods)) as fake, caller() as made:
        assert content(await made.call(permit(fake.url), to_call())) == {"content": []}
        await made.call(permit(fake.url), to_call())
        answered = [body for body in bodies(fake) if "result" in body or "error" in body]
    assert len({one.values("mcp-session-id")[0] for one in calls(fake)}) == 2
    assert len(answered) <= 2 * MOST_ASKED


async def test_the_sessions_own_stream_is_never_opened() -> None:
    async with FakeDownstream(speaking(result({"content": []}))) as fake, caller() as made:
        await made.call(permit(fake.url), to_call())
        await made.call(permit(fake.url), to_call())
    assert not [one for one in fake.received if one.request_line.startswith("GET")]


async def test_one_caller_does_not_crowd_out_the_sessions_of_another() -> None:
    async with serving() as lab, caller() as made:
        await made.call(permit(lab.url), to_call("bob", text="b"))
        bobs = lab.sessions()[-1]
        for number in range(MOST_PER_CALLER + 5):
            await made.call(permit(lab.url), to_call("eve", authorization=f"Bearer {number}", text="e"))
        await lab.until(lambda: len(lab.deleted) >= 5)
        await made.call(permit(lab.url), to_call("bob", text="b"))
        assert lab.sessions()[-1] == bobs
        assert bobs not in lab.deleted

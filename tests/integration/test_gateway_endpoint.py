"""Our own MCP endpoint `/mcp` on raw sockets: all four revisions, on twins of what is behind it."""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from aiohttp import web
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from config.address import Address
from config.serve import listen, serving
from proxy.errors import DownstreamUnusable, OwnFailure, PolicyUnknown
from proxy.gateway.answers import Identity
from proxy.gateway.discover import Discoverer
from proxy.gateway.endpoint import MOST_IN_BATCH, Gateway
from proxy.gateway.execute import Executor
from proxy.gateway.methods import Methods
from proxy.ports import DataPlaneSettings, FindRefused
from registry.access import Permit
from registry.api import views
from registry.calls import CallError, CallResult, Progress, ToolCall
from registry.credentials import key_hash
from registry.discovery import Answer as SearchAnswer
from registry.discovery import Found
from registry.model import Asked, Facts, Scope, ServerPolicy
from tests.build import KEY, entry, facts, key, policy, server
from tests.raw_client import Answer, Client, ask, request

OTHER_KEY = "sg_" + "o" * 43
READER_KEY = "sg_" + "r" * 43
"""Without the scope `mcp`."""

HANDSHAKE = ("2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
ALL = (*HANDSHAKE, MODERN)

TYPE = "Content-Type: application/json"
BOTH = "Accept: application/json, text/event-stream"
META = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
UNKNOWN_SERVER = "There is no such server, or this key may not see it."
DONE = {"content": [{"type": "text", "text": "done"}]}

SERVERS = {
    "/lab": policy(disabled_tools=frozenset({"danger"})),
    "/hidden": policy(server_id="srv-2", path="/hidden"),
    "/broken": policy(server_id="srv-3", path="/broken", fault="unreadable"),
}


class KnownPolicies:
    """Three keys and three servers, of which ann sees two. Fails from the read on that `fails_at` counts."""

    def __init__(self) -> None:
        reader = key(id="key-3", hash=key_hash(READER_KEY), scopes=frozenset({Scope.READ}))
        keys = [key(), key(id="key-2", hash=key_hash(OTHER_KEY)), reader]
        self._keys = {known.hash: known for known in keys}
        self.reads = 0
        self.fails_at = 1_000_000

    async def facts(self, asked: Asked) -> Facts:
        self.reads += 1
        if self.reads >= self.fails_at:
            raise PolicyUnknown("the store is not there")
        known = next((found for found in SERVERS.values() if asked.server in (found.path, found.server_id)), None)
        return facts(key=self._keys.get(asked.key_hash or ""), server=known, entries=_entries(known))


def _entries(known: ServerPolicy | None) -> Any:
    return () if known is None or known.path == "/hidden" else (entry(server_id=known.server_id),)


class ScriptedCaller:
    """Tells `telling`, then answers `outcome`: at once, or when it is released."""

    def __init__(self) -> None:
        self.outcome: CallResult | CallError | OwnFailure = CallResult(DONE)
        self.telling: list[tuple[float, float | None, str | None]] = []
        self.calls: list[tuple[Permit, ToolCall]] = []
        self.entered, self.released, self.cancelled = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.released.set()

    async def call(self, permit: Permit, call: ToolCall, on_progress: Progress | None = None) -> CallResult | CallError:
        self.calls.append((permit, call))
        for told in self.telling if on_progress is not None else []:
            assert on_progress is not None
            await on_progress(*told)
        self.entered.set()
        try:
            await self.released.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        if isinstance(self.outcome, OwnFailure):
            raise self.outcome
        return self.outcome


class ScriptedFinder:
    """Finds one tool that can be used and one that cannot, as the API shows them."""

    async def find(
        self, key_hash: str | None, query: str, limit: int, server: str | None, *, include_disabled: bool
    ) -> Mapping[str, Any]:
        if server == "/nowhere":
            raise FindRefused("there is no such server")
        lab = _lab()
        found = (Found(lab, lab.tools[0], 1.5), Found(lab, lab.tools[1], 0.5, "tool_disabled"))
        answer = views.search_answer(SearchAnswer(found, degraded=True), "http://localhost:8470")
        return answer.model_dump(by_alias=True, mode="json")


def _lab() -> Any:
    made = server("safe", "danger")
    definition = {"name": "danger", "description": "x" * 400_000, "inputSchema": {"description": "y" * 400_000}}
    return replace(made, tools=(made.tools[0], replace(made.tools[1], definition=definition)))


@dataclass
class Endpoint:
    """A running gateway and the twins behind it."""

    port: int
    policies: KnownPolicies
    caller: ScriptedCaller

    async def ask(self, data: bytes) -> Answer:
        return await ask(self.port, data)

    async def session(self, access_key: str = KEY) -> str:
        """The name that an `initialize` gives out."""
        answer = await self.ask(said("2025-11-25", "initialize", {"protocolVersion": "2025-11-25"}, key=access_key))
        [name] = answer.values("mcp-session-id")
        return name

    @property
    def sent(self) -> list[tuple[str | None, Mapping[str, Any]]]:
        """Tool and arguments of every call."""
        return [(permit.tool, call.arguments) for permit, call in self.caller.calls]


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    """The gateway alone, served as the command does."""
    policies, caller = KnownPolicies(), ScriptedCaller()
    methods = Methods(Identity("1"), Discoverer(ScriptedFinder()), Executor(policies, caller), list_ttl_ms=5)
    app = web.Application()
    Gateway(policies, methods, DataPlaneSettings(max_body_bytes=100_000)).mount(app)
    listener = listen(Address("127.0.0.1", 0))
    async with serving(app, listener, grace_s=1):
        yield Endpoint(listener.getsockname()[1], policies, caller)


# What is sent


def posted(body: bytes, *fields: str, key: str | None = KEY, usual: tuple[str, ...] = (TYPE, BOTH)) -> bytes:
    return request("POST", *usual, *fields, f"Content-Length: {len(body)}", path="/mcp", key=key) + body


def message(method: str, params: Mapping[str, Any] | None = None, id_text: str | None = "7") -> bytes:
    """A request, or without an id a notification."""
    of_id = "" if id_text is None else f'"id":{id_text},'
    return f'{{"jsonrpc":"2.0",{of_id}"method":"{method}","params":{json.dumps(params or {})}}}'.encode()


def said(  # the whole of a well-formed request of one revision
    revision: str,
    method: str,
    params: Mapping[str, Any] | None = None,
    *fields: str,
    id_text: str | None = "7",
    meta: Mapping[str, Any] | None = None,
    key: str | None = KEY,
    usual: tuple[str, ...] = (TYPE, BOTH),
) -> bytes:
    given = dict(params or {})
    lines = [f"MCP-Protocol-Version: {revision}", *fields]
    if revision == MODERN:
        lines += [f"Mcp-Method: {method}", *([f"Mcp-Name: {given['name']}"] if method == "tools/call" else [])]
    whole_meta = {**(META if revision == MODERN else {}), **(meta or {})}
    if whole_meta:
        given["_meta"] = whole_meta
    return posted(message(method, given, id_text), *lines, key=key, usual=usual)


def run(tool: str = "safe", server: str = "/lab", arguments: Any = None) -> dict[str, Any]:
    """The params of a `tools/call` of `execute_tool`."""
    call = {"server": server, "tool": tool, "arguments": {"nonce": "1"} if arguments is None else arguments}
    return {"name": "execute_tool", "arguments": call}


def find(**arguments: Any) -> dict[str, Any]:
    return {"name": "discover_servers", "arguments": arguments}


def spelled(number: str, place: str = '"@"') -> bytes:
    """A run of a tool with a number spelled so in its arguments."""
    body = message("tools/call", run(arguments={"n": "@"})).replace(place.encode(), number.encode())
    return posted(body, "MCP-Protocol-Version: 2025-11-25")


def failure(answer: Answer) -> tuple[int, int, Any]:
    """HTTP status, JSON-RPC code and id."""
    content = answer.json
    return answer.status, content["error"]["code"], content["id"]


def error_text(answer: Answer) -> str:
    """The text of a result that is a failure for a model."""
    result = answer.json["result"]
    assert (answer.status, result["isError"], result["resultType"]) == (200, True, "complete")
    text: str = result["content"][0]["text"]
    return text


def events(body: bytes) -> list[Any]:
    """The messages of an event stream."""
    pieces = body.decode().split("\r\n\r\n")
    assert pieces.pop() == ""
    return [json.loads(piece.removeprefix("event: message\r\ndata: ")) for piece in pieces]


# Before the body is read


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS"])
async def test_only_post_is_served(endpoint: Endpoint, method: str) -> None:
    """MCP 2026-07-28 basic/transports: 405 with Allow: POST."""
    answer = await endpoint.ask(request(method, BOTH, path="/mcp"))

    assert (answer.status, answer.values("allow")) == (405, ["POST"])
    assert endpoint.policies.reads == 0


async def test_what_is_said_of_the_methods_agrees_with_the_field(endpoint: Endpoint) -> None:
    answer = await endpoint.ask(request("PUT", path="/mcp"))

    assert "GET" not in answer.json["detail"]


@pytest.mark.parametrize("body", [message("ping"), b"not json"])
@pytest.mark.parametrize("unknown", [None, "sg_" + "u" * 43, "sg_short"])
async def test_who_has_no_key_is_turned_away_before_the_body_is_judged(
    endpoint: Endpoint, unknown: str | None, body: bytes
) -> None:
    answer = await endpoint.ask(posted(body, key=unknown))

    assert (answer.status, answer.json["code"]) == (401, "key_invalid")
    assert answer.values("www-authenticate") == ['Bearer realm="sluicegate"']


async def test_a_key_without_the_scope_is_told_which_one(endpoint: Endpoint) -> None:
    answer = await endpoint.ask(posted(b"not json", key=READER_KEY))

    assert (answer.status, answer.json["code"], answer.json["required_scope"]) == (403, "scope_mcp", "mcp")


async def test_two_keys_that_differ_are_none(endpoint: Endpoint) -> None:
    answer = await endpoint.ask(posted(message("ping"), f"X-Sluicegate-Key: {OTHER_KEY}"))

    assert failure(answer) == (400, -32600, None)


@pytest.mark.parametrize(
    ("body", "id_value"), [(message("ping", id_text='"a"'), "a"), (b"not json", None), (b"[]", None)]
)
async def test_an_authority_that_does_not_answer_is_told_by_the_callers_id(
    endpoint: Endpoint, body: bytes, id_value: Any
) -> None:
    endpoint.policies.fails_at = 1

    assert failure(await endpoint.ask(posted(body))) == (503, -32603, id_value)


async def test_a_body_over_the_limit_is_refused_before_the_key_is_looked_up(endpoint: Endpoint) -> None:
    answer = await endpoint.ask(posted(b" " * 100_001, key=None))

    assert failure(answer) == (413, -32600, None)
    assert endpoint.policies.reads == 0


@pytest.mark.parametrize(
    ("usual", "status"),
    [
        (("Content-Type: text/plain", BOTH), 415),
        ((BOTH,), 415),
        (("Content-Type: application/json; charset=latin1", BOTH), 415),
        ((TYPE, BOTH, "Content-Encoding: gzip"), 415),
        ((TYPE, BOTH, "Mcp-Method: ping", "Mcp-Method: ping"), 400),
        ((TYPE, BOTH, "Connection: Mcp-Name"), 400),
        ((TYPE, "Accept: text/html"), 406),
        ((TYPE, "Accept: text/event-stream"), 406),
    ],
)
async def test_a_head_that_asks_for_something_else_is_refused(
    endpoint: Endpoint, usual: tuple[str, ...], status: int
) -> None:
    assert failure(await endpoint.ask(posted(message("ping"), usual=usual))) == (status, -32600, None)


@pytest.mark.parametrize(
    "usual",
    [
        ("Content-Type: application/json; charset=UTF-8", "Accept: application/json"),
        (TYPE, "Accept: */*"),
        (TYPE, "Accept: application/*;q=0.5"),
        (TYPE,),
    ],
)
async def test_a_head_that_json_fits_is_served(endpoint: Endpoint, usual: tuple[str, ...]) -> None:
    answer = await endpoint.ask(posted(message("ping"), usual=usual))

    assert (answer.status, answer.values("content-type")) == (200, ["application/json"])
    assert answer.values("cache-control") == ["no-store"]


@pytest.mark.parametrize(
    ("body", "code", "id_value"),
    [
        (b"", -32700, None),
        (b"not json", -32700, None),
        (message("ping") + b"x", -32700, None),
        (b"\xef\xbb\xbf" + message("ping"), -32700, None),
        (message("ping").decode().encode("utf-16"), -32700, None),
        (message("tools/call", run()).replace(b'"@"', b"NaN").replace(b'"1"', b"NaN"), -32700, None),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","method":"tools/call"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","Method":"tools/call"}', -32600, None),
        (message("tools/call", run()).replace(b'"name"', b'"name":"x","name"'), -32600, 7),
        (message("tools/call", {"name": 5}), -32600, 7),
        (message("ping", id_text="1.5"), -32600, None),
        (message("ping", id_text="null"), -32600, None),
        (b"[]", -32600, None),
        (b"5", -32600, None),
    ],
)
async def test_a_body_that_two_readers_could_take_differently_is_refused(
    endpoint: Endpoint, body: bytes, code: int, id_value: Any
) -> None:
    assert failure(await endpoint.ask(posted(body))) == (400, code, id_value)
    assert endpoint.sent == []


# The revisions


@pytest.mark.parametrize("revision", HANDSHAKE)
@pytest.mark.parametrize("has_field", [False, True])
async def test_a_handshake_gives_a_session_a_name(endpoint: Endpoint, revision: str, has_field: bool) -> None:
    body = message("initialize", {"protocolVersion": revision, "capabilities": {}, "clientInfo": {}})
    data = posted(body, *([f"MCP-Protocol-Version: {revision}"] if has_field else []))
    first, second = await endpoint.ask(data), await endpoint.ask(data)

    assert (first.status, first.json["result"]) == (200, Identity("1").initialized(revision))
    [name] = first.values("mcp-session-id")
    assert re.fullmatch(r"[!-~]+", name)
    assert second.values("mcp-session-id") not in ([], [name])


async def test_2026_tells_about_the_server_and_keeps_no_session(endpoint: Endpoint) -> None:
    answer = await endpoint.ask(said(MODERN, "server/discover", None, "Mcp-Session-Id: x"))

    assert (answer.status, answer.json["result"]) == (200, Identity("1").discovered((MODERN,), 5))
    assert answer.values("mcp-session-id") == []


@pytest.mark.parametrize("revision", ALL)
async def test_every_revision_lists_the_tools_and_runs_them(endpoint: Endpoint, revision: str) -> None:
    listed = await endpoint.ask(said(revision, "tools/list"))
    assert [tool["name"] for tool in listed.json["result"]["tools"]] == ["discover_servers", "execute_tool"]
    ran = await endpoint.ask(said(revision, "tools/call", run(), id_text='"a"'))

    assert (ran.status, ran.values("content-type")) == (200, ["application/json"])
    assert ran.json == {"jsonrpc": "2.0", "id": "a", "result": {**DONE, "resultType": "complete"}}
    assert endpoint.sent == [("safe", {"nonce": "1"})]


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_revision_with_a_handshake_has_a_ping_and_knows_an_unknown_method_by_200(
    endpoint: Endpoint, revision: str
) -> None:
    assert (await endpoint.ask(said(revision, "ping"))).json["result"] == {}
    assert failure(await endpoint.ask(said(revision, "server/discover"))) == (200, -32601, 7)


@pytest.mark.parametrize("method", ["ping", "initialize", "prompts/list"])
async def test_an_unknown_method_of_2026_is_404(endpoint: Endpoint, method: str) -> None:
    """MCP 2026-07-28 basic/transports."""
    assert failure(await endpoint.ask(said(MODERN, method))) == (404, -32601, 7)


@pytest.mark.parametrize("method", ["initialize", "tools/list", "tools/call"])
@pytest.mark.parametrize("version", ["2024-11-05", "2099-01-01"])
async def test_an_unknown_version_is_told_those_that_are_spoken(endpoint: Endpoint, version: str, method: str) -> None:
    answer = await endpoint.ask(said(version, method, run()))

    assert failure(answer) == (400, -32022, 7)
    assert answer.json["error"]["data"] == {"supported": list(ALL), "requested": version}


@pytest.mark.parametrize(
    ("lines", "meta", "code"),
    [
        (("MCP-Protocol-Version: 2025-11-25", "Mcp-Method: tools/call", "Mcp-Name: execute_tool"), META, -32020),
        (("Mcp-Method: tools/call", "Mcp-Name: execute_tool"), META, -32020),
        (("MCP-Protocol-Version: 2026-07-28", "Mcp-Name: execute_tool"), META, -32020),
        (("MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call"), META, -32020),
        (("MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/list", "Mcp-Name: execute_tool"), META, -32020),
        (("MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: safe"), META, -32020),
        (
            ("MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: execute_tool"),
            {"io.modelcontextprotocol/protocolVersion": MODERN},
            -32602,
        ),
        (("MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: execute_tool"), {}, -32602),
    ],
)
async def test_fields_and_envelope_of_2026_are_there_and_agree(
    endpoint: Endpoint, lines: tuple[str, ...], meta: Mapping[str, Any], code: int
) -> None:
    """MCP 2026-07-28 basic/transports and basic: HeaderMismatch, and -32602 for what is required."""
    answer = await endpoint.ask(posted(message("tools/call", {**run(), "_meta": meta}), *lines))

    assert failure(answer) == (400, code, 7)
    assert endpoint.sent == []


async def test_a_name_may_be_coded(endpoint: Endpoint) -> None:
    """MCP 2026-07-28 basic/transports: the base64 sentinel."""
    lines = ("MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: =?base64?ZXhlY3V0ZV90b29s?=")
    answer = await endpoint.ask(posted(message("tools/call", {**run(), "_meta": META}), *lines))

    assert answer.json["result"]["content"] == DONE["content"]


@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize(
    ("id_text", "id_bytes"),
    [
        ("7", b"7"),
        ("-1", b"-1"),
        ("123456789012345678901234567890", b"123456789012345678901234567890"),
        ("9" * 5000, b"9" * 5000),
        ('""', b'""'),
        ('"7"', b'"7"'),
        ('"\\u0061\\/\\ud800"', b'"a/\\ud800"'),  # escapes: the same meaning
        ('"\u00e9"', '"\u00e9"'.encode()),
    ],
)
async def test_an_id_comes_back_as_spelled(endpoint: Endpoint, revision: str, id_text: str, id_bytes: bytes) -> None:
    for method in ("tools/list", "nothing/here"):
        answer = await endpoint.ask(said(revision, method, id_text=id_text))
        assert answer.body.startswith(b'{"jsonrpc":"2.0","id":' + id_bytes + b',"')


@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("method", ["notifications/initialized", "notifications/other", "tools/call", "ping"])
async def test_a_notification_has_no_answer_and_runs_nothing(endpoint: Endpoint, revision: str, method: str) -> None:
    answer = await endpoint.ask(said(revision, method, run(), id_text=None))

    assert (answer.status, answer.body, endpoint.sent) == (202, b"", [])


RESPONSE = b'{"jsonrpc":"2.0","id":1,"result":{}}'


async def test_a_response_has_no_answer_and_is_none_of_2026(endpoint: Endpoint) -> None:
    """MCP 2026-07-28: a client sends no responses."""
    for revision in HANDSHAKE:
        answer = await endpoint.ask(posted(RESPONSE, f"MCP-Protocol-Version: {revision}"))
        assert (answer.status, answer.body) == (202, b"")
    refused = await endpoint.ask(posted(RESPONSE, f"MCP-Protocol-Version: {MODERN}"))
    assert failure(refused) == (400, -32600, None)


# Batches


def batch(*messages: bytes) -> bytes:
    return b"[" + b",".join(messages) + b"]"


@pytest.mark.parametrize("fields", [(), ("MCP-Protocol-Version: 2025-03-26",)])
async def test_a_batch_is_answered_as_one(endpoint: Endpoint, fields: tuple[str, ...]) -> None:
    """MCP 2025-03-26 basic/transports; `initialize` is never part of a batch."""
    body = batch(
        message("initialize", {"protocolVersion": "2025-03-26"}, "1"),
        message("notifications/initialized", id_text=None),
        message("ping", id_text='"p"'),
        RESPONSE,
        message("tools/call", run(), "3"),
        message("tools/call", run("danger"), "4"),
        message("nothing/here", id_text="5"),
        message("tools/list", {"cursor": "2"}, "6"),
    )
    answer = await endpoint.ask(posted(body, *fields))

    assert answer.status == 200
    assert [(one["id"], one.get("error", {}).get("code")) for one in answer.json] == [
        (1, -32600),
        ("p", None),
        (3, None),
        (4, None),
        (5, -32601),
        (6, -32602),
    ]
    assert [one["result"].get("isError") for one in answer.json[1:4]] == [None, None, True]
    assert answer.values("mcp-session-id") == []
    assert endpoint.sent == [("safe", {"nonce": "1"})]


async def test_a_batch_of_one_is_answered_as_a_batch(endpoint: Endpoint) -> None:
    answer = await endpoint.ask(posted(batch(message("ping"))))

    assert answer.json == [{"jsonrpc": "2.0", "id": 7, "result": {}}]


async def test_a_batch_in_which_nothing_wants_an_answer_has_none(endpoint: Endpoint) -> None:
    answer = await endpoint.ask(posted(batch(message("ping", id_text=None), message("tools/call", run(), None))))

    assert (answer.status, answer.body, endpoint.sent) == (202, b"", [])


async def test_an_authority_that_fails_in_a_batch_fails_that_message(endpoint: Endpoint) -> None:
    endpoint.policies.fails_at = 2
    answer = await endpoint.ask(posted(batch(message("tools/call", run(), "1"), message("ping", id_text="2"))))

    assert (answer.status, [one.get("error", {}).get("code") for one in answer.json]) == (200, [-32603, None])


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", MODERN])
async def test_a_batch_of_another_revision_is_refused_whole(endpoint: Endpoint, revision: str) -> None:
    answer = await endpoint.ask(posted(batch(message("tools/call", run())), f"MCP-Protocol-Version: {revision}"))

    assert (failure(answer), endpoint.sent) == ((400, -32600, None), [])


# Progress


@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("token", ["abc", 7, "\u00e9"])
async def test_progress_is_told_before_the_answer(endpoint: Endpoint, revision: str, token: Any) -> None:
    """MCP basic/utilities/progress: the token as it was given."""
    endpoint.caller.telling = [(1, None, None), (2.5, 3, "half")]
    answer = await endpoint.ask(said(revision, "tools/call", run(), meta={"progressToken": token}))

    assert (answer.status, answer.values("content-type"), answer.is_whole) == (200, ["text/event-stream"], True)
    told: list[dict[str, Any]] = [{"progress": 1}, {"progress": 2.5, "total": 3, "message": "half"}]
    notifications = [
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {**params, "progressToken": token}}
        for params in told
    ]
    response = {"jsonrpc": "2.0", "id": 7, "result": {**DONE, "resultType": "complete"}}
    assert events(answer.body) == [*notifications, response]
    assert "progressToken" not in endpoint.caller.calls[0][1].meta


@pytest.mark.parametrize(
    ("usual", "meta"),
    [
        ((TYPE, "Accept: application/json"), {"progressToken": 1}),
        ((TYPE, BOTH), {}),
        ((TYPE, BOTH), {"progressToken": None}),
        ((TYPE, BOTH), {"progressToken": True}),
    ],
)
async def test_who_reads_no_events_or_wants_no_progress_gets_json(
    endpoint: Endpoint, usual: tuple[str, ...], meta: dict[str, Any]
) -> None:
    endpoint.caller.telling = [(1, None, None)]
    answer = await endpoint.ask(said("2025-11-25", "tools/call", run(), meta=meta, usual=usual))

    assert (answer.values("content-type"), answer.json["result"]["content"]) == (["application/json"], DONE["content"])


async def test_a_failure_ends_the_events(endpoint: Endpoint) -> None:
    endpoint.policies.fails_at = 2
    answer = await endpoint.ask(said(MODERN, "tools/call", run(), meta={"progressToken": 1}))

    [event] = events(answer.body)
    assert (answer.is_whole, event["id"], event["error"]["code"]) == (True, 7, -32603)


@pytest.mark.parametrize(
    ("method", "params", "expected"),
    [("nothing/here", {}, (404, -32601, 7)), ("tools/list", {"cursor": "2"}, (400, -32602, 7))],
)
async def test_a_token_changes_nothing_about_a_failure_that_has_a_status(
    endpoint: Endpoint, method: str, params: dict[str, Any], expected: tuple[int, int, Any]
) -> None:
    """MCP 2026-07-28 basic/transports: the status carries meaning."""
    answer = await endpoint.ask(said(MODERN, method, params, meta={"progressToken": 1}))

    assert failure(answer) == expected


async def test_a_handshake_with_a_token_gives_its_session_a_name_too(endpoint: Endpoint) -> None:
    params = {"protocolVersion": "2025-11-25"}
    answer = await endpoint.ask(said("2025-11-25", "initialize", params, meta={"progressToken": 1}))

    assert len(answer.values("mcp-session-id")) == 1


# Ending a call


@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("meta", [{}, {"progressToken": 1}], ids=["JSON", "events"])
async def test_a_client_that_hangs_up_cancels_its_call(endpoint: Endpoint, revision: str, meta: dict[str, Any]) -> None:
    """MCP 2026-07-28 basic/transports: a disconnect is a cancellation."""
    endpoint.caller.released.clear()
    endpoint.caller.telling = [(1, None, None)]
    async with await Client.connect(endpoint.port) as client:
        client.writer.write(said(revision, "tools/call", run(), meta=meta))
        await endpoint.caller.entered.wait()
        if meta:
            await client.head()
            assert b"notifications/progress" in await client.chunk()
    await endpoint.caller.cancelled.wait()


async def test_a_client_that_hangs_up_cancels_what_a_batch_runs(endpoint: Endpoint) -> None:
    endpoint.caller.released.clear()
    async with await Client.connect(endpoint.port) as client:
        client.writer.write(posted(batch(message("tools/call", run(), "1"), message("tools/call", run(), "2"))))
        await endpoint.caller.entered.wait()
    await endpoint.caller.cancelled.wait()
    assert len(endpoint.sent) == 1


@contextlib.asynccontextmanager
async def under_way(endpoint: Endpoint, session: str, id_text: str = "7", **more: Any) -> AsyncIterator[Client]:
    """A call that waits, and the connection that waits for it."""
    endpoint.caller.released.clear()
    async with await Client.connect(endpoint.port) as client:
        lines = (f"Mcp-Session-Id: {session}",) if session else ()
        client.writer.write(said("2025-11-25", "tools/call", run(), *lines, id_text=id_text, **more))
        await endpoint.caller.entered.wait()
        yield client


async def cancelled(endpoint: Endpoint, session: str, id_value: Any = 7, access_key: str = KEY) -> None:
    """Tell that a request is cancelled."""
    lines = (f"Mcp-Session-Id: {session}",) if session else ()
    told = {"requestId": id_value, "reason": "no more"}
    data = said("2025-11-25", "notifications/cancelled", told, *lines, id_text=None, key=access_key)
    answer = await endpoint.ask(data)
    assert (answer.status, answer.body) == (202, b"")


IDS = [("7", 7), ('"a"', "a"), ('"7"', "7"), ("12345678901234567890123", 12345678901234567890123)]


@pytest.mark.parametrize(("id_text", "id_value"), IDS)
async def test_a_client_cancels_its_request_by_a_notification(endpoint: Endpoint, id_text: str, id_value: Any) -> None:
    """MCP 2025-11-25 basic/utilities/cancellation; -32800 as the official SDK answers."""
    session = await endpoint.session()
    async with under_way(endpoint, session, id_text) as client:
        await cancelled(endpoint, session, id_value)
        answer = await client.answer()

    assert failure(answer) == (200, -32800, id_value)
    assert endpoint.caller.cancelled.is_set()


@pytest.mark.parametrize("id_text", ['"\u00e9"', '"\\u0061"'])
async def test_an_id_is_the_same_however_it_is_spelled(endpoint: Endpoint, id_text: str) -> None:
    session = await endpoint.session()
    async with under_way(endpoint, session, id_text) as client:
        await cancelled(endpoint, session, json.loads(id_text))
        endpoint.caller.released.set()
        answer = await client.answer()

    assert failure(answer) == (200, -32800, json.loads(id_text))


async def test_a_cancelled_request_ends_its_events(endpoint: Endpoint) -> None:
    endpoint.caller.telling = [(1, None, None)]
    session = await endpoint.session()
    async with under_way(endpoint, session, meta={"progressToken": 1}) as client:
        await cancelled(endpoint, session)
        answer = await client.answer()

    told, response = events(answer.body)
    assert (told["method"], response["id"], response["error"]["code"]) == ("notifications/progress", 7, -32800)


async def test_a_cancelled_request_leaves_the_rest_of_its_batch(endpoint: Endpoint) -> None:
    session = await endpoint.session()
    endpoint.caller.released.clear()
    async with await Client.connect(endpoint.port) as client:
        body = batch(message("tools/call", run(), "7"), message("ping", id_text="8"))
        client.writer.write(posted(body, f"Mcp-Session-Id: {session}"))
        await endpoint.caller.entered.wait()
        await cancelled(endpoint, session)
        answer = await client.answer()

    assert [(one["id"], one.get("error", {}).get("code")) for one in answer.json] == [(7, -32800), (8, None)]


@pytest.mark.parametrize(
    ("changes", "id_value"),
    [
        ({"session": "another"}, 7),
        ({"session": ""}, 7),
        ({"access_key": OTHER_KEY}, 7),
        ({}, 8),
        ({}, "7"),
        ({}, None),
        ({}, [7]),
    ],
)
async def test_nobody_else_cancels_it(endpoint: Endpoint, changes: dict[str, str], id_value: Any) -> None:
    session = await endpoint.session()
    async with under_way(endpoint, session) as client:
        told: dict[str, Any] = {"session": session, "id_value": id_value, **changes}
        await cancelled(endpoint, **told)
        endpoint.caller.released.set()
        answer = await client.answer()

    assert answer.json["result"]["content"] == DONE["content"]
    assert not endpoint.caller.cancelled.is_set()


async def test_a_request_without_a_session_is_not_cancelled_by_another_without_one(endpoint: Endpoint) -> None:
    async with under_way(endpoint, "") as client:
        await cancelled(endpoint, "")
        endpoint.caller.released.set()
        assert (await client.answer()).json["result"]["content"] == DONE["content"]


# execute_tool


@pytest.mark.parametrize("revision", ALL)
async def test_a_refused_tool_is_unknown_and_is_not_called(endpoint: Endpoint, revision: str) -> None:
    """DESIGN 6: a refusal is a result with isError, before any network call."""
    answer = await endpoint.ask(said(revision, "tools/call", run("danger")))

    assert (error_text(answer), endpoint.sent) == ("Unknown tool: danger", [])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("/hidden", UNKNOWN_SERVER),
        ("srv-2", UNKNOWN_SERVER),
        ("/nowhere", UNKNOWN_SERVER),
        ("/broken", "The policy of this server cannot be read, so nothing was run."),
    ],
)
async def test_a_server_that_cannot_be_reached_is_said_and_nothing_is_called(
    endpoint: Endpoint, name: str, text: str
) -> None:
    answer = await endpoint.ask(said(MODERN, "tools/call", run(server=name)))

    assert (error_text(answer), endpoint.sent) == (text, [])


@pytest.mark.parametrize("name", ["/lab", "lab", "srv-1"])
async def test_a_server_has_three_names(endpoint: Endpoint, name: str) -> None:
    await endpoint.ask(said(MODERN, "tools/call", run(server=name)))

    assert endpoint.sent == [("safe", {"nonce": "1"})]


@pytest.mark.parametrize("name", ["execute_tool", "discover_servers", "admin_set_tool"])
async def test_nothing_runs_itself(endpoint: Endpoint, name: str) -> None:
    answer = await endpoint.ask(said("2025-11-25", "tools/call", run(name)))

    assert (name in error_text(answer), endpoint.sent) == (True, [])


@pytest.mark.parametrize(
    ("params", "member"),
    [
        ({"name": "execute_tool"}, "server"),
        ({"name": "execute_tool", "arguments": [1]}, "arguments"),
        (run(arguments="{}"), "arguments"),
        (run(tool=5), "tool"),  # type: ignore[arg-type]
        (find(), "query"),
        (find(query="q", limit="5"), "limit"),
        (find(query="q", more=True), "more"),
    ],
)
async def test_arguments_of_the_wrong_type_name_the_member(
    endpoint: Endpoint, params: dict[str, Any], member: str
) -> None:
    answer = await endpoint.ask(said("2025-11-25", "tools/call", params))

    assert error_text(answer).startswith(f"{params['name']} was not run: {member}: ")
    assert endpoint.sent == []


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9" * 5000])
async def test_a_number_that_nobody_can_hold_is_a_result(endpoint: Endpoint, number: str) -> None:
    answer = await endpoint.ask(spelled(number))

    assert error_text(answer).startswith("execute_tool was not run: ")
    assert endpoint.sent == []


@pytest.mark.parametrize("member", ["_meta", "inputResponses"])
async def test_a_number_that_nobody_can_hold_beside_the_arguments_is_a_result(endpoint: Endpoint, member: str) -> None:
    body = message("tools/call", {**run(), member: {"n": "@"}}).replace(b'"@"', b"1e999")
    answer = await endpoint.ask(posted(body))

    assert (answer.status, endpoint.sent) == (200, [])


async def test_numbers_that_can_be_held_keep_their_value(endpoint: Endpoint) -> None:
    for number in ("12345678901234567890", "1.5", "1E2", "-0"):
        await endpoint.ask(spelled(number))

    assert [arguments["n"] for _, arguments in endpoint.sent] == [12345678901234567890, 1.5, 100.0, 0]


async def test_nesting_is_passed_on_to_a_depth_and_refused_beyond(endpoint: Endpoint) -> None:
    deep = "[" * 100 + "]" * 100
    assert "error" not in (await endpoint.ask(spelled(deep))).json
    assert endpoint.sent == [("safe", {"n": json.loads(deep)})]
    for depth in (130, 20_000):
        assert failure(await endpoint.ask(spelled("[" * depth + "]" * depth))) == (400, -32700, None)


@pytest.mark.parametrize("meta", [{}, {"progressToken": 1}], ids=["JSON", "events"])
async def test_a_downstream_that_fails_is_a_result(endpoint: Endpoint, meta: dict[str, Any]) -> None:
    endpoint.caller.outcome = DownstreamUnusable("the connection broke")
    answer = await endpoint.ask(said(MODERN, "tools/call", run(), meta=meta))
    answer = replace(answer, body=json.dumps(events(answer.body)[0]).encode()) if meta else answer

    assert error_text(answer) == "The tool gave no answer: the connection broke."


@pytest.mark.parametrize("revision", ALL)
async def test_an_authority_that_is_lost_before_the_call_is_told_by_the_callers_id(
    endpoint: Endpoint, revision: str
) -> None:
    endpoint.policies.fails_at = 2
    answer = await endpoint.ask(said(revision, "tools/call", run(), id_text='"a"'))

    assert (failure(answer), endpoint.sent) == ((503, -32603, "a"), [])


@pytest.mark.parametrize("revision", ALL)
async def test_a_tool_that_needs_more_says_so_where_that_can_be_carried(endpoint: Endpoint, revision: str) -> None:
    """MCP 2026-07-28: resultType input_required; no earlier revision has it."""
    more = {"resultType": "input_required", "inputRequests": {"a": {}}, "requestState": "s"}
    endpoint.caller.outcome = CallResult(more)
    answer = await endpoint.ask(said(revision, "tools/call", run()))

    if revision == MODERN:
        assert answer.json["result"] == more
    else:
        assert "input_required" in error_text(answer)


async def test_the_second_round_is_decided_anew_and_carries_its_answers(endpoint: Endpoint) -> None:
    """PROTOCOL 5: a tool that was switched off between two rounds is off."""
    more = {"inputResponses": {"a": {"x": 1}}, "requestState": "s"}
    await endpoint.ask(said(MODERN, "tools/call", {**run(), **more}))
    refused = await endpoint.ask(said(MODERN, "tools/call", {**run("danger"), **more}))

    assert [call.retry for _, call in endpoint.caller.calls] == [more]
    assert error_text(refused) == "Unknown tool: danger"


@pytest.mark.parametrize("revision", ALL)
async def test_an_address_for_a_person_is_carried_by_2025_11_25_alone(endpoint: Endpoint, revision: str) -> None:
    """MCP 2025-11-25 client/elicitation; retired by 2026-07-28."""
    endpoint.caller.outcome = CallError(-32042, "go there", {"elicitations": []})
    answer = await endpoint.ask(said(revision, "tools/call", run()))

    if revision == "2025-11-25":
        assert failure(answer) == (200, -32042, 7)
        assert answer.json["error"]["data"] == {"elicitations": []}
    else:
        assert "-32042" in error_text(answer)


FIELD = "X-Sluicegate-Downstream-Authorization"


async def test_a_credential_reaches_its_own_server_alone(endpoint: Endpoint) -> None:
    """DESIGN 6."""
    await endpoint.ask(said(MODERN, "tools/call", run(), f"{FIELD}: /lab Bearer a", f"{FIELD}: /other Bearer b"))
    await endpoint.ask(said(MODERN, "tools/call", run(), f"{FIELD}: /other Bearer b"))

    assert [call.authorization for _, call in endpoint.caller.calls] == ["Bearer a", None]
    assert {call.session for _, call in endpoint.caller.calls} == {key_hash(KEY)}


async def test_a_credential_for_nobody_is_refused_and_not_repeated(endpoint: Endpoint) -> None:
    answer = await endpoint.ask(said(MODERN, "tools/call", run(), f"{FIELD}: Bearer secret"))

    assert (failure(answer), endpoint.sent) == ((400, -32600, None), [])
    assert b"secret" not in answer.body


# discover_servers


@pytest.mark.parametrize("revision", ALL)
async def test_what_was_found_fits_the_schema_that_was_listed(endpoint: Endpoint, revision: str) -> None:
    """MCP server/tools: structuredContent conforms to outputSchema."""
    listed = await endpoint.ask(said(revision, "tools/list"))
    schema = listed.json["result"]["tools"][0]["outputSchema"]
    answer = await endpoint.ask(said(revision, "tools/call", find(query="anything")))
    found = answer.json["result"]["structuredContent"]

    Draft202012Validator(schema).validate(found)
    assert [(tool["tool"], tool["enabled"], tool.get("reason")) for tool in found["tools"]] == [
        ("safe", True, None),
        ("danger", False, "tool_disabled"),
    ]
    assert (found["degraded"], found["truncated"], found["tools"][1]["inputSchema"]) == (True, True, None)


async def test_a_search_that_is_not_carried_out_is_a_result(endpoint: Endpoint) -> None:
    answer = await endpoint.ask(said(MODERN, "tools/call", find(query="q", server="/nowhere")))

    assert error_text(answer) == "discover_servers was not run: there is no such server"


@pytest.mark.parametrize("revision", ALL)
async def test_an_unknown_tool_of_the_gateway_is_a_result(endpoint: Endpoint, revision: str) -> None:
    """DESIGN 6."""
    answer = await endpoint.ask(said(revision, "tools/call", {"name": "safe"}))

    assert error_text(answer) == "unknown tool: safe"


async def test_a_batch_is_bounded_since_its_answers_are_held(endpoint: Endpoint) -> None:
    many = [message("ping", id_text=str(number)) for number in range(MOST_IN_BATCH + 1)]
    refused = await endpoint.ask(posted(batch(*many)))
    taken = await endpoint.ask(posted(batch(*many[1:])))

    assert (refused.status, refused.json["error"]["code"]) == (400, -32600)
    assert (taken.status, len(taken.json)) == (200, MOST_IN_BATCH)


async def test_a_name_that_is_no_name_is_not_looked_up(endpoint: Endpoint) -> None:
    for arguments in ({"server": "x" * 201, "tool": "safe"}, {"server": "/lab", "tool": "x" * 1001}):
        call = {"name": "execute_tool", "arguments": arguments}
        assert "at most" in error_text(await endpoint.ask(posted(message("tools/call", call))))

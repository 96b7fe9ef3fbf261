"""What a client of `/proxy/{path}` gets, and what its downstream hears of it."""

import json

import pytest

from registry.credentials import key_hash
from registry.model import Scope
from tests import build
from tests.build import KEY
from tests.fake_downstream import answer, chunked
from tests.integration.conftest import Plane, running
from tests.raw_client import LIST, Client, call, post, request


def listed(*names: str, **members: object) -> bytes:
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools, **members}}).encode()


def names_in(body: bytes) -> list[str]:
    return [tool["name"] for tool in json.loads(body)["result"]["tools"]]


async def test_disabled_tool_call_is_answered_without_asking_downstream(plane: Plane) -> None:
    plane.disable("b")

    reply = await plane.ask(post(call("b")))

    assert (reply.status, reply.json) == (
        200,
        {"jsonrpc": "2.0", "id": 7, "error": {"code": -32602, "message": "Unknown tool: b"}},
    )
    assert reply.values("content-type") == ["application/json"]
    assert plane.downstream.connections == 0


async def test_an_allowed_call_arrives_with_exactly_its_bytes(plane: Plane) -> None:
    body = b' {"jsonrpc" :"2.0","id":7.0e0,"method":"x"} '.replace(b"7.0e0", b'"7"') + b"\r\n"

    reply = await plane.ask(post(body))

    assert reply.body == b'{"jsonrpc":"2.0","id":1,"result":{}}'
    assert plane.downstream.bodies == [body]


@pytest.mark.parametrize("request_id", ["7", '"7"', "-0", "123456789012345678901234567890", '"\\u00e9"'])
async def test_a_refusal_has_the_callers_id_with_its_type_and_digits(plane: Plane, request_id: str) -> None:
    plane.disable("b")

    reply = await plane.ask(post(call("b", request_id)))

    assert f'"id":{request_id},'.encode() in reply.body


async def test_a_refused_notification_is_dropped_with_202(plane: Plane) -> None:
    plane.disable("b")
    body = b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"b"}}'

    reply = await plane.ask(post(body))

    assert (reply.status, reply.body, plane.downstream.connections) == (202, b"", 0)


async def test_a_batch_with_a_refused_call_is_refused_whole(plane: Plane) -> None:
    plane.disable("b")

    reply = await plane.ask(post(b"[" + call("a", '"x"') + b"," + call("b", "2") + b"]"))

    assert [(one["id"], one["error"]["code"]) for one in reply.json] == [("x", -32600), (2, -32602)]
    assert plane.downstream.connections == 0


async def test_a_permitted_batch_passes(plane: Plane) -> None:
    body = b"[" + call("a", "1") + b" ," + call("b", "2") + b"]"

    await plane.ask(post(body))

    assert plane.downstream.bodies == [body]


async def test_a_json_list_shows_what_the_caller_may_use(plane: Plane) -> None:
    plane.disable("b")
    plane.downstream.script = answer(listed("a", "b", "c", nextCursor="p2"))

    reply = await plane.ask(post(LIST))

    assert names_in(reply.body) == ["a", "c"]
    assert reply.json["result"]["nextCursor"] == "p2"
    assert reply.values("content-length") == [str(len(reply.body))]


async def test_an_error_status_with_a_list_is_filtered_too(plane: Plane) -> None:
    plane.disable("b")
    plane.downstream.script = answer(listed("a", "b"), status="500 Oops")

    reply = await plane.ask(post(LIST))

    assert (reply.status, names_in(reply.body)) == (500, ["a"])


async def test_a_list_in_an_event_stream_is_filtered_and_its_framing_stays(plane: Plane) -> None:
    plane.disable("b")
    before = b': hello\n\nid: 1\nretry: 100\ndata: \n\ndata: {"jsonrpc":"2.0","method":"notifications/x"}\r\n\r\n'
    plane.downstream.script = chunked([before, b"id: 2\ndata: " + listed("a", "b") + b"\n\n"])

    reply = await plane.ask(post(LIST))

    kept, _, event = reply.body.partition(b"id: 2\ndata: ")
    assert kept == before
    assert names_in(event) == ["a"]
    assert event.endswith(b"\n\n")


async def test_a_get_stream_is_filtered_by_shape(plane: Plane) -> None:
    plane.disable("b")
    plane.downstream.script = chunked([b'data: {"id":99,"result":' + listed("a", "b")[38:-1] + b"}\n\n"])

    reply = await plane.ask(request("GET", "Accept: text/event-stream"))

    assert b'"a"' in reply.body
    assert b'"b"' not in reply.body


async def test_a_list_is_filtered_with_the_state_at_the_time_it_is_sent(plane: Plane) -> None:
    """DESIGN 3: not with the state when its request came."""

    async def disable_then_answer(*connection: object) -> None:
        plane.disable("b")
        await answer(listed("a", "b"))(*connection)  # type: ignore[arg-type]

    plane.downstream.script = disable_then_answer

    assert names_in((await plane.ask(post(LIST))).body) == ["a"]


async def test_nothing_later_on_a_stream_overtakes_a_held_list(plane: Plane) -> None:
    event = b'data: {"jsonrpc":"2.0","method":"notifications/later"}\n\n'
    plane.downstream.script = chunked([b"data: " + listed("a") + b"\n\n", event])
    async with await Client.connect(plane.port) as client:
        client.writer.write(post(LIST))
        await plane.downstream.until(lambda downstream: bool(downstream.received))
        plane.store.reading.clear()
        await client.head()
        plane.store.reading.set()
        body = b""
        while piece := await client.chunk():
            body += piece

    assert body == b"data: " + listed("a") + b"\n\n" + event


async def test_cache_hints_of_a_list_are_clamped(plane: Plane) -> None:
    plane.downstream.script = answer(listed("a", ttlMs=600000, cacheScope="public"))

    result = (await plane.ask(post(LIST))).json["result"]

    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


async def test_a_patch_acknowledged_before_the_last_byte_of_a_request_is_enforced_on_it(plane: Plane) -> None:
    """DESIGN 4, staleness 0."""
    owner = "sg_" + "o" * 43
    plane.store.state.keys["owner"] = build.key(id="owner", hash=key_hash(owner), scopes=frozenset(Scope))
    patch = b'{"disabledTools": ["b"]}'
    fields = ("Content-Type: application/json", f"Content-Length: {len(patch)}")
    data = post(call("b"))
    async with await Client.connect(plane.port) as client:
        client.writer.write(data[:-1])
        await client.writer.drain()
        changed = await plane.ask(request("PATCH", *fields, path="/api/v1/servers/%2Flab/tools", key=owner) + patch)
        reply = await client.ask(data[-1:])

    assert (changed.status, changed.json["disabledTools"]) == (200, ["b"])
    assert reply.json["error"]["message"] == "Unknown tool: b"
    assert plane.downstream.connections == 0


async def test_a_key_without_write_sees_and_runs_only_read_only_tools(plane: Plane) -> None:
    plane.store.state.keys["key-1"] = build.key(scopes=frozenset({Scope.MCP, Scope.READ}))
    plane.policy(read_only_tools=frozenset({"a"}))
    plane.downstream.script = answer(listed("a", "b"))

    assert names_in((await plane.ask(post(LIST))).body) == ["a"]
    assert (await plane.ask(post(call("b")))).json["error"]["code"] == -32602
    assert len(plane.downstream.received) == 1


ORDER = [
    ("a foreign host", 421, request("POST", path="/proxy/LAB", key=None).replace(b"localhost", b"evil.example")),
    ("a foreign origin", 403, request("POST", "Origin: http://evil.example", path="/proxy/LAB", key=None)),
    ("no server's path", 404, request("PUT", "Content-Length: 99999999", path="/proxy/LAB", key=None)),
    ("a method", 405, request("PUT", "Content-Length: 99999999", key=None)),
    ("the size", 413, request("POST", "Content-Length: 99999999", key=None)),
    ("no key", 401, post(b"not json", key=None)),
    ("a wrong key", 401, post(b"not json", key="sg_" + "x" * 43)),
    ("an unknown server", 404, post(b"not json", path="/proxy/nobody")),
    ("what cannot be read", 400, post(b"not json")),
]


@pytest.mark.parametrize(("status", "data"), [row[1:] for row in ORDER], ids=[row[0] for row in ORDER])
async def test_the_checks_come_in_their_order(plane: Plane, status: int, data: bytes) -> None:
    """DESIGN 1; each request would fail every later check too."""
    reply = await plane.ask(data)

    assert (reply.status, plane.downstream.connections) == (status, 0)
    assert "application/json" in reply.values("content-type")[0]


async def test_a_key_without_mcp_is_403_and_says_what_is_missing(plane: Plane) -> None:
    plane.store.state.keys["key-1"] = build.key(scopes=frozenset({Scope.READ}))

    reply = await plane.ask(post(b"not json"))

    assert (reply.status, reply.json["required_scope"]) == (403, "mcp")


async def test_a_chunked_body_over_the_cap_is_413(plane: Plane) -> None:
    async with await Client.connect(plane.port) as client:
        client.writer.write(request("POST", "Transfer-Encoding: chunked"))
        piece = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
        client.writer.write(piece * 5)
        reply = await client.answer()

    assert (reply.status, plane.downstream.connections) == (413, 0)


@pytest.mark.parametrize("path", ["/proxy/lab", "/proxy/lab/", "/proxy/lab/mcp"])
async def test_the_spellings_of_a_path_mean_one_server(plane: Plane, path: str) -> None:
    assert (await plane.ask(post(call("a"), path=path))).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/proxy/lab//",
        "/proxy/Lab",
        "/proxy/l%61b",
        "/proxy/./lab",
        "/proxy/x/../lab",
        "/proxy/lab/mcp/",
        "/proxy/lab;a",
    ],
)
async def test_no_other_spelling_means_it(plane: Plane, path: str) -> None:
    reply = await plane.ask(post(call("a"), path=path))

    assert (reply.status, plane.downstream.connections) == (404, 0)


async def test_the_clients_query_is_appended_undecoded(plane: Plane) -> None:
    await plane.ask(post(call("a"), path="/proxy/lab?x=%27a%41&y"))

    assert plane.downstream.received[0].request_line == "POST /mcp?x=%27a%41&y HTTP/1.1"


async def test_a_key_in_the_address_is_refused(plane: Plane) -> None:
    reply = await plane.ask(post(call("a"), path=f"/proxy/lab?api_key={build.KEY}"))

    assert (reply.status, plane.downstream.connections) == (400, 0)


async def test_our_credential_never_reaches_the_downstream(plane: Plane) -> None:
    fields = [f"X-Sluicegate-Key: {build.KEY}", f"X-Other: Bearer {build.KEY}", "Cookie: sid=1"]

    await plane.ask(post(call("a"), *fields))

    head = plane.downstream.received[0].head
    assert build.KEY.encode() not in head
    assert b"sid=1" not in head


async def test_an_authorization_that_is_not_ours_passes(plane: Plane) -> None:
    await plane.ask(post(call("a"), f"X-Sluicegate-Key: {build.KEY}", "Authorization: Bearer theirs", key=None))

    assert plane.downstream.received[0].values("authorization") == ["Bearer theirs"]


async def test_two_keys_that_differ_are_400(plane: Plane) -> None:
    reply = await plane.ask(post(call("a"), "X-Sluicegate-Key: sg_" + "y" * 43))

    assert (reply.status, plane.downstream.connections) == (400, 0)


async def test_fields_pass_once_and_hop_by_hop_fields_do_not(plane: Plane) -> None:
    plane.downstream.script = answer(
        b"{}", "application/json", "200 OK", "Mcp-Session-Id: s1", "X-Custom: 1", "Keep-Alive: x", "Set-Cookie: a=b"
    )

    reply = await plane.ask(post(call("a"), "Mcp-Session-Id: s0", "Connection: X-Drop", "X-Drop: 1", "traceparent: t"))

    sent = plane.downstream.received[0]
    assert (sent.values("mcp-session-id"), sent.values("traceparent"), sent.values("x-drop")) == (["s0"], ["t"], [])
    assert (sent.values("host"), sent.values("accept-encoding")) == (
        [f"127.0.0.1:{plane.downstream.port}"],
        ["identity"],
    )
    assert (reply.values("mcp-session-id"), reply.values("x-custom")) == (["s1"], ["1"])
    assert (reply.values("keep-alive"), reply.values("set-cookie")) == ([], [])
    assert reply.values("x-content-type-options") == ["nosniff"]


async def test_an_empty_202_stays_empty_and_the_connection_goes_on(plane: Plane) -> None:
    plane.downstream.script = answer(b"", "", "202 Accepted")
    async with await Client.connect(plane.port) as client:
        for _ in range(2):
            reply = await client.ask(post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}'))
            assert (reply.status, reply.body, reply.values("content-type")) == (202, b"", [])


async def test_pipelined_requests_are_each_judged(plane: Plane) -> None:
    plane.disable("b")
    async with await Client.connect(plane.port) as client:
        client.writer.write(post(call("a")) + post(call("b")))
        first, second = await client.answer(), await client.answer()

    assert (first.status, second.json["error"]["code"]) == (200, -32602)
    assert len(plane.downstream.received) == 1


async def test_html_of_a_downstream_goes_out_as_text(plane: Plane) -> None:
    plane.downstream.script = answer(b"<script>", "text/html", "404 Not Found")

    reply = await plane.ask(post(call("a")))

    assert (reply.status, reply.body) == (404, b"<script>")
    assert reply.values("content-type")[0].startswith("text/plain")
    assert reply.values("content-security-policy") == ["sandbox"]


async def test_a_field_goes_on_whole_or_not_at_all(plane: Plane) -> None:
    utf8, latin1 = (
        post(call("a")).replace(b"Host:", b"X-Name: " + name + b"\r\nHost:") for name in (b"\xc3\xa9", b"\xe9")
    )

    assert (await plane.ask(utf8)).status == 200
    assert (await plane.ask(latin1)).status == 400
    assert [request.values("x-name") for request in plane.downstream.received] == [["\xc3\xa9"]]


async def test_a_request_that_is_no_http_is_not_quoted_in_the_log(
    plane: Plane, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    broken = request("POST", "X-Secret: their-token\x01")

    assert (await plane.ask(broken)).status == 400
    assert "request.unreadable" in caplog.messages
    assert "their-token" not in caplog.text


async def test_a_static_credential_is_sent_to_its_server_unless_the_client_has_one_of_its_own(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICEGATE_CREDENTIAL_LAB", "static")
    static = (("Authorization", "Bearer ${SLUICEGATE_CREDENTIAL_LAB}"), ("X-Team", "${SLUICEGATE_CREDENTIAL_LAB}"))
    async with running(plane.downstream) as gate:
        gate.policy(credentials=static)
        await gate.ask(post(call("a")))
        own = ("Authorization: Bearer theirs", f"X-Sluicegate-Key: {KEY}")
        await gate.ask(post(call("a"), *own, key=None))
        gate.policy(credentials=(("Authorization", "${SLUICEGATE_CREDENTIAL_NONE}"),))
        refused = await gate.ask(post(call("a")))
    first, second = plane.downstream.received
    assert (first.values("authorization"), first.values("x-team")) == (["Bearer static"], ["static"])
    assert (second.values("authorization"), second.values("x-team")) == (["Bearer theirs"], ["static"])
    assert (refused.status, b"static" in refused.body) == (502, False)


async def test_a_clients_credential_for_the_gateway_stays_here(plane: Plane) -> None:
    await plane.ask(post(call("a"), "X-Sluicegate-Downstream-Authorization: /other Bearer z"))
    (received,) = plane.downstream.received
    assert not [name for name, _ in received.fields if name.startswith("x-sluicegate")]

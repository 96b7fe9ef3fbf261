"""`Via`, and requests that come back to where they were (RFC 9110 7.6.3, RFC 5842 7.2)."""

import re

import pytest

from config.serve import listen, serving
from config.settings import Settings
from config.wiring import build
from tests.fake_downstream import FakeDownstream, answer
from tests.integration.conftest import Plane
from tests.raw_client import LIST, ask, call, post, request

OURS = r"1\.1 sluicegate-[0-9a-f]{12}"


def executed() -> bytes:
    """A call of a tool through the gateway."""
    wanted = b'{"server":"/lab","tool":"a","arguments":{}}'
    return call("execute_tool").replace(b'"arguments": {}', b'"arguments": ' + wanted)


async def own_via(plane: Plane) -> str:
    """Our line as a downstream sees it."""
    await plane.ask(post(call("a")))
    [line] = plane.downstream.received[-1].values("via")
    return line


async def test_a_forwarded_request_names_us_once_and_its_answer_does_not(plane: Plane) -> None:
    reply = await plane.ask(post(call("a")))

    assert re.fullmatch(OURS, await own_via(plane))
    assert reply.values("via") == []


async def test_the_via_of_others_stays_as_it_came_before_ours(plane: Plane) -> None:
    theirs = ["1.0 fred, 1.1 p.example.net (Apache/1.1)", "HTTP/2.0  front"]

    await plane.ask(post(call("a"), *(f"Via: {line}" for line in theirs)))

    assert plane.downstream.received[-1].values("via") == [*theirs, await own_via(plane)]


async def test_a_request_by_http_1_0_is_told_as_such(plane: Plane) -> None:
    """RFC 9110 7.6.3: the protocol is that of the message as it was received."""
    await plane.ask(post(call("a")).replace(b"HTTP/1.1", b"HTTP/1.0", 1))

    assert plane.downstream.received[-1].values("via") == [(await own_via(plane)).replace("1.1", "1.0", 1)]


@pytest.mark.parametrize(
    ("data", "path", "id_of_it"),
    [
        (call("a", '"x"'), "/proxy/lab", "x"),
        (b"[" + LIST + b"," + LIST + b"]", "/proxy/lab", None),
        (b"no JSON", "/proxy/lab", None),
        (call("a", "7"), "/proxy/unknown", 7),
        (call("execute_tool", '"y"'), "/mcp", "y"),
    ],
)
async def test_a_request_that_was_here_before_is_508_with_the_callers_id(
    plane: Plane, data: bytes, path: str, id_of_it: object
) -> None:
    via = await own_via(plane)
    before = plane.store.reads

    reply = await plane.ask(post(data, "Via: 1.1 front", f"Via: 1.0 a,{via.upper()}, 1.1 z", path=path))

    assert (reply.status, reply.json["id"], reply.json["error"]["code"]) == (508, id_of_it, -32603)
    assert len(plane.downstream.received) == 1
    assert plane.store.reads == before


async def test_a_stream_that_was_here_before_is_508(plane: Plane) -> None:
    assert (await plane.ask(request("GET", f"Via: {await own_via(plane)}"))).status == 508


async def test_another_deployment_is_no_loop(plane: Plane) -> None:
    other = (await own_via(plane))[:-1]

    assert (await plane.ask(post(call("a"), f"Via: {other}", f"Via: {other}zz"))).status == 200


async def test_a_server_whose_address_is_ours_is_a_loop(plane: Plane) -> None:
    plane.policy(url=f"http://127.0.0.1:{plane.port}/proxy/lab")

    reply = await plane.ask(post(call("a", '"the id"')))

    assert (reply.status, reply.json["id"], reply.json["error"]["code"]) == (508, "the id", -32603)
    assert plane.downstream.connections == 0


async def test_a_loop_through_execute_tool_is_seen(plane: Plane) -> None:
    plane.policy(url=f"http://127.0.0.1:{plane.port}/proxy/lab")
    wanted = executed()

    reply = await plane.ask(post(wanted, "MCP-Protocol-Version: 2025-11-25", path="/mcp"))

    assert (reply.status, reply.json["result"]["isError"]) == (200, True)
    assert "508" in reply.json["result"]["content"][0]["text"]
    assert plane.downstream.connections == 0


async def test_what_the_gateway_calls_is_told_who_calls(plane: Plane) -> None:
    via = await own_via(plane)
    plane.downstream.received.clear()
    plane.downstream.script = answer(b"", "", "500 Internal Server Error")
    wanted = executed()

    await plane.ask(post(wanted, "MCP-Protocol-Version: 2025-11-25", path="/mcp"))

    assert {tuple(request.values("via")) for request in plane.downstream.received} == {(via,)}


async def test_a_loop_through_another_replica_is_seen(plane: Plane, downstream: FakeDownstream) -> None:
    """What makes them replicas is the store that they share, not an address or a setting."""
    settings = Settings.model_validate({"listen": "127.0.0.1:0", "embeddings": "none"})
    replica, listener = build(settings, plane.store), listen(settings.listen)
    async with serving(replica.web, listener, grace_s=1):
        port = listener.getsockname()[1]
        plane.policy(url=f"http://127.0.0.1:{port}/proxy/lab")

        for entry in (plane.port, port):
            assert (await ask(entry, post(call("a")))).status == 508
    assert downstream.connections == 0

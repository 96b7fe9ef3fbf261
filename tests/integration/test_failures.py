"""What goes wrong behind us, and what the client hears of it. Never 400, 404 or 405: those speak of versions."""

import asyncio
import gzip
import socket
from dataclasses import replace
from typing import Any

import pytest

from registry.api import frame
from registry.model import Passing
from tests.fake_downstream import Connection, FakeDownstream, Received, answer, chunk, head
from tests.integration.conftest import Plane, running
from tests.raw_client import LIST, Answer, call, post, request

CALL = post(call("a", '"the id"'))


def error_of(reply: Answer) -> tuple[int, Any, int]:
    return reply.status, reply.json["id"], reply.json["error"]["code"]


async def test_a_dead_downstream_is_502_with_the_callers_id(plane: Plane) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    plane.policy(url=f"http://127.0.0.1:{port}/mcp")

    assert error_of(await plane.ask(CALL)) == (502, "the id", -32603)


async def test_a_downstream_that_gives_no_answer_in_time_is_504(downstream: FakeDownstream) -> None:
    async def silence(_request: Received, _connection: Connection) -> None:
        await asyncio.Event().wait()

    downstream.script = silence
    async with running(downstream, downstream_timeout_s=0.2) as plane:
        assert error_of(await plane.ask(CALL)) == (504, "the id", -32603)
    await downstream.until(lambda downstream: not downstream.open_connections)


@pytest.mark.parametrize("lever", ["unavailable", "frozen"])
async def test_a_store_that_is_gone_is_503_with_the_callers_id(downstream: FakeDownstream, lever: str) -> None:
    async with running(downstream, policy_timeout_s=0.2) as plane:
        if lever == "frozen":
            plane.store.reading.clear()
        plane.store.available = False
        assert error_of(await plane.ask(CALL)) == (503, "the id", -32603)
        assert downstream.connections == 0

        plane.store.available = True
        plane.store.reading.set()
        assert (await plane.ask(CALL)).status == 200


async def test_a_store_that_goes_away_before_the_list_leaves_gives_none(plane: Plane) -> None:
    async def lose_store(request: Received, connection: Connection) -> None:
        plane.store.available = False
        await answer(b'{"id":1,"result":{"tools":[{"name":"b"}]}}')(request, connection)

    plane.downstream.script = lose_store

    reply = await plane.ask(post(LIST))

    assert (reply.status, b'"b"' in reply.body) == (503, False)


async def transfer_coded(_request: Received, connection: Connection) -> None:
    fields = b"Content-Type: application/json\r\nTransfer-Encoding: gzip, chunked"
    connection.write(b"HTTP/1.1 200 OK\r\n" + fields + b"\r\n\r\n" + chunk(gzip.compress(b"{}")) + b"0\r\n\r\n")


UNUSABLE = {
    "a redirect": answer(b"", "", "307 Temporary Redirect", "Location: /mcp/"),
    "a redirect elsewhere": answer(b"", "", "302 Found", "Location: http://evil.example/"),
    "a coding nobody asked for": answer(b"\x1f\x8b", "application/json", "200 OK", "Content-Encoding: gzip"),
    "a list that is not JSON": answer(b'{"result":{"tools":[{"name":"b"}]'),
    "a list in UTF-16": answer('{"result":{"tools":[{"name":"b"}]}}'.encode("utf-16")),
    "a list in another charset": answer(b"{}", "application/json; charset=utf-16"),
    "a stream in another charset": answer(b"", "text/event-stream; charset=utf-7"),
    "a list under a foreign type": answer(b'{"result":{"tools":[{"name":"b"}]', "text/html"),
    "a duplicate member": answer(b'{"result":{"tools":[]},"result":{"tools":[{"name":"b"}]}}'),
    "a case-varied member": answer(b'{"Result":{"tools":[{"name":"b"}]}}'),
    "a tool without a name": answer(b'{"result":{"tools":[{"Name":"b"}]}}'),
    "a field that is not UTF-8": answer(b"{}", "application/json", "200 OK", "Mcp-Session-Id: \xe9"),
    "a part of a list": answer(b'"name":"b"}]}}', "application/json", "206 Partial Content"),
    "a field with a control character": answer(b"{}", "application/json", "200 OK", "Mcp-Session-Id: a\x01b"),
    "a transfer coding nobody asked for": transfer_coded,
    "no HTTP": None,
}


async def no_http(_request: Received, connection: Connection) -> None:
    connection.write(b"SSH-2.0-OpenSSH\r\n\r\n")
    connection.close()


@pytest.mark.parametrize("kind", ["a field with a control character", "a transfer coding nobody asked for"])
async def test_an_answer_to_a_call_that_cannot_be_passed_on_is_502(plane: Plane, kind: str) -> None:
    """Its body is streamed, so this must be known before the first byte leaves."""
    plane.downstream.script = UNUSABLE[kind] or no_http

    assert error_of(await plane.ask(CALL)) == (502, "the id", -32603)


@pytest.mark.parametrize("kind", UNUSABLE)
async def test_an_answer_that_cannot_be_passed_on_is_502(plane: Plane, kind: str) -> None:
    plane.downstream.script = UNUSABLE[kind] or no_http

    reply = await plane.ask(post(LIST))

    assert error_of(reply) == (502, 1, -32603)
    assert b'"b"' not in reply.body


async def test_an_answer_too_large_to_be_held_is_502(downstream: FakeDownstream) -> None:
    downstream.script = answer(b'{"padding":"' + b"x" * 2000 + b'"}')
    async with running(downstream, max_event_bytes=1024) as plane:
        assert (await plane.ask(post(LIST))).status == 502
        assert (await plane.ask(CALL)).status == 200


async def test_an_endless_event_cuts_the_stream(downstream: FakeDownstream) -> None:
    async def endless(_request: Received, connection: Connection) -> None:
        connection.write(head() + b"7d0\r\ndata: " + b"x" * (2000 - 6) + b"\r\n")
        await asyncio.Event().wait()

    downstream.script = endless
    async with running(downstream, max_event_bytes=1024) as plane:
        reply = await plane.ask(CALL)
    assert (reply.body, reply.is_whole) == (b"", False)


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_no_request_is_sent_twice(plane: Plane, method: str) -> None:
    """A connection from the pool that ends without an answer tells nothing of whether the request ran."""
    await plane.ask(CALL)

    async def hang_up(_request: Received, connection: Connection) -> None:
        connection.close()

    plane.downstream.script = hang_up
    plane.downstream.received.clear()

    reply = await plane.ask(CALL if method == "POST" else request(method))

    assert reply.status == 502
    assert len(plane.downstream.received) == 1


async def test_a_policy_that_cannot_be_read_refuses_its_server_and_says_so(plane: Plane) -> None:
    plane.policy(fault="registryDisabledTools is not a list of names")

    reply = await plane.ask(CALL)

    assert error_of(reply) == (503, "the id", -32603)
    assert plane.downstream.connections == 0


async def test_two_servers_under_one_path_are_both_refused(plane: Plane) -> None:
    server = plane.store.state.servers["srv-1"]
    plane.store.state.servers["srv-2"] = replace(server, id="srv-2")

    assert (await plane.ask(CALL)).status == 503


async def test_a_body_that_does_not_arrive_in_time_is_408(downstream: FakeDownstream) -> None:
    async with running(downstream, body_timeout_s=0.2) as plane:
        assert (await plane.ask(CALL[:-1])).status == 408


async def test_a_body_of_the_api_that_does_not_arrive_in_time_is_408(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame, "BODY_TIMEOUT_S", 0.2)

    reply = await plane.ask(request("POST", "Content-Length: 10", path="/api/v1/keys"))

    assert (reply.status, reply.json["code"]) == (408, "body_timeout")


async def test_a_name_look_up_that_hangs_is_bounded_like_a_connection(
    downstream: FakeDownstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_arguments: object, **_options: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", never)
    async with running(downstream, connect_timeout_s=0.2) as plane:
        plane.policy(url="http://downstream.example/mcp")

        assert error_of(await plane.ask(CALL)) == (502, "the id", -32603)


async def test_a_redirect_to_the_same_endpoint_with_another_query_leads_back_to_us(plane: Plane) -> None:
    plane.downstream.script = answer(b"", "", "307 Temporary Redirect", "Location: ?page=2")

    reply = await plane.ask(CALL)

    assert (reply.status, reply.values("location")) == (307, ["/proxy/lab?page=2"])
    assert plane.downstream.connections == 1, "and is not followed"


@pytest.mark.parametrize("passes", [True, False])
async def test_cookies_pass_both_ways_where_the_servers_setting_says_so(plane: Plane, passes: bool) -> None:
    plane.policy(passing=Passing(passes_cookies=passes))
    plane.downstream.script = answer(b"{}", "application/json", "200 OK", "Set-Cookie: a=1; Domain=x; Path=/")

    reply = await plane.ask(post(call("a", "7"), "Cookie: b=2; sluicegate_console=x"))

    (received,) = plane.downstream.received
    assert received.values("cookie") == (["b=2"] if passes else [])
    assert reply.values("set-cookie") == (["a=1; Path=/proxy/lab"] if passes else [])


async def test_a_server_has_a_timeout_and_a_list_time_of_its_own(plane: Plane) -> None:
    async def silence(_request: Received, _connection: Connection) -> None:
        await asyncio.Event().wait()

    plane.policy(passing=Passing(list_ttl_ms=60_000, downstream_timeout_s=0.2))
    plane.downstream.script = answer(b'{"id":1,"result":{"tools":[],"ttlMs":90000}}')
    assert (await plane.ask(post(LIST))).json["result"]["ttlMs"] == 60_000
    plane.downstream.script = silence
    assert error_of(await plane.ask(CALL)) == (504, "the id", -32603)


async def test_a_list_that_stops_in_the_middle_is_504_and_nothing_of_it_leaves(plane: Plane) -> None:
    async def half(_request: Received, connection: Connection) -> None:
        connection.write(head("application/json") + chunk(b'{"id":1,"result":{"tools":[{"name":"b"}'))
        await asyncio.Event().wait()

    plane.policy(passing=Passing(downstream_timeout_s=0.2))
    plane.downstream.script = half
    reply = await plane.ask(post(LIST))

    assert (reply.status, b'"b"' in reply.body) == (504, False)
    await plane.downstream.until(lambda downstream: not downstream.open_connections)

"""Answers that take their time: event by event, no faster than the client, and ended from either side."""

import asyncio
import logging
import socket
import struct
from collections.abc import AsyncGenerator

import pytest

from proxy.transport.relay import until
from tests.fake_downstream import Connection, Received, chunk, head
from tests.integration.conftest import Plane
from tests.raw_client import LIST, Client, call, post, request

EVENT = b'data: {"jsonrpc":"2.0","method":"notifications/progress"}\n\n'


async def for_ever() -> None:
    await asyncio.Event().wait()


async def one_event_then_silence(_request: Received, connection: Connection) -> None:
    connection.write(head() + chunk(EVENT))
    await for_ever()


@pytest.mark.parametrize("data", [post(call("a")), request("GET", "Accept: text/event-stream")], ids=["POST", "GET"])
async def test_an_event_arrives_while_its_stream_goes_on(plane: Plane, data: bytes) -> None:
    plane.downstream.script = one_event_then_silence
    async with await Client.connect(plane.port) as client:
        client.writer.write(data)

        assert (await client.head())[0] == 200
        assert await client.chunk() == EVENT


async def test_a_comment_arrives_while_its_stream_goes_on(plane: Plane) -> None:
    async def keep_alive(_request: Received, connection: Connection) -> None:
        connection.write(head() + chunk(b": ping\n"))
        await for_ever()

    plane.downstream.script = keep_alive
    async with await Client.connect(plane.port) as client:
        client.writer.write(request("GET"))
        await client.head()

        assert await client.chunk() == b": ping\n"


@pytest.mark.parametrize("data", [post(call("a")), request("GET")], ids=["POST", "GET"])
@pytest.mark.parametrize("is_begun", [True, False], ids=["in the middle", "before the head"])
async def test_a_client_that_goes_away_ends_the_connection_downstream(
    plane: Plane, data: bytes, is_begun: bool
) -> None:
    """MCP 2026-07-28: a disconnect is a cancellation."""

    async def silence(_request: Received, _connection: Connection) -> None:
        await for_ever()

    plane.downstream.script = one_event_then_silence if is_begun else silence
    async with await Client.connect(plane.port) as client:
        client.writer.write(data)
        await plane.downstream.until(lambda downstream: bool(downstream.received))
        if is_begun:
            await client.head()

    await plane.downstream.until(lambda downstream: not downstream.open_connections)


async def test_a_client_that_resets_its_connection_is_no_error(plane: Plane, caplog: pytest.LogCaptureFixture) -> None:
    """A client may go away at any time, also while we write to it; nobody has to look at that."""

    async def flood(_request: Received, connection: Connection) -> None:
        connection.write(head())
        while True:
            connection.write(chunk(b": " + b"x" * 65_000 + b"\n"))
            await connection.drain()
            await asyncio.sleep(0)  # lets the end of the connection be heard; nothing waits for it

    plane.downstream.script = flood
    for _ in range(10):
        async with await Client.connect(plane.port) as client:
            client.writer.write(post(call("a")))
            await client.head()
            reset_at_once = struct.pack("ii", 1, 0)
            client.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset_at_once)
        await plane.downstream.until(lambda downstream: not downstream.open_connections)

    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize(
    "promise",
    [b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{}", head() + chunk(EVENT)],
    ids=["Content-Length", "chunked"],
)
async def test_an_answer_cut_short_is_cut_short_for_the_client(plane: Plane, promise: bytes) -> None:
    async def half(_request: Received, connection: Connection) -> None:
        connection.write(promise)
        connection.close()

    plane.downstream.script = half

    reply = await plane.ask(post(call("a")))

    assert not reply.is_whole
    assert reply.body in promise


async def test_half_a_list_then_the_end_gives_none_of_it(plane: Plane) -> None:
    async def half(_request: Received, connection: Connection) -> None:
        connection.write(head() + chunk(EVENT) + chunk(b'data: {"id":1,"result":{"tools":[{"name":"b"'))
        connection.close()

    plane.disable("b")
    plane.downstream.script = half

    reply = await plane.ask(post(LIST))

    assert (reply.body, reply.is_whole) == (EVENT, False)


async def test_a_list_that_cannot_be_read_cuts_the_stream(plane: Plane) -> None:
    async def unreadable(_request: Received, connection: Connection) -> None:
        connection.write(head() + chunk(EVENT) + chunk(b'data: {"result":{"tools":[{"name":"b"}]}\n\n') + b"0\r\n\r\n")

    plane.downstream.script = unreadable

    reply = await plane.ask(post(LIST))

    assert (reply.body, reply.is_whole) == (EVENT, False)


async def test_a_caller_that_lost_its_access_gets_no_list(plane: Plane) -> None:
    async def lose_access(_request: Received, connection: Connection) -> None:
        plane.policy(enabled=False)
        connection.write(head() + chunk(EVENT) + chunk(b'data: {"result":{"tools":[]}}\n\n') + b"0\r\n\r\n")

    plane.downstream.script = lose_access

    reply = await plane.ask(post(LIST))

    assert (reply.body, reply.is_whole) == (EVENT, False)


async def test_a_slow_client_slows_the_downstream(plane: Plane) -> None:
    sent = 0
    is_stuck = asyncio.Event()

    async def flood(_request: Received, connection: Connection) -> None:
        nonlocal sent
        connection.write(head())
        while True:
            connection.write(chunk(b": " + b"x" * 65_000 + b"\n"))
            sent += 65_000
            drained = asyncio.ensure_future(connection.drain())
            done, _ = await asyncio.wait({drained}, timeout=0.5)  # nothing moved for so long: it is stuck
            if not done:
                drained.cancel()
                is_stuck.set()
                return

    plane.downstream.script = flood
    async with await Client.connect(plane.port) as client:
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        client.writer.write(post(call("a")))
        await is_stuck.wait()

    assert sent < 40_000_000  # the buffers of four sockets, and nothing in us that grows


LISTEN = b'{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}'


@pytest.mark.parametrize("data", [request("GET"), post(LISTEN)], ids=["GET", "listen"])
async def test_idle_streams_end_when_the_service_does(plane: Plane, data: bytes) -> None:
    plane.downstream.script = one_event_then_silence
    async with await Client.connect(plane.port) as client:
        client.writer.write(data)
        await client.head()
        await client.chunk()
        await plane.app.shutdown()

        assert await client.chunk() == b""


async def test_until_ends_at_its_signal_and_lets_go_of_what_it_waited_for() -> None:
    end, is_closed = asyncio.Event(), asyncio.Event()

    async def silent() -> AsyncGenerator[bytes, None]:
        try:
            yield b"one"
            await for_ever()
        finally:
            is_closed.set()

    got = []
    async for piece in until(end, silent()):
        got.append(piece)
        end.set()

    await is_closed.wait()
    assert got == [b"one"]


async def test_a_cut_answer_of_http_1_0_ends_in_an_error_since_a_mere_end_would_look_whole(plane: Plane) -> None:
    async def unreadable(_request: Received, connection: Connection) -> None:
        connection.write(head() + chunk(EVENT) + chunk(b'data: {"result":{"tools":[{"name":"b"}]}\n\n') + b"0\r\n\r\n")

    plane.downstream.script = unreadable
    async with await Client.connect(plane.port) as client:
        client.writer.write(post(LIST).replace(b"HTTP/1.1", b"HTTP/1.0", 1))

        with pytest.raises(ConnectionResetError):
            await client.reader.read()

"""What a stranger may cost us, on raw sockets: each limit is hit, and ordinary requests go on (config.connections)."""

import asyncio
import time

import pytest

from registry.credentials import key_hash
from tests.build import KEY, key
from tests.fake_downstream import Connection, FakeDownstream, Received, answer, head
from tests.integration.conftest import Plane, running
from tests.raw_client import Answer, Client, call, post, request
from tests.waiting import asked_until

CALL = post(call("a"))
OTHER = "sg_" + "o" * 43


def told(reply: Answer) -> tuple[int, str]:
    return reply.status, reply.json["code"]


async def served(plane: Plane) -> int:
    return (await plane.ask(CALL)).status


async def ended(client: Client) -> bytes:
    """What comes before the other side closes the connection."""
    try:
        return await client.reader.read()
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize(
    "fields",
    [
        [f"X-{number}: {'y' * 900}" for number in range(10)],
        [f"X-Large: {'y' * 9_000}"],
        [f"X-{number}: y" for number in range(60)],
    ],
    ids=["many lines", "one line", "too many lines"],
)
async def test_a_head_that_is_too_large_is_431_and_nothing_goes_downstream(
    downstream: FakeDownstream, fields: list[str]
) -> None:
    async with running(downstream, max_head_bytes=8_192, max_fields=50) as plane:
        async with await Client.connect(plane.port) as client:
            assert told(await client.ask(post(call("a"), *fields))) == (431, "head_too_large")
            assert await ended(client) == b""
        assert downstream.connections == 0
        assert await served(plane) == 200


async def test_a_request_line_that_is_too_long_is_431(downstream: FakeDownstream) -> None:
    async with running(downstream, max_head_bytes=8_192) as plane:
        assert told(await plane.ask(request("GET", path="/proxy/lab?" + "y" * 9_000))) == (431, "head_too_large")
        assert await served(plane) == 200


async def test_a_head_of_the_largest_size_is_served(downstream: FakeDownstream) -> None:
    async with running(downstream, max_head_bytes=8_192, max_fields=50) as plane:
        many = [f"X-{number}: y" for number in range(44)]
        assert (await plane.ask(post(call("a"), *many, f"X-Large: {'y' * 7_000}"))).status == 200


async def test_a_head_without_end_is_431_before_it_is_complete(downstream: FakeDownstream) -> None:
    """Lines of a size and number that would each be taken; what counts is what has to be held."""
    async with running(downstream, max_head_bytes=8_192) as plane, await Client.connect(plane.port) as client:
        client.writer.write(b"GET /proxy/lab HTTP/1.1\r\nHost: localhost\r\n")
        for number in range(10):
            client.writer.write(b"X-%d: %s\r\n" % (number, b"y" * 900))
            await client.writer.drain()
            await asyncio.sleep(0)  # lets the server read each by itself; nothing waits for it
        reply = await client.answer()
        assert told(reply) == (431, "head_too_large")
        assert reply.values("connection") == ["close"]
        assert await served(plane) == 200


async def test_a_head_without_end_behind_a_running_request_ends_the_connection(downstream: FakeDownstream) -> None:
    started = asyncio.Event()

    async def silent(*_: object) -> None:
        started.set()
        await asyncio.Event().wait()

    downstream.script = silent
    async with running(downstream, max_head_bytes=8_192) as plane, await Client.connect(plane.port) as client:
        client.writer.write(CALL + b"GET / HTTP/1.1\r\n")
        await started.wait()
        client.writer.write(b"".join(b"X-%d: %s\r\n" % (number, b"y" * 900) for number in range(10)))
        assert await ended(client) == b""
        await downstream.until(lambda downstream: not downstream.open_connections)


async def test_bytes_of_a_body_are_no_bytes_of_a_head(downstream: FakeDownstream) -> None:
    large = post(call("a", text="y" * 100_000))
    async with running(downstream, max_head_bytes=8_192) as plane, await Client.connect(plane.port) as client:
        for _ in range(3):
            assert (await client.ask(large)).status == 200


async def test_a_head_that_comes_byte_by_byte_is_408_in_time(downstream: FakeDownstream) -> None:
    async with running(downstream, head_timeout_s=0.3) as plane, await Client.connect(plane.port) as client:
        begun = time.monotonic()
        dribbling = asyncio.create_task(_dribble(client, b"GET /proxy/lab HTTP/1.1\r\nX: " + b"y" * 10_000))
        assert told(await client.answer()) == (408, "head_timeout")
        assert 0.3 <= time.monotonic() - begun < 3
        dribbling.cancel()
        assert await served(plane) == 200


async def test_a_new_connection_that_says_nothing_is_closed_in_time(downstream: FakeDownstream) -> None:
    async with running(downstream, head_timeout_s=0.2) as plane, await Client.connect(plane.port) as client:
        assert await ended(client) == b""
        assert await served(plane) == 200


async def test_a_request_that_runs_is_not_cut_by_the_time_for_heads(downstream: FakeDownstream) -> None:
    let_go = asyncio.Event()
    answering = downstream.script

    async def slow(*arguments: object) -> None:
        await let_go.wait()
        await answering(*arguments)  # type: ignore[arg-type]

    downstream.script = slow
    async with running(downstream, head_timeout_s=0.1) as plane, await Client.connect(plane.port) as client:
        client.writer.write(CALL)
        await downstream.until(lambda downstream: bool(downstream.received))
        asyncio.get_running_loop().call_later(0.3, let_go.set)
        assert (await client.answer()).status == 200
        assert (await client.ask(CALL)).status == 200


@pytest.mark.parametrize("more", [b"", b"GET / HTTP/1.1\r\nX: "], ids=["idle", "dribbling"])
async def test_a_connection_that_sends_no_further_request_is_closed_in_time(
    downstream: FakeDownstream, more: bytes
) -> None:
    async with running(downstream, idle_timeout_s=0.3) as plane, await Client.connect(plane.port) as client:
        assert (await client.ask(CALL)).status == 200
        dribbling = asyncio.create_task(_dribble(client, more + b"y" * 10_000 if more else b""))
        assert await ended(client) == b""
        dribbling.cancel()
        assert await served(plane) == 200


async def test_a_body_that_comes_byte_by_byte_is_408_in_time(downstream: FakeDownstream) -> None:
    async with running(downstream, body_timeout_s=0.3) as plane, await Client.connect(plane.port) as client:
        begin, _, _ = post(call("a", text="y" * 10_000)).partition(b"\r\n\r\n")
        client.writer.write(begin + b"\r\n\r\n")
        dribbling = asyncio.create_task(_dribble(client, call("a", text="y" * 10_000)))
        reply = await client.answer()
        assert (reply.status, reply.json["error"]["code"]) == (408, -32600)
        dribbling.cancel()
        assert downstream.connections == 0
        assert await served(plane) == 200


async def test_connections_beyond_the_limit_are_refused_at_once_until_there_is_room(
    downstream: FakeDownstream,
) -> None:
    async with running(downstream, max_connections=2) as plane:
        first, second = await Client.connect(plane.port), await Client.connect(plane.port)
        assert [(await client.ask(CALL)).status for client in (first, second)] == [200, 200]
        async with await Client.connect(plane.port) as third:
            assert await ended(third) == b""
        assert (await first.ask(CALL)).status == 200

        second.writer.transport.abort()
        await asked_until(lambda: _is_served(plane))  # the end of the second is on its way
        first.writer.transport.abort()


async def _is_served(plane: Plane) -> bool:
    try:
        return await served(plane) == 200
    except (asyncio.IncompleteReadError, ConnectionError):
        return False


STREAM = request("GET", "Accept: text/event-stream")
LISTEN = post(b'{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}')


async def silent_stream(received: Received, connection: Connection) -> None:
    if received.body == call("a"):
        await answer(b'{"jsonrpc":"2.0","id":7,"result":{}}')(received, connection)
        return
    connection.write(head())
    await asyncio.Event().wait()


async def test_streams_beyond_the_limit_of_their_key_are_429_until_one_ends(downstream: FakeDownstream) -> None:
    downstream.script = silent_stream
    async with running(downstream, max_streams_per_key=2) as plane:
        held = [await Client.connect(plane.port) for _ in range(2)]
        for client, opening in zip(held, (STREAM, LISTEN), strict=True):
            client.writer.write(opening)
            assert (await client.head())[0] == 200
        asked = downstream.connections

        for opening in (STREAM, LISTEN):
            reply = await plane.ask(opening)
            assert told(reply) == (429, "too_many_streams")
            assert reply.values("retry-after") == ["10"]
        assert downstream.connections == asked
        assert await served(plane) == 200
        assert await _opens(plane, STREAM.replace(KEY.encode(), OTHER.encode()))

        held[0].writer.transport.abort()
        await asked_until(lambda: _opens(plane, STREAM))
        held[1].writer.transport.abort()


async def _opens(plane: Plane, opening: bytes) -> bool:
    plane.store.state.keys["key-2"] = key(id="key-2", hash=key_hash(OTHER))
    async with await Client.connect(plane.port) as client:
        client.writer.write(opening)
        return (await client.head())[0] == 200


async def _dribble(client: Client, data: bytes) -> None:
    for byte in data:
        client.writer.write(bytes([byte]))
        await asyncio.sleep(0.01)

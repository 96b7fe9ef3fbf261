"""Connections to a downstream: what is used again, what is ended, what is no answer (RFC 9112)."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator

import pytest

from proxy.transport import pool as pools
from proxy.transport.connection import BadAnswer, Connection, NoAnswer
from proxy.transport.connector import Connector
from proxy.transport.pool import Origin, Pool
from tests.fake_downstream import Connection as Behind
from tests.fake_downstream import FakeDownstream, Received
from tests.waiting import until

ASKED = b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\n"


async def itself(host: str, _port: int) -> list[str]:
    return [host]


def new_pool() -> Pool:
    return Pool(Connector(itself, ssl.create_default_context()))


@pytest.fixture
async def pool() -> AsyncIterator[Pool]:
    made = new_pool()
    made.start()
    yield made
    await made.close()


@pytest.fixture
def origin(downstream: FakeDownstream) -> Origin:
    return Origin("127.0.0.1", int(downstream.url.split(":")[2].split("/")[0]), is_secure=False)


def says(downstream: FakeDownstream, *pieces: bytes, closes: bool = False, resets: bool = False) -> None:
    """It writes each piece on its own, so that they are likely read on their own."""

    async def script(_request: Received, connection: Behind) -> None:
        for piece in pieces:
            connection.write(piece)
            await asyncio.sleep(0)
        if closes:
            connection.close()
        if resets:
            await asyncio.sleep(0.01)  # what was written arrives first
            connection.abort()

    downstream.script = script


async def body_of(connection: Connection) -> bytes:
    body = b""
    while chunk := await connection.chunk():
        body += chunk
    return body


async def asked(pool: Pool, origin: Origin) -> tuple[int, list[tuple[str, str]], bytes]:
    """One exchange, from its beginning to its end."""
    connection = await pool.take(origin, 5)
    try:
        await connection.answered(ASKED)
        return connection.status, list(connection.fields), await body_of(connection)
    finally:
        pool.put(origin, connection)


REUSED = {
    "a length": (OK + b"Content-Length: 2\r\n\r\nhi", b"hi"),
    "no body": (OK + b"Content-Length: 0\r\n\r\n", b""),
    "chunks": (OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n", b"hi"),
    "chunks with a trailer": (OK + b"Transfer-Encoding: chunked\r\n\r\n2;a=b\r\nhi\r\n0\r\nX: y\r\n\r\n", b"hi"),
    "204": (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    "an interim answer first": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        + OK
        + b"Content-Length: 2\r\n\r\nhi",
        b"hi",
    ),
}


@pytest.mark.parametrize(("answer", "body"), REUSED.values(), ids=REUSED)
@pytest.mark.parametrize("cut", ["whole", "byte by byte"])
async def test_a_connection_is_used_again_after_a_whole_answer(
    pool: Pool, origin: Origin, downstream: FakeDownstream, answer: bytes, body: bytes, cut: str
) -> None:
    says(downstream, *([answer] if cut == "whole" else [answer[i : i + 1] for i in range(len(answer))]))
    for _ in range(3):
        status, fields, read = await asked(pool, origin)
        assert (status, read) == (int(answer.split(b"HTTP/1.1 ")[-1][:3]), body)
        assert not [name for name, _ in fields if name in ("X", "Link")], "of the answer's own head alone"
    assert downstream.connections == 1


ENDED = {
    "it says so": (OK + b"Connection: close\r\nContent-Length: 2\r\n\r\nhi", b"hi", False),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", b"hi", False),
    "nothing but the end delimits it": (OK + b"\r\nhi", b"hi", True),
    "more than the answer": (OK + b"Content-Length: 2\r\n\r\nhi!", b"hi", False),
    "a second answer": ((OK + b"Content-Length: 2\r\n\r\nhi") * 2, b"hi", False),
    "a body where there is none": (b"HTTP/1.1 204 No Content\r\n\r\nhi", b"", False),
}


@pytest.mark.parametrize(("answer", "body", "closes"), ENDED.values(), ids=ENDED)
async def test_a_connection_is_not_used_again_when(
    pool: Pool, origin: Origin, downstream: FakeDownstream, answer: bytes, body: bytes, closes: bool
) -> None:
    says(downstream, answer, closes=closes)
    for _ in range(2):
        assert (await asked(pool, origin))[2] == body
    assert downstream.connections == 2
    await downstream.until(lambda downstream: not downstream.open_connections)


async def test_what_comes_after_an_answer_ends_a_connection_that_is_idle(
    pool: Pool, origin: Origin, downstream: FakeDownstream
) -> None:
    late = asyncio.Event()

    async def script(_request: Received, connection: Behind) -> None:
        connection.write(OK + b"Content-Length: 2\r\n\r\nhi")
        await late.wait()
        connection.write(OK + b"Content-Length: 6\r\n\r\nforged")

    downstream.script = script
    await asked(pool, origin)
    late.set()
    await downstream.until(lambda downstream: not downstream.open_connections)
    says(downstream, OK + b"Content-Length: 2\r\n\r\nho")
    assert (await asked(pool, origin))[2] == b"ho"


async def test_a_connection_that_the_downstream_ended_is_not_used_again(
    pool: Pool, origin: Origin, downstream: FakeDownstream
) -> None:
    says(downstream, OK + b"Content-Length: 2\r\n\r\nhi", closes=True)
    assert (await asked(pool, origin))[2] == b"hi"
    await downstream.until(lambda downstream: not downstream.open_connections)
    assert (await asked(pool, origin))[2] == b"hi"


async def test_a_connection_is_not_used_again_when_its_body_was_not_read(
    pool: Pool, origin: Origin, downstream: FakeDownstream
) -> None:
    says(downstream, OK + b"Content-Length: 10\r\n\r\nhalf")
    connection = await pool.take(origin, 5)
    await connection.answered(ASKED)
    pool.put(origin, connection)
    await downstream.until(lambda downstream: not downstream.open_connections)


async def test_one_that_is_idle_for_long_is_ended(
    monkeypatch: pytest.MonkeyPatch, origin: Origin, downstream: FakeDownstream
) -> None:
    monkeypatch.setattr(pools, "_IDLE_S", 0.05)
    monkeypatch.setattr(pools, "_SWEEP_S", 0.01)
    says(downstream, OK + b"Content-Length: 2\r\n\r\nhi")
    pool = new_pool()
    pool.start()
    await asked(pool, origin)
    await downstream.until(lambda downstream: not downstream.open_connections)
    await until(lambda: not pool._idle)
    await pool.close()


async def test_closing_ends_what_is_idle(origin: Origin, downstream: FakeDownstream) -> None:
    says(downstream, OK + b"Content-Length: 2\r\n\r\nhi")
    pool = new_pool()
    pool.start()
    await asked(pool, origin)
    await pool.close()
    await downstream.until(lambda downstream: not downstream.open_connections)


BAD = {
    "no HTTP": b"hello\r\n\r\n",
    "HTTP/2": b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    "another protocol": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    "two lengths": OK + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi",
    "a length and chunks": OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
    "a length with a sign": OK + b"Content-Length: +2\r\n\r\nhi",
    "a blank before a colon": OK + b"Content-Length : 2\r\n\r\nhi",
    "a folded line": OK + b"X: a\r\n b\r\nContent-Length: 2\r\n\r\nhi",
    "line feeds alone": b"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi",
    "NUL in a line": OK + b"X: a\x00b\r\nContent-Length: 2\r\n\r\nhi",
    "a line of 64 KiB": OK + b"X: " + b"a" * 65_536 + b"\r\nContent-Length: 2\r\n\r\nhi",
    "lines of 300 KiB": OK + b"X: aaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n" * 9_500 + b"Content-Length: 2\r\n\r\nhi",
    "many lines": OK + b"X: aaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n" * 20_000 + b"Content-Length: 2\r\n\r\nhi",
    "interim answers without end": b"HTTP/1.1 100 Continue\r\n\r\n" * 40_000,
}


@pytest.mark.parametrize("answer", BAD.values(), ids=BAD)
async def test_what_is_no_answer_is_not_passed_on(
    pool: Pool, origin: Origin, downstream: FakeDownstream, answer: bytes
) -> None:
    says(downstream, answer)
    with pytest.raises(BadAnswer):
        await asked(pool, origin)
    await downstream.until(lambda downstream: not downstream.open_connections)


@pytest.mark.parametrize(
    "said", [b"", b"HTTP/1.1 200", OK + b"Content-Length: 2\r\n"], ids=["nothing", "status", "line"]
)
@pytest.mark.parametrize("end", ["closes", "resets"])
async def test_an_end_before_the_head_is_no_answer(
    pool: Pool, origin: Origin, downstream: FakeDownstream, said: bytes, end: str
) -> None:
    says(downstream, said, closes=end == "closes", resets=end == "resets")
    with pytest.raises(NoAnswer):
        await asked(pool, origin)


@pytest.mark.parametrize(
    ("said", "end"),
    [
        (OK + b"Content-Length: 3\r\n\r\nhi", "closes"),
        (OK + b"Content-Length: 3\r\n\r\nhi", "resets"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n", "closes"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\nZ\r\n", "nothing"),
        (OK + b"\r\nhi", "resets"),
    ],
    ids=["short", "short and reset", "no last chunk", "a bad size", "reset where the end delimits"],
)
async def test_half_a_body_is_never_taken_for_a_whole_one(
    pool: Pool, origin: Origin, downstream: FakeDownstream, said: bytes, end: str
) -> None:
    says(downstream, said, closes=end == "closes", resets=end == "resets")
    with pytest.raises(BadAnswer):
        await asked(pool, origin)


async def test_a_reader_that_is_slow_slows_the_downstream(
    pool: Pool, origin: Origin, downstream: FakeDownstream
) -> None:
    written = 0

    async def script(_request: Received, connection: Behind) -> None:
        nonlocal written
        connection.write(OK + b"Content-Length: 50000000\r\n\r\n")
        for _ in range(500):
            connection.write(b"x" * 100_000)
            await connection.drain()
            written += 100_000

    downstream.script = script
    connection = await pool.take(origin, 5)
    await connection.answered(ASKED)
    before = -1
    while before != written:  # until it can write no more
        before = written
        await asyncio.sleep(0.05)
    assert written < 40_000_000
    assert connection._buffered < 1_000_000
    assert len(await body_of(connection)) == 50_000_000
    pool.put(origin, connection)


async def test_a_request_that_is_given_up_ends_its_connection(
    pool: Pool, origin: Origin, downstream: FakeDownstream
) -> None:
    says(downstream)
    connection = await pool.take(origin, 5)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await connection.answered(ASKED)
    pool.put(origin, connection)
    await downstream.until(lambda downstream: not downstream.open_connections)


async def test_an_address_where_nobody_listens_is_an_error_of_the_system(pool: Pool) -> None:
    with contextlib.closing(await _unused_port()) as taken:
        port = taken.sockets[0].getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        await pool.take(Origin("127.0.0.1", port, is_secure=False), 5)


async def _unused_port() -> asyncio.Server:
    return await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)

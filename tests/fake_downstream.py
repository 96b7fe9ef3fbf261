"""A downstream on a raw socket: it records the exact bytes of every request, and answers exactly what it is told.

Not built on an HTTP library, since it must be able to frame wrongly, stop in the middle, or say nothing.
"""

import asyncio
import re
import socket
import ssl
import struct
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

_LENGTH = re.compile(rb"^content-length:\s*(\d+)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class Received:
    """One request as it arrived."""

    head: bytes
    body: bytes

    @property
    def request_line(self) -> str:
        """The first line."""
        return self.head.split(b"\r\n", 1)[0].decode("latin-1")

    @property
    def fields(self) -> list[tuple[str, str]]:
        """The header lines, names in lower case."""
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        return [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines if line)]

    def values(self, name: str) -> list[str]:
        """All values of one field."""
        return [value for field, value in self.fields if field == name]


class Connection(asyncio.Protocol):
    """One connection: cuts requests out of the bytes, and runs the script for each, one after another."""

    def __init__(self, downstream: "FakeDownstream") -> None:
        self._downstream = downstream
        self._buffer = b""
        self._script: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._downstream.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._writable.set()
        if self._script is not None:
            self._script.cancel()
        self._downstream.closed(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._next()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def write(self, data: bytes) -> None:
        """Send, without waiting."""
        self._transport.write(data)

    async def drain(self) -> None:
        """Wait until the other side has taken most of what was sent."""
        await self._writable.wait()

    def close(self) -> None:
        """End the connection after what was sent."""
        self._transport.close()

    def abort(self) -> None:
        """Reset the connection; a mere abort would look like an ordinary end."""
        linger = struct.pack("ii", 1, 0)
        self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._transport.abort()

    def _next(self) -> None:
        if self._script is None and (request := self._cut()) is not None:
            self._script = asyncio.get_running_loop().create_task(self._downstream.script(request, self))
            self._script.add_done_callback(self._ended)
            self._downstream.note(request)

    def _ended(self, script: asyncio.Task[None]) -> None:
        self._script = None
        if not script.cancelled():
            script.result()
            self._next()

    def _cut(self) -> Received | None:
        request_head, separator, rest = self._buffer.partition(b"\r\n\r\n")
        length = _LENGTH.search(request_head)
        size = int(length[1]) if length else 0
        if not separator or len(rest) < size:
            return None
        self._buffer = rest[size:]
        return Received(request_head, rest[:size])


Script = Callable[[Received, Connection], Coroutine[Any, Any, None]]


def answer(body: bytes, content_type: str = "application/json", status: str = "200 OK", *fields: str) -> Script:
    """A script that answers this, with a right Content-Length."""

    async def script(_request: Received, writer: Connection) -> None:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *fields]
        if content_type:
            lines.append(f"Content-Type: {content_type}")
        writer.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)

    return script


def chunked(pieces: list[bytes], content_type: str = "text/event-stream", *fields: str) -> Script:
    """A script that answers these pieces, each flushed as a chunk of its own."""

    async def script(_request: Received, writer: Connection) -> None:
        writer.write(head(content_type, *fields))
        for piece in pieces:
            writer.write(chunk(piece))
            await writer.drain()
            await asyncio.sleep(0)  # lets the pieces leave one by one; nothing waits for it
        writer.write(b"0\r\n\r\n")

    return script


def head(content_type: str = "text/event-stream", *fields: str) -> bytes:
    """The head of a chunked answer."""
    lines = ["HTTP/1.1 200 OK", f"Content-Type: {content_type}", "Transfer-Encoding: chunked", *fields]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """One chunk of it; an empty piece is none, since an empty chunk is the end."""
    return b"%x\r\n%s\r\n" % (len(data), data) if data else b""


@dataclass
class FakeDownstream:
    """Listens on a free port of 127.0.0.1 while it is entered; with `tls`, for TLS."""

    script: Script = field(default_factory=lambda: answer(b'{"jsonrpc":"2.0","id":1,"result":{}}'))
    received: list[Received] = field(default_factory=list)
    connections: int = 0
    tls: ssl.SSLContext | None = None
    open_connections: set[Connection] = field(default_factory=set)

    async def __aenter__(self) -> "FakeDownstream":
        self._changed = asyncio.Event()
        self._server = await asyncio.get_running_loop().create_server(
            lambda: Connection(self), "127.0.0.1", 0, ssl=self.tls
        )
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._server.close()
        for connection in list(self.open_connections):
            connection.abort()
        await self.until(lambda downstream: not downstream.open_connections)

    @property
    def url(self) -> str:
        """Where it is registered."""
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}/mcp"

    @property
    def bodies(self) -> list[bytes]:
        """The exact bodies that arrived."""
        return [request.body for request in self.received]

    async def until(self, is_so: Callable[["FakeDownstream"], bool]) -> None:
        """Wait until something is true of it."""
        while not is_so(self):
            self._changed.clear()
            await self._changed.wait()

    def opened(self, connection: Connection) -> None:
        """A connection was made."""
        self.connections += 1
        self.open_connections.add(connection)
        self._changed.set()

    def closed(self, connection: Connection) -> None:
        """A connection is gone."""
        self.open_connections.discard(connection)
        self._changed.set()

    def note(self, request: Received) -> None:
        """A request is complete."""
        self.received.append(request)
        self._changed.set()

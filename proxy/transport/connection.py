"""One connection to a downstream, over which one exchange goes at a time.

Source: RFC 9112. The parser is llhttp's, in its strict mode: what it does not take is no HTTP that could be passed on.

States:

    IDLE --ask--> WAITING --head--> BODY --last byte--> IDLE, when it may be used again
      \\______________\\________________\\----------> CLOSED: by either side, by an error, by bytes nobody asked for

A body is held in memory up to `_HIGH_BYTES` and the rest of it stays in the network: who reads slowly slows the
downstream.
"""

import asyncio
import enum
import select
from collections import deque
from typing import cast

import httptools

from proxy.ports import Fields

_HIGH_BYTES = 65_536
"""Of a body that waits for its reader. Half of it is where reading goes on."""

_MAX_FIELD_BYTES = 65_536
"""Of a header line; tokens and mirrored arguments grow beyond the 8 KiB that many take."""

_MAX_HEAD_BYTES = 262_144
"""Of all header lines of an answer, interim ones included. A security limit: they are held in memory."""


class _State(enum.Enum):
    IDLE = enum.auto()
    WAITING = enum.auto()
    BODY = enum.auto()
    CLOSED = enum.auto()


class NoAnswer(Exception):
    """The connection ended before the head of an answer was complete."""


class BadAnswer(Exception):
    """What came is no HTTP that can be passed on, or ended before its framing says."""


class Connection(asyncio.Protocol):
    """Made by `loop.create_connection`. Every method is for the one who has asked last."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._state = _State.IDLE
        self._waiter: asyncio.Future[None] | None = None
        self._error: Exception | None = None
        self._chunks: deque[bytes] = deque()
        self._buffered = 0
        self._head_bytes = 0
        self._field_bytes = 0
        self._is_paused = False
        self._is_whole = False
        self._fields: list[tuple[str, str]] = []
        self.status = 0
        """Of the answer, once `answered` has returned."""
        self.idle_since = 0.0
        """When it was last put aside, by the loop's clock."""

    @property
    def fields(self) -> Fields:
        """The header lines of the answer, in order."""
        return tuple(self._fields)

    @property
    def is_usable(self) -> bool:
        """True when nothing is under way and the downstream has neither ended it nor said anything."""
        return self._state is _State.IDLE and not self._transport.is_closing() and self._is_quiet()

    def _is_quiet(self) -> bool:
        """Asked of the system: the loop may not have come to an end that has arrived."""
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket"), select.POLLIN)
        return not poll.poll(0)

    async def answered(self, request: bytes) -> None:
        """Send a request and wait for the head of its answer. Raises NoAnswer and BadAnswer."""
        self._state, self._is_whole, self._head_bytes, self._field_bytes = _State.WAITING, False, 0, 0
        self._transport.write(request)
        while self._state is _State.WAITING:
            await self._wait()
        if self._error is not None:
            raise self._error

    async def chunk(self) -> bytes:
        """The next bytes of the body, empty at its end. Raises BadAnswer."""
        while not self._chunks and not self._is_whole and self._error is None:
            await self._wait()
        if self._error is not None and not self._chunks:
            raise self._error
        return self._taken() if self._chunks else b""

    def finish(self) -> bool:
        """The exchange is over; True when the connection may be used again, else it is closed."""
        if self._is_whole and not self._chunks and self.is_usable:
            return True
        self.close()
        return False

    def close(self) -> None:
        """End it at once. Nothing more is sent."""
        self._state = _State.CLOSED
        self._transport.abort()

    def _taken(self) -> bytes:
        data = self._chunks.popleft() if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        self._buffered = 0
        if self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()
        return data

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: Exception) -> None:
        if not self._is_whole:  # what comes after a whole answer does not make it worse
            self._error = self._error or error
        self._state = _State.CLOSED
        self._transport.abort()
        self._wake()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """As asyncio has it."""
        self._transport = cast(asyncio.Transport, transport)
        self._parser = httptools.HttpResponseParser(self)

    def data_received(self, data: bytes) -> None:
        """As asyncio has it."""
        if self._state is _State.IDLE:
            return self._fail(BadAnswer("the downstream answers what nobody asked"))
        if self._state is _State.WAITING and self._is_head_over(len(data)):
            return self._fail(BadAnswer("the head of the downstream's answer is too large"))
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._fail(BadAnswer("the downstream's answer is not HTTP that can be passed on"))
        return None

    def _is_head_over(self, length: int) -> bool:
        """A read is no larger than asyncio's buffer, so what else is in it than the head is bounded too."""
        self._head_bytes += length
        return self._head_bytes > 2 * _MAX_HEAD_BYTES

    def connection_lost(self, exc: Exception | None) -> None:
        """As asyncio has it. A body that nothing delimits but the end is whole then, if it ended in order."""
        if self._state is _State.BODY and exc is None and self._ends_with_connection():
            self._is_whole = True
        elif self._state is _State.WAITING:
            self._error = self._error or NoAnswer()
        elif self._state is _State.BODY:
            self._error = self._error or BadAnswer("the downstream's answer ended too early")
        self._state = _State.CLOSED
        self._wake()

    def _ends_with_connection(self) -> bool:
        names = {name.lower() for name, _ in self._fields}
        return names.isdisjoint({"content-length", "transfer-encoding"})

    # httptools

    def on_message_begin(self) -> None:
        """Of the parser: the answer, an interim one before it, or something after it."""
        if self._is_whole:
            raise ValueError("more than one answer")
        self._fields = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Of the parser. A trailer is dropped: nobody that reads the head sees it."""
        if self._state is _State.WAITING:
            self._field_bytes += len(name) + len(value)
            if len(name) + len(value) > _MAX_FIELD_BYTES or self._field_bytes > _MAX_HEAD_BYTES:
                raise ValueError("the head is too large")
            self._fields.append((_text(name), _text(value).strip(" \t")))

    def on_headers_complete(self) -> None:
        """Of the parser."""
        status = self._parser.get_status_code()
        if self._parser.get_http_version() not in ("1.0", "1.1") or status == 101:
            raise ValueError("another protocol")
        if status >= 200:
            self.status, self._state = status, _State.BODY
            self._wake()

    def on_body(self, body: bytes) -> None:
        """Of the parser."""
        self._chunks.append(body)
        self._buffered += len(body)
        if self._buffered > _HIGH_BYTES and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def on_message_complete(self) -> None:
        """Of the parser. After an interim answer the answer itself follows."""
        if self._state is _State.BODY:
            self._is_whole = True
            self._state = _State.IDLE if self._parser.should_keep_alive() else _State.CLOSED
            self._wake()


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")

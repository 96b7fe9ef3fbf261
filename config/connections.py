"""Connections of clients, within limits.

Source: RFC 6585 section 5 (431), RFC 9110 section 15.5.9 (408), RFC 9112 section 9.5 (timeouts). A stranger needs no
key to open a connection, so what one may cost is bounded before anything is read: how many there are, how large a
request's head is, how long the first one takes. The web library bounds lines, their number and the wait between
requests; the whole head, the first head's time and the number of connections are bounded here.

States of a connection: new (the head timer runs) -> serving <-> between requests (the library's idle timer runs).
A head that comes after the first must be there before the idle timer ends, however slowly its bytes come.
"""

import asyncio
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass

import structlog
from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage, LineTooLong
from aiohttp.typedefs import Handler, Middleware

from config.settings import Settings

log = structlog.get_logger(__name__)

_MAX_LINE_BYTES = 65_536
"""Of a request line or a header line. The data plane passes what clients send, and tokens grow large; aiohttp's 8 KiB
would refuse some that the downstream takes."""

_ROOM = 0.9
"""Of the most connections: below it they are not full any more, so that one that comes and goes fills no log."""

_TOO_LARGE = (431, "Request Header Fields Too Large", "head_too_large", "The head of the request is too large.")
_TOO_SLOW = (408, "Request Timeout", "head_timeout", "The head of the request did not arrive in time.")


@dataclass(frozen=True, slots=True)
class Limits:
    """Of each listener; defaults as the settings'."""

    max_connections: int = 8_000
    max_head_bytes: int = 128 << 10
    max_fields: int = 100
    head_timeout_s: float = 20.0
    """For the TLS handshake, and then for the first request's head."""
    idle_timeout_s: float = 120.0
    """Longer than proxies in front keep a connection for its next request, so that it is they who close it."""

    @classmethod
    def of(cls, settings: Settings) -> "Limits":
        """Those that the settings name."""
        return cls(
            settings.max_connections,
            settings.max_head_bytes,
            settings.max_fields,
            settings.head_timeout_s,
            settings.idle_timeout_s,
        )


DEFAULTS = Limits()


class Connections:
    """All connections of one listener: a protocol factory, as `loop.create_server` takes one."""

    def __init__(self, server: web.Server, limits: Limits) -> None:
        self.limits = limits
        self._server = server
        self._open: set[Connection] = set()
        self._is_full = False

    def __call__(self) -> "Connection":
        """A connection that was accepted."""
        return Connection(self, self._server)

    def enter(self, connection: "Connection") -> bool:
        """Take it in; False when there are as many as may be. Logged once, until there is some room again."""
        if len(self._open) < self.limits.max_connections:
            self._open.add(connection)
            return True
        if not self._is_full:
            log.warning("connections.full", max_connections=self.limits.max_connections)
        self._is_full = True
        return False

    def leave(self, connection: "Connection") -> None:
        """It has ended; harmless when it was not taken in."""
        self._open.discard(connection)
        if len(self._open) <= self.limits.max_connections * _ROOM:
            self._is_full = False


class Connection(web.RequestHandler):
    """One connection of a client."""

    __slots__ = ("_connections", "_head_bytes", "_head_timer", "_limits")

    def __init__(self, connections: Connections, server: web.Server) -> None:
        limits = self._limits = connections.limits
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]  # the library's way of saying that there is none
            auto_decompress=False,  # bodies are inspected and forwarded as they came
            keepalive_timeout=limits.idle_timeout_s,
            max_line_size=min(_MAX_LINE_BYTES, limits.max_head_bytes),
            max_field_size=min(_MAX_LINE_BYTES, limits.max_head_bytes),
            max_headers=limits.max_fields,
        )
        self._connections = connections
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, or end at once when there are too many."""
        if not self._connections.enter(self):
            self.force_close()
            transport.close()
            return
        super().connection_made(transport)
        loop = asyncio.get_running_loop()
        self._head_timer = loop.call_later(self._limits.head_timeout_s, self._refuse, _TOO_SLOW)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Make room for another."""
        self._connections.leave(self)
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes in; those of a head that is not complete are counted."""
        heads, is_head = self._request_count, self._awaits_head()
        super().data_received(data)
        if self._request_count != heads:
            self._head_bytes = 0
            self._stop_timer()
        elif is_head:
            self._head_bytes += len(data)
            if self._head_bytes > self._limits.max_head_bytes:
                self._refuse(_TOO_LARGE)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """What the library cannot read: a line that is too long, and too many of them, are 431."""
        if not _is_too_large(exc):
            return super().handle_error(request, status, exc, message)
        log.info("request.refused", status=431)
        return _answer(_TOO_LARGE)

    def _awaits_head(self) -> bool:
        """True when what comes next belongs to a request that has not begun."""
        if self._current_request is None:
            return self._waiter is not None
        return self._current_request.content.is_eof()

    def _refuse(self, why: tuple[int, str, str, str]) -> None:
        """End the connection; with an answer where no other is under way, and somebody has begun to ask."""
        if self.transport is not None and self._current_request is None and self._head_bytes:
            log.info("request.refused", status=why[0])
            self.transport.write(_raw(why))
        self.force_close()

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def bounded_head(max_bytes: int) -> Middleware:
    """A middleware that answers 431 to a head of more than `max_bytes`, which came at once and was read."""

    @web.middleware
    async def bounded(request: web.Request, handler: Handler) -> web.StreamResponse:
        if _size(request.path_qs, request.raw_headers) > max_bytes:
            log.info("request.refused", status=431)
            return _answer(_TOO_LARGE)
        return await handler(request)

    return bounded


def _size(path: str, fields: Sequence[tuple[bytes, bytes]]) -> int:
    return len(path) + sum(map(len, itertools.chain.from_iterable(fields)))


def _is_too_large(exc: BaseException | None) -> bool:
    return isinstance(exc, LineTooLong) or (isinstance(exc, BadHttpMessage) and exc.message.startswith("Too many "))


def _body(why: tuple[int, str, str, str]) -> bytes:
    _, reason, code, detail = why
    return json.dumps({"error": reason.lower(), "detail": detail, "code": code}).encode()


def _answer(why: tuple[int, str, str, str]) -> web.Response:
    response = web.Response(
        status=why[0],
        reason=why[1],
        body=_body(why),
        content_type="application/json",
        headers={"Cache-Control": "no-store"},
    )
    response.force_close()  # who sends such heads is not asked to go on
    return response


def _raw(why: tuple[int, str, str, str]) -> bytes:
    """The same answer, where there is no request that the library could answer."""
    body = _body(why)
    lines = (
        f"HTTP/1.1 {why[0]} {why[1]}",
        "Content-Type: application/json",
        "Cache-Control: no-store",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

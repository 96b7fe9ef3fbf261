"""Relays one answer of a downstream to its client.

Source: DESIGN 3 (Pass the rest, Own failures), LAYOUT (walk-through 2). A slow client slows the downstream: a chunk is
read when the one before it is written. A client that goes away cancels this, and with it the connection downstream.
A failure before the first byte is an answer of ours; after it the connection is cut, so that half an answer is never
taken for a whole one.
"""

import asyncio
import socket
import struct
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any

import structlog
from aiohttp import web
from aiohttp.http import HttpVersion11

from proxy.errors import DownstreamTimeout, ProxyError
from proxy.exchange import Exchange, Mode, ResponseHead
from proxy.headers import values
from proxy.held import Held
from proxy.ports import DownstreamAnswer, Meter
from proxy.transport.about import About
from proxy.transport.answer import authored, streamed, whole
from registry.access import Refusal

log = structlog.get_logger(__name__)

_RESET_AT_ONCE = struct.pack("ii", 1, 0)
"""Of SO_LINGER (socket(7)): on, for no time."""

Write = Callable[[bytes], Awaitable[None]]

Released = Callable[[Held], Awaitable[bytes | Refusal]]
"""Releases a list with facts from a read that is young enough for it. Raises PolicyUnknown."""


class _AccessLost(Exception):
    """The caller may not reach the server any more, and a list of it was about to leave."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.reason.value)
        self.refusal = refusal


class Relay:
    """One answer on its way."""

    def __init__(
        self, exchange: Exchange, released: Released, about: About, closing: asyncio.Event, meter: Meter
    ) -> None:
        self._meter = meter
        self._exchange = exchange
        self._released = released
        self.about = about
        self._closing = closing
        self._response: web.StreamResponse | None = None

    async def run(
        self, request: web.Request, sending: AbstractAsyncContextManager[DownstreamAnswer]
    ) -> web.StreamResponse:
        """Send, and relay what comes back; every failure has become an answer or a cut connection."""
        sent = time.perf_counter()
        try:
            async with sending as answer:
                self._arrived = time.perf_counter()
                self._before_s = sent - self.about.began
                self._waited_s = self._arrived - sent
                return await self._relayed(request, answer)
        except ProxyError as error:
            log.warning("exchange.failed", status=error.status, cause=error.cause, **self.about.fields())
            return self._cut(request) or authored(self._exchange.failed(error))
        except _AccessLost as lost:
            log.info("exchange.refused", reason=lost.refusal.reason.value, tool=None, **self.about.fields())
            return self._cut(request) or authored(self._exchange.turned_away(lost.refusal))

    async def _relayed(self, request: web.Request, answer: DownstreamAnswer) -> web.StreamResponse:
        head = self._exchange.receive_response_head(answer.status, answer.fields)
        if head.mode is Mode.WHOLE:
            return await self._collected(head, answer.chunks())
        chunks = answer.chunks()
        if self._exchange.is_subscription:
            chunks = until(self._closing, chunks)  # nobody waits for its end, so it may end when we do
        response = self._response = streamed(head.status, head.fields)
        response.content_length = _promised_length(head, answer)
        try:
            await response.prepare(request)
            self._head_left()
            await self._pump(chunks, response.write)
            await response.write_eof()
        except ConnectionResetError:  # the client's: what fails downstream is a ProxyError by now
            log.debug("exchange.abandoned", **self.about.fields())
        return response

    async def _collected(self, head: ResponseHead, chunks: AsyncGenerator[bytes, None]) -> web.StreamResponse:
        body = bytearray()

        async def collect(piece: bytes) -> None:
            body.extend(piece)

        try:
            async with asyncio.timeout(self._exchange.answer_timeout_s):
                await self._pump(chunks, collect)
        except TimeoutError as exc:
            raise DownstreamTimeout("the downstream did not end an answer that may hold a list in time") from exc
        self._head_left()
        return whole(head.status, head.fields, bytes(body))

    def _head_left(self) -> None:
        self._meter.relayed(self._before_s + time.perf_counter() - self._arrived, self._waited_s)

    async def _pump(self, chunks: AsyncGenerator[bytes, None], write: Write) -> None:
        async with aclosing(chunks):
            async for chunk in chunks:
                await self._release(self._exchange.receive_response_data(chunk), write)
        await self._release(self._exchange.receive_response_eof(), write)

    async def _release(self, outputs: Iterable[bytes | Held], write: Write) -> None:
        for output in outputs:
            await write(await self._less(output) if isinstance(output, Held) else output)

    async def _less(self, held: Held) -> bytes:
        released = await self._released(held)
        if isinstance(released, Refusal):
            raise _AccessLost(released)
        return released

    def _cut(self, request: web.Request) -> web.StreamResponse | None:
        """End the connection in the middle of the answer; None when nothing of it was sent yet."""
        if self._response is None:
            return None
        if request.transport is not None and request.version < HttpVersion11:
            _reset(request.transport)  # HTTP/1.0 has no framing but the end itself, so the end must be an error
        elif request.transport is not None:
            request.transport.close()  # what was written arrives, the last chunk does not
        return self._response


def _reset(transport: asyncio.BaseTransport) -> None:
    """End the connection with a TCP reset: a mere close, also by `abort`, looks like an ordinary end."""
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_ONCE)
    transport.close()


def _promised_length(head: ResponseHead, answer: DownstreamAnswer) -> int | None:
    """What Content-Length may say: only an untouched body has the length that the downstream gave."""
    lengths = values(answer.fields, "content-length")
    return int(lengths[0]) if head.mode is Mode.STREAM and lengths else None


async def until(end: asyncio.Event, chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The chunks, until they end or `end` is set, whichever is first."""
    ended = asyncio.ensure_future(end.wait())
    pending: set[asyncio.Future[Any]] = {ended}
    try:
        while True:
            chunk = asyncio.ensure_future(_next(chunks))
            pending.add(chunk)
            await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            if not chunk.done() or (data := chunk.result()) is None:
                return
            pending.discard(chunk)
            yield data
    finally:
        for future in pending:
            future.cancel()
        await asyncio.gather(*pending, return_exceptions=True)


async def _next(chunks: AsyncGenerator[bytes, None]) -> bytes | None:
    return await anext(chunks, None)

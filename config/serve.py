"""Listens, serves, and ends in order.

Source: DESIGN 7, LAYOUT (walk-through 4). A signal cancels the one task that holds everything, wherever it is; what was
opened is closed in reverse: no more connections, idle streams end at once, calls finish within the grace period. A
second signal ends at once.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Coroutine
from typing import Any

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.log import server_logger

from config import children
from config.address import Address
from config.errors import StartFailed

log = structlog.get_logger(__name__)

_MAX_FIELD_BYTES = 65_536
"""Of a request line or a header line. The data plane passes what clients send, and tokens grow large; aiohttp's 8 KiB
would refuse some that the downstream takes."""

_BACKLOG = 1_024
"""Connections that wait to be accepted; a burst of clients that reconnect is the ordinary case after a restart."""


def listen(address: Address) -> socket.socket:
    """Take the port now, so that a start which cannot have it ends before it has touched anything.

    Raises:
        StartFailed: it is taken, or no address of this machine.
    """
    try:
        return socket.create_server((address.host, address.port), family=address.family, backlog=_BACKLOG)
    except OSError as exc:
        reason = os.strerror(exc.errno or 0)
        raise StartFailed(
            f"Cannot listen on {address}: {reason}; end what uses it, or set SLUICEGATE_LISTEN to another address."
        ) from exc


class WithoutContent(logging.Filter):
    """Has the web library report a request that is no HTTP without quoting it: a key may stand in it."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Always True; takes the quotation away."""
        if record.exc_info and isinstance(record.exc_info[1], HttpProcessingError):
            record.exc_info, record.msg, record.args = None, "request.unreadable", ()
            record.levelno, record.levelname = logging.INFO, "INFO"
        return True


_WITHOUT_CONTENT = WithoutContent()  # one, since a logger takes the same filter only once


@contextlib.asynccontextmanager
async def serving(app: web.Application, listener: socket.socket, *, grace_s: float) -> AsyncIterator[None]:
    """Serve `app` on `listener` while the context is open; leaving it waits up to `grace_s` for running calls."""
    server_logger.addFilter(_WITHOUT_CONTENT)
    runner = web.AppRunner(
        app,
        access_log=None,
        handler_cancellation=True,  # a client that goes away cancels its call downstream
        auto_decompress=False,  # bodies are inspected and forwarded as they came
        max_line_size=_MAX_FIELD_BYTES,
        max_field_size=_MAX_FIELD_BYTES,
        shutdown_timeout=grace_s,
    )
    await runner.setup()
    try:
        await web.SockSite(runner, listener, backlog=_BACKLOG).start()
        log.info("server.started", listen=listener.getsockname()[:2])
        yield
    finally:
        log.info("server.stopping", grace_s=grace_s)
        await runner.cleanup()
        log.info("server.stopped")


async def until_signalled(work: Coroutine[Any, Any, None]) -> None:
    """Run `work` to its end, or until SIGINT or SIGTERM cancels it; returns once it has closed what it opened."""
    task = asyncio.create_task(work)
    signalled = asyncio.Event()

    def on_signal() -> None:
        if signalled.is_set():
            children.kill_all()
            os._exit(130)  # the way that shells report a Ctrl-C
        signalled.set()
        task.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    try:
        await task
    except asyncio.CancelledError:
        if not signalled.is_set():
            raise


async def first_of(*waits: Awaitable[None]) -> None:
    """Wait until one of `waits` ends and raise what it raised; the others are cancelled."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()

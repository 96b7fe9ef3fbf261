"""Listens, serves, and ends in order.

Source: DESIGN 7, LAYOUT (walk-through 4). A signal cancels the one task that holds everything, wherever it is; what was
opened is closed in reverse: no more connections on any listener, idle streams end at once, calls finish within the
grace period. A second signal ends at once.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Coroutine
from typing import Any

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.log import server_logger

from config import children
from config.address import Address
from config.connections import DEFAULTS, Connections, Limits
from config.errors import StartFailed

log = structlog.get_logger(__name__)

_BACKLOG = 1_024
"""Connections that wait to be accepted; a burst of clients that reconnect is the ordinary case after a restart."""


def listen(address: Address, setting: str = "SLUICEGATE_LISTEN") -> socket.socket:
    """Take the port now, so that a start which cannot have it ends before it has touched anything.

    `setting` is the one that names the address.

    Raises:
        StartFailed: it is taken, or no address of this machine.
    """
    try:
        return socket.create_server((address.host, address.port), family=address.family, backlog=_BACKLOG)
    except OSError as exc:
        reason = os.strerror(exc.errno or 0)
        raise StartFailed(
            f"Cannot listen on {address}: {reason}; end what uses it, or set {setting} to another address."
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


Site = tuple[web.Application, socket.socket]
"""An application and where it is served."""


@contextlib.asynccontextmanager
async def serving(
    app: web.Application,
    listener: socket.socket,
    *more: Site,
    grace_s: float,
    limits: Limits = DEFAULTS,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[None]:
    """Serve `app` on `listener` while the context is open; leaving it waits up to `grace_s` for running calls.

    Args:
        more: begin after `app` and end before it, since they may live off what it opens.
        limits: of connections, for each listener.
        tls: for https on all listeners.
    """
    server_logger.addFilter(_WITHOUT_CONTENT)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(log.info, "server.stopped")
        doors = [(await _set_up(stack, site[0], grace_s, limits), site[1]) for site in ((app, listener), *more)]
        for door, at in doors:
            await _open(stack, door, at, tls)
        yield
        log.info("server.stopping", grace_s=grace_s)


async def _set_up(
    stack: contextlib.AsyncExitStack, app: web.Application, grace_s: float, limits: Limits
) -> Connections:
    runner = web.AppRunner(
        app,
        handler_cancellation=True,  # a client that goes away cancels its call downstream
        shutdown_timeout=grace_s,
    )
    stack.push_async_callback(runner.cleanup)
    await runner.setup()
    if runner.server is None:
        raise RuntimeError("a runner that is set up has a server")
    return Connections(runner.server, limits)


async def _open(
    stack: contextlib.AsyncExitStack, door: Connections, listener: socket.socket, tls: ssl.SSLContext | None
) -> None:
    timeout_s = door.limits.head_timeout_s if tls else None
    server = await asyncio.get_running_loop().create_server(
        door, sock=listener, ssl=tls, ssl_handshake_timeout=timeout_s, backlog=_BACKLOG
    )
    stack.callback(server.close)
    log.info("server.started", listen=listener.getsockname()[:2], tls=tls is not None)


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

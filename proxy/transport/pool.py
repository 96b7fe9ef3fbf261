"""Connections to downstreams: opened when they are needed, used again while they are whole.

Source: RFC 9112 section 9. A connection goes back when its answer was read to the end; one that has been idle for long
is ended, since the downstream may be about to do so.
"""

import asyncio
import contextlib
from dataclasses import dataclass

from proxy.transport.connection import Connection
from proxy.transport.connector import Connector

_IDLE_S = 15.0
"""Servers end idle connections after 5 s (uvicorn and Node) to 75 s (nginx); a request that meets the end is not sent
again, so we are rather early than late. What they have ended is noticed at once."""

_SWEEP_S = 5.0


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a connection goes; `host` as a resolver takes it, IPv6 without brackets."""

    host: str
    port: int
    is_secure: bool


class Pool:
    """All connections, by origin. `start` before use, `close` after it."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._idle: dict[Origin, list[Connection]] = {}
        self._sweeper: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to end what is idle for long."""
        self._sweeper = asyncio.get_running_loop().create_task(self._sweep())

    async def close(self) -> None:
        """End all that are idle."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sweeper
        for connection in (one for idle in self._idle.values() for one in idle):
            connection.close()
        self._idle.clear()

    async def take(self, origin: Origin, connect_timeout_s: float) -> Connection:
        """A connection that nobody else has. Raises TimeoutError, and as `Connector.connected`."""
        idle = self._idle.get(origin)
        while idle:
            connection = idle.pop()
            if connection.is_usable:
                return connection
        async with asyncio.timeout(connect_timeout_s):
            return await self._connector.connected(origin.host, origin.port, is_secure=origin.is_secure)

    def put(self, origin: Origin, connection: Connection) -> None:
        """Give one back, whatever became of it."""
        if connection.finish():
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.setdefault(origin, []).append(connection)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_S)
            before = asyncio.get_running_loop().time() - _IDLE_S
            for origin in tuple(self._idle):
                self._end_idle(origin, before)

    def _end_idle(self, origin: Origin, before: float) -> None:
        kept = []
        for connection in self._idle.pop(origin):
            if connection.is_usable and connection.idle_since > before:
                kept.append(connection)
            else:
                connection.close()
        if kept:
            self._idle[origin] = kept

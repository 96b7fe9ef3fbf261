"""How connections to downstreams are made: to addresses that were judged, with certificates that are verified.

Source: DESIGN 7 (Downstream addresses). The addresses that were judged are those that are connected to; the library's
own backend would look the name up once more.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field

import httpcore2

from registry.destinations import Destinations
from registry.downstream.lookup import lookup
from registry.errors import AddressRefused


def _default_destinations() -> Destinations:
    return Destinations(lookup=lookup)


@dataclass(frozen=True, slots=True)
class Network:
    """Where connections may go, and whose certificates are believed."""

    destinations: Destinations = field(default_factory=_default_destinations)
    tls: ssl.SSLContext = field(default_factory=ssl.create_default_context)


class JudgedBackend(httpcore2.AnyIOBackend):
    """Connects to the judged addresses of a host, one after another, each for its part of the time that is left."""

    def __init__(self, destinations: Destinations) -> None:
        super().__init__()
        self._destinations = destinations

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  the library's signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """As the library's."""
        connect, loop = super().connect_tcp, asyncio.get_running_loop()
        end = None if timeout is None else loop.time() + timeout
        *others, last = await self._judged(host, port, timeout)
        for left, address in zip(range(len(others) + 1, 1, -1), others, strict=True):
            part = None if end is None else max(0.0, end - loop.time()) / left
            with contextlib.suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout):
                return await connect(address, port, part, local_address, socket_options)
        rest = None if end is None else max(0.0, end - loop.time())
        return await connect(last, port, rest, local_address, socket_options)

    async def _judged(self, host: str, port: int, timeout_s: float | None) -> tuple[str, ...]:
        try:
            async with asyncio.timeout(timeout_s):
                return await self._destinations.addresses(host, port)
        except TimeoutError as exc:
            raise httpcore2.ConnectTimeout("the host's name was not resolved in time") from exc
        except OSError as exc:
            raise httpcore2.ConnectError(f"the host's name cannot be resolved: {exc}") from exc
        except AddressRefused as exc:
            raise httpcore2.ConnectError(str(exc)) from exc

"""Connects to downstreams: to those addresses alone that were judged; and says why it could not.

Source: DESIGN 7 (Downstream addresses); RFC 8305 section 5 for a name with several. A name may change its mind, so it
is looked up once, where it is judged, and the loop is given sockets that are connected already.
"""

import asyncio
import socket
import ssl
from typing import Any

import aiohappyeyeballs

from proxy.errors import DownstreamUnreachable
from proxy.ports import Addresses
from proxy.transport.connection import Connection

_RACE_S = 0.25
"""Before the next address of a name is tried beside one that does not answer (RFC 8305 section 5)."""

_CANNOT_BE_REACHED = "the downstream cannot be reached"


class Connector:
    """Makes connections. `tls` holds the certificates that are believed."""

    def __init__(self, addresses: Addresses, tls: ssl.SSLContext) -> None:
        self._addresses = addresses
        self._tls = tls

    async def connected(self, host: str, port: int, *, is_secure: bool) -> Connection:
        """A new connection.

        Args:
            host: as a resolver takes it, IPv6 without brackets.

        Raises:
            OSError: the name is not found, nobody listens, or TLS fails.
            DownstreamUnreachable: a rule refuses the host.
        """
        found = [_candidate(address, port) for address in await self._addresses(host, port)]
        made = await aiohappyeyeballs.start_connection(found, happy_eyeballs_delay=_RACE_S)
        _, connection = await asyncio.get_running_loop().create_connection(
            Connection,
            sock=made,
            ssl=self._tls if is_secure else None,
            server_hostname=host.rstrip(".") if is_secure else None,  # certificates name a host without the dot
        )
        return connection


def _candidate(address: str, port: int) -> tuple[Any, ...]:
    """As getaddrinfo(3) gives it."""
    family, where = (socket.AF_INET6, (address, port, 0, 0)) if ":" in address else (socket.AF_INET, (address, port))
    return family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", where


def unreachable(error: Exception) -> DownstreamUnreachable:
    """The error to raise; its cause tells a name, a certificate and a refused connection from each other."""
    return DownstreamUnreachable(_CANNOT_BE_REACHED, cause=f"{_CANNOT_BE_REACHED}: {_cause(error)}")


def _cause(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    if isinstance(error, (socket.gaierror, UnicodeError)):
        return "its name cannot be resolved"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__

"""Looks a host name up, as the system does it.

Source: getaddrinfo(3); `AI_ADDRCONFIG`: no address of a family that this machine does not have.
"""

import asyncio
import socket
from collections.abc import Sequence


async def lookup(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, in the system's order, each once; as `registry.destinations.Lookup`. Raises OSError."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    except UnicodeError as exc:
        raise socket.gaierror(socket.EAI_NONAME, "no host name") from exc
    return list(dict.fromkeys(_with_zone(*entry[4]) for entry in found))


def _with_zone(address: str, _port: int, _flow: int = 0, zone: int = 0) -> str:
    return f"{address}%{zone}" if zone and "%" not in address else address

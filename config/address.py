"""An IP address and a port to listen on.

Source: RFC 3986 section 3.2.2 (an IPv6 address in brackets). Names other than `localhost` are refused: a name may
stand for several addresses, and a server that listens on one of them by chance is a riddle for its operator.
"""

import ipaddress
import re
import socket
from dataclasses import dataclass
from typing import Any, Self

_FORM = re.compile(r"(?:\[(?P<six>[^\]]+)\]|(?P<four>[^:\[\]]+)):(?P<port>\d{1,5})")


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen. `port` 0 stands for any free one."""

    host: str
    port: int

    @classmethod
    def parse(cls, value: Any) -> Self:
        """Read `127.0.0.1:8470`, `localhost:8470`, `[::1]:0`. Raises ValueError."""
        if isinstance(value, cls):
            return value
        found = _FORM.fullmatch(str(value).strip())
        if found is None or int(found["port"]) > 65_535:
            raise ValueError("must be an IP address and a port, like 127.0.0.1:8470 or [::1]:8470")
        return cls(_ip(found["six"] or found["four"]), int(found["port"]))

    @property
    def url_host(self) -> str:
        """The host as a URL and a Host field spell it."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def family(self) -> socket.AddressFamily:
        """The socket family of the address."""
        return socket.AF_INET6 if ":" in self.host else socket.AF_INET

    def __str__(self) -> str:
        return f"{self.url_host}:{self.port}"


def _ip(host: str) -> str:
    try:
        return str(ipaddress.ip_address("127.0.0.1" if host == "localhost" else host))
    except ValueError:
        raise ValueError(f"must be an IP address and a port; {host!r} is no IP address") from None

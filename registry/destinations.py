"""Addresses of downstreams: judged when they are set, and again when they are connected to.

Source: DESIGN 7 (Downstream addresses). A name may change its mind: so whoever connects takes the addresses from here,
looks nothing up again, and connects to one of them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import urlsplit

from registry.addresses import literal
from registry.egress import Egress
from registry.errors import AddressRefused

LOOKUP_TIMEOUT_S = 3.0
"""For the look-up when an address is set, below what people wait for. A name that takes longer is judged at connect."""

Lookup = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a name, at least one, the preferred first; those of IPv6 may have a zone. Raises OSError."""


async def no_lookup(host: str, port: int) -> Sequence[str]:
    """Knows no name."""
    del port
    raise OSError(f"{host} is not looked up")


class Destinations:
    """Where downstreams may be, with the look-up that tells where they are."""

    def __init__(self, egress: Egress | None = None, lookup: Lookup = no_lookup) -> None:
        self._egress = egress if egress is not None else Egress()
        self._lookup = lookup

    async def addresses(self, host: str, port: int) -> tuple[str, ...]:
        """The addresses of this host that may be connected to, at least one, the preferred first.

        Raises:
            AddressRefused: it has none that may; its name is not looked up when it is refused by name.
            OSError: its name cannot be resolved.
        """
        if (fault := self._egress.fault(host)) is not None:
            raise AddressRefused(fault)
        if (spelled := literal(host)) is not None:
            return (str(spelled),)
        faults = {address: self._egress.fault(host, address) for address in await self._lookup(host, port)}
        usable = tuple(address for address, fault in faults.items() if fault is None)
        if not usable:
            raise AddressRefused(next((fault for fault in faults.values() if fault), "the host has no address"))
        return usable

    async def fault(self, url: str) -> str | None:
        """Why a downstream may not be at this URL, None when it may as far as can be told now.

        Args:
            url: absolute, as `registry.downstreams.url_fault` accepts it. A name that does not resolve is accepted.
        """
        parts = urlsplit(url)
        try:
            async with asyncio.timeout(LOOKUP_TIMEOUT_S):
                await self.addresses(parts.hostname or "", parts.port or 443)
        except AddressRefused as refused:
            return f"the url cannot be used: {refused}"
        except OSError:  # a TimeoutError is one
            return None
        return None

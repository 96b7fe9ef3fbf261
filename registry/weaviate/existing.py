"""`registry.ports.FlagStore` on Weaviate, for those who have not loaded the driver."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from registry.weaviate.address import Address, load_driver

if TYPE_CHECKING:
    from registry.weaviate.flags import FlagCollection


class ExistingCollection:
    """The collection of another registry. Objects in it are neither created nor removed; only their flag is set.

    Args:
        url: `http(s)://host[:port]`.
        grpc: `host:port`.
        api_key: None where anonymous access is enabled.
        collection: its name.
        server_property: names a server, by whatever the caller passes to `flags`.
        tool_property: names a tool.
        timeout_s: bounds each request.
    """

    def __init__(  # noqa: PLR0913  an address, and three names
        self,
        url: str,
        grpc: str,
        *,
        api_key: str | None = None,
        collection: str,
        server_property: str,
        tool_property: str,
        timeout_s: float = 5.0,
    ) -> None:
        self._address = Address(url, grpc, api_key, timeout_s)
        self._names = (collection, server_property, tool_property)
        self._flags: FlagCollection | None = None

    async def _opened(self) -> "FlagCollection":
        if self._flags is None:
            await load_driver()
            from registry.weaviate.flags import FlagCollection  # noqa: PLC0415  only now is its driver there

            self._flags = self._flags or FlagCollection(self._address, *self._names)
        return self._flags

    async def close(self) -> None:
        """End the connection."""
        if self._flags is not None:
            await self._flags.close()

    async def prepare(self) -> None:
        """As FlagStore.prepare."""
        await (await self._opened()).prepare()

    async def add_property(self) -> None:
        """As PropertyAdder.add_property."""
        await (await self._opened()).add_property()

    async def flags(self, server: str) -> Mapping[str, Sequence[tuple[str, bool | None]]]:
        """As FlagStore.flags."""
        return await (await self._opened()).flags(server)

    async def set_flags(self, flags: Mapping[str, bool]) -> None:
        """As FlagStore.set_flags."""
        await (await self._opened()).set_flags(flags)

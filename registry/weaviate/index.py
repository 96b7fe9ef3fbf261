"""`registry.ports.ToolIndex` on Weaviate, for those who have not loaded the driver."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from registry.indexing import Changes, Hit, SearchQuery, ToolEntry, Vector
from registry.weaviate.address import Address, load_driver

if TYPE_CHECKING:
    from registry.weaviate.collection import ToolCollection


class WeaviateIndex:
    """A collection that is ours alone: created, brought up to date and removed by us.

    Connects when first used, and again by itself after a failure.

    Args:
        url: `http(s)://host[:port]`.
        grpc: `host:port`.
        api_key: None where anonymous access is enabled.
        collection: the name of the collection.
        vectorizer: a module of Weaviate that makes the vectors (`text2vec-openai`); None: they are written with the
            entries.
        timeout_s: bounds each request.
    """

    def __init__(
        self,
        url: str,
        grpc: str,
        *,
        api_key: str | None = None,
        collection: str = "SluicegateTool",
        vectorizer: str | None = None,
        timeout_s: float = 5.0,
    ) -> None:
        self._address = Address(url, grpc, api_key, timeout_s)
        self._name = collection
        self._vectorizer = vectorizer
        self._collection: ToolCollection | None = None

    async def _opened(self) -> "ToolCollection":
        if self._collection is None:
            await load_driver()
            from registry.weaviate.collection import ToolCollection  # noqa: PLC0415  only now is its driver there

            self._collection = self._collection or ToolCollection(self._address, self._name, self._vectorizer)
        return self._collection

    async def close(self) -> None:
        """End the connection."""
        if self._collection is not None:
            await self._collection.close()

    async def prepare(self) -> None:
        """As ToolIndex.prepare."""
        await (await self._opened()).prepare()

    async def server_ids(self) -> frozenset[str]:
        """As ToolIndex.server_ids."""
        return await (await self._opened()).server_ids()

    async def stored(self, server_id: str) -> Mapping[str, ToolEntry]:
        """As ToolIndex.stored."""
        return await (await self._opened()).stored(server_id)

    async def write(self, changes: Changes, vectors: Mapping[str, Vector]) -> None:
        """As ToolIndex.write."""
        await (await self._opened()).write(changes, vectors)

    async def clear(self) -> None:
        """As ToolIndex.clear."""
        await (await self._opened()).clear()

    async def search(self, query: SearchQuery) -> Sequence[Hit]:
        """As ToolIndex.search."""
        return await (await self._opened()).search(query)

"""Our collection in Weaviate: `registry.ports.ToolIndex` with the driver loaded."""

import itertools
from collections.abc import Mapping, Sequence

from weaviate import WeaviateAsyncClient
from weaviate.classes.aggregate import GroupByAggregate
from weaviate.classes.query import Filter
from weaviate.collections.classes.config import CollectionConfig

from registry.indexing import Changes, Hit, SearchQuery, ToolEntry, Vector
from registry.weaviate import schema
from registry.weaviate.address import Address
from registry.weaviate.link import Link
from registry.weaviate.objects import STORED, to_entry
from registry.weaviate.searches import Searcher
from registry.weaviate.writes import Writer

_PAGE = 1_000
"""Objects that are read at a time. A cursor does not go with a filter, so pages are counted: 10,000 objects at most."""

_MOST_SERVERS = 100_000
"""Groups that are asked for; without a number it answers with the first 100."""


class ToolCollection:
    """See WeaviateIndex."""

    def __init__(self, address: Address, name: str, vectorizer: str | None) -> None:
        self._name = name
        self._vectorizer = vectorizer
        self._link = Link(address)
        makes_vectors = vectorizer is not None
        self._writer = Writer(self._link, name, makes_vectors=makes_vectors)
        self._searcher = Searcher(self._link, name, makes_vectors=makes_vectors)

    async def close(self) -> None:
        """End the connection."""
        await self._link.close()

    async def prepare(self) -> None:
        """As ToolIndex.prepare."""
        found = await self._link.ask(schema.read, self._name)
        if found is not None:
            schema.check_ours(found)
            if found.description == schema.described(self._vectorizer):
                await self._complete(found)
                return
            await self._link.ask(schema.remove, self._name)
        await self._link.ask(schema.create, self._name, self._vectorizer)

    async def _complete(self, found: CollectionConfig) -> None:
        for lacking in schema.lacking(found):
            await self._link.ask(schema.add, self._name, lacking)

    async def clear(self) -> None:
        """As ToolIndex.clear."""
        found = await self._link.ask(schema.read, self._name)
        if found is not None:
            schema.check_ours(found)
            await self._link.ask(schema.remove, self._name)

    async def server_ids(self) -> frozenset[str]:
        """As ToolIndex.server_ids."""
        return await self._link.ask(self._servers)

    async def _servers(self, client: WeaviateAsyncClient) -> frozenset[str]:
        by_server = GroupByAggregate(prop="server_id", limit=_MOST_SERVERS)
        found = await client.collections.use(self._name).aggregate.over_all(group_by=by_server)
        return frozenset(str(group.grouped_by.value) for group in found.groups)

    async def stored(self, server_id: str) -> Mapping[str, ToolEntry]:
        """As ToolIndex.stored."""
        entries: dict[str, ToolEntry] = {}
        for offset in itertools.count(0, _PAGE):
            page = await self._link.ask(self._page, server_id, offset)
            entries |= page
            if len(page) < _PAGE:
                break
        return entries

    async def _page(self, client: WeaviateAsyncClient, server_id: str, offset: int) -> Mapping[str, ToolEntry]:
        found = await client.collections.use(self._name).query.fetch_objects(
            filters=Filter.by_property("server_id").equal(server_id),
            limit=_PAGE,
            offset=offset,
            return_properties=list(STORED),
        )
        return {str(item.uuid): to_entry(item.properties) for item in found.objects}

    async def write(self, changes: Changes, vectors: Mapping[str, Vector]) -> None:
        """As ToolIndex.write."""
        await self._writer.apply(changes, vectors)

    async def search(self, query: SearchQuery) -> Sequence[Hit]:
        """As ToolIndex.search."""
        return await self._searcher.search(query)

"""The collection of another registry: `registry.ports.FlagStore` with the driver loaded.

Invariant: nothing but `tool_enabled` is written, and that by PATCH, which leaves vectors and other properties alone.
"""

import itertools
from collections.abc import Mapping, Sequence

from weaviate import WeaviateAsyncClient
from weaviate.classes.config import DataType, Property
from weaviate.classes.query import Filter
from weaviate.collections.classes.config import CollectionConfig
from weaviate.exceptions import WeaviateQueryError

from registry.errors import IndexUnusable
from registry.weaviate import schema
from registry.weaviate.address import Address
from registry.weaviate.faults import what_it_said
from registry.weaviate.link import Link
from registry.weaviate.writes import patched

FLAG = "tool_enabled"
"""The property that is ours to set."""

_PAGE = 1_000
"""Objects that are read at a time; 10,000 of one server at most."""

Flags = dict[str, list[tuple[str, bool | None]]]


class FlagCollection:
    """See ExistingCollection."""

    def __init__(self, address: Address, name: str, server_property: str, tool_property: str) -> None:
        self._link = Link(address)
        self._name = name
        self._server = server_property
        self._tool = tool_property

    async def close(self) -> None:
        """End the connection."""
        await self._link.close()

    async def prepare(self) -> None:
        """As FlagStore.prepare."""
        kinds = await self._checked()
        if kinds.get(FLAG) is not DataType.BOOL:
            raise IndexUnusable(f"the collection {self._name} has no property {FLAG}: run `sluicegate mirror prepare`")

    async def add_property(self) -> None:
        """As PropertyAdder.add_property."""
        kinds = await self._checked()
        if FLAG not in kinds:
            flag = Property(name=FLAG, data_type=DataType.BOOL, index_filterable=True, skip_vectorization=True)
            await self._link.ask(schema.add, self._name, flag)

    async def _checked(self) -> Mapping[str, DataType]:
        """The types of its properties. Raises IndexUnusable when it is not a collection to look for tools in."""
        found = await self._link.ask(schema.read, self._name)
        if found is None:
            raise IndexUnusable(
                f"there is no collection {self._name} in Weaviate: see SLUICEGATE_WEAVIATE_EXISTING_COLLECTION"
            )
        if found.multi_tenancy_config.enabled:
            raise IndexUnusable(f"the collection {self._name} is divided by tenants, which is not supported")
        kinds = {known.name: known.data_type for known in found.properties}
        self._check_names(found, kinds)
        if kinds.get(FLAG, DataType.BOOL) is not DataType.BOOL:
            raise IndexUnusable(f"the property {FLAG} of {self._name} is {kinds[FLAG].value}, it should be boolean")
        return kinds

    def _check_names(self, found: CollectionConfig, kinds: Mapping[str, DataType]) -> None:
        for name, setting in ((self._server, "SERVER"), (self._tool, "TOOL")):
            if kinds.get(name) is not DataType.TEXT:
                raise IndexUnusable(
                    f"the collection {self._name} has no text property {name}:"
                    f" see SLUICEGATE_WEAVIATE_EXISTING_{setting}_PROPERTY"
                )
        if not any(known.index_filterable for known in found.properties if known.name == self._server):
            raise IndexUnusable(f"the property {self._server} of {self._name} cannot be filtered by")

    async def flags(self, server: str) -> Mapping[str, Sequence[tuple[str, bool | None]]]:
        """As FlagStore.flags."""
        flags: Flags = {}
        for offset in itertools.count(0, _PAGE):
            count = await self._link.ask(self._collect, server, offset, flags)
            if count < _PAGE:
                break
        return flags

    async def _collect(self, client: WeaviateAsyncClient, server: str, offset: int, flags: Flags) -> int:
        """Add one page; returns how many objects were in it."""
        try:
            found = await client.collections.use(self._name).query.fetch_objects(
                filters=Filter.by_property(self._server).equal(server),
                limit=_PAGE,
                offset=offset,
                return_properties=[self._server, self._tool, FLAG],
            )
        except WeaviateQueryError as exc:
            if "stopwords" not in what_it_said(exc):
                raise
            return 0  # split into words, nothing of the name is left that could be looked for
        for item in found.objects:
            # a property that is split into words is found by a part of it
            if item.properties[self._server] == server:
                flag = item.properties[FLAG]
                key = (str(item.uuid), flag if isinstance(flag, bool) else None)
                flags.setdefault(str(item.properties[self._tool]), []).append(key)
        return len(found.objects)

    async def set_flags(self, flags: Mapping[str, bool]) -> None:
        """As FlagStore.set_flags."""
        await patched(self._link, self._name, {key: {FLAG: flag} for key, flag in flags.items()})

"""The collection of another registry in a real Weaviate: its flag is set, and nothing else is touched."""

import uuid
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from registry.errors import IndexUnavailable, IndexUnusable
from registry.ports import FlagStore
from registry.weaviate import ExistingCollection
from tests import weaviate_server
from tests.weaviate_server import WeaviateServer

weaviate_process, weaviate, collection = weaviate_server.FIXTURES
pytestmark = pytest.mark.timeout(10, func_only=True)  # the server's start is bounded by itself

SERVER = {"name": "serverPath", "dataType": ["text"]}
TOOL = {"name": "toolName", "dataType": ["text"]}
FLAG = {"name": "tool_enabled", "dataType": ["boolean"]}


class Registry:
    """The other registry: it makes the collection and its objects in its own way."""

    def __init__(self, server: WeaviateServer, name: str) -> None:
        self._server = server
        self.name = name

    def create(self, *properties: Mapping[str, Any], **more: object) -> None:
        schema = {"class": self.name, "vectorizer": "none", "properties": list(properties), **more}
        self._server.ask("POST", "/v1/schema", schema)

    def add(self, server: str, tool: str, **more: object) -> str:
        key = str(uuid.uuid4())
        properties = {"serverPath": server, "toolName": tool, **more}
        made = {"class": self.name, "id": key, "properties": properties, "vector": [0.5, 0.25]}
        self._server.ask("POST", "/v1/objects", made)
        return key

    def object(self, key: str) -> Any:
        return self._server.ask("GET", f"/v1/objects/{self.name}/{key}?include=vector")

    def schema(self) -> Any:
        return self._server.ask("GET", f"/v1/schema/{self.name}")

    def opened(self, **names: str) -> ExistingCollection:
        chosen: dict[str, Any] = {"server_property": "serverPath", "tool_property": "toolName", **names}
        return ExistingCollection(self._server.url, self._server.grpc, collection=self.name, **chosen)


@pytest.fixture
def registry(weaviate: WeaviateServer, collection: str) -> Registry:
    return Registry(weaviate, collection)


@pytest.fixture
async def existing(registry: Registry) -> AsyncIterator[ExistingCollection]:
    """Ours, not prepared."""
    existing = registry.opened()
    yield existing
    await existing.close()


def test_it_is_a_flag_store(existing: ExistingCollection) -> None:
    port: FlagStore = existing
    assert port is existing


async def test_a_collection_that_has_all_is_good(registry: Registry, existing: ExistingCollection) -> None:
    registry.create(SERVER, TOOL, FLAG)
    before = registry.schema()

    await existing.prepare()
    await existing.add_property()

    assert registry.schema() == before


async def test_a_missing_collection_is_told_and_not_made(registry: Registry, existing: ExistingCollection) -> None:
    for method in (existing.prepare, existing.add_property):
        with pytest.raises(IndexUnusable, match=f"{registry.name}.*SLUICEGATE_WEAVIATE_EXISTING_COLLECTION"):
            await method()

    with pytest.raises(OSError, match="404"):
        registry.schema()


async def test_missing_names_are_told_with_their_setting(registry: Registry) -> None:
    registry.create(SERVER, TOOL, FLAG)

    for names, setting in (
        ({"server_property": "nope"}, "SLUICEGATE_WEAVIATE_EXISTING_SERVER_PROPERTY"),
        ({"tool_property": "tool_enabled"}, "SLUICEGATE_WEAVIATE_EXISTING_TOOL_PROPERTY"),
    ):
        existing = registry.opened(**names)
        with pytest.raises(IndexUnusable, match=f"no text property {next(iter(names.values()))}.*{setting}"):
            await existing.prepare()
        await existing.close()


async def test_a_missing_flag_names_the_command_that_adds_it(registry: Registry, existing: ExistingCollection) -> None:
    registry.create(SERVER, TOOL)
    key = registry.add("/hub", "read")
    with pytest.raises(IndexUnusable, match="`sluicegate mirror prepare`"):
        await existing.prepare()

    await existing.add_property()

    await existing.prepare()
    (added,) = [known for known in registry.schema()["properties"] if known["name"] == "tool_enabled"]
    assert (added["dataType"], added["indexFilterable"]) == (["boolean"], True)
    assert await existing.flags("/hub") == {"read": [(key, None)]}


async def test_a_flag_of_another_type_is_told(registry: Registry, existing: ExistingCollection) -> None:
    registry.create(SERVER, TOOL, {"name": "tool_enabled", "dataType": ["text"]})

    for method in (existing.prepare, existing.add_property):
        with pytest.raises(IndexUnusable, match="should be boolean"):
            await method()


async def test_what_cannot_be_asked_for_is_told(registry: Registry, existing: ExistingCollection) -> None:
    registry.create({**SERVER, "indexFilterable": False}, TOOL, FLAG)

    with pytest.raises(IndexUnusable, match="cannot be filtered by"):
        await existing.prepare()


async def test_tenants_are_told(registry: Registry, existing: ExistingCollection) -> None:
    registry.create(SERVER, TOOL, FLAG, multiTenancyConfig={"enabled": True})

    with pytest.raises(IndexUnusable, match="tenants"):
        await existing.prepare()


async def test_flags_are_those_of_the_server_alone(registry: Registry, existing: ExistingCollection) -> None:
    """A text is split into words there unless its maker chose otherwise: /hub/two holds the word hub, too."""
    registry.create(SERVER, TOOL, FLAG)
    on, off = registry.add("/hub", "on", tool_enabled=True), registry.add("/hub", "off", tool_enabled=False)
    unset, twin = registry.add("/hub", "unset"), registry.add("/hub", "on", tool_enabled=False)
    for other in ("/hub/two", "/HUB", "hub"):
        registry.add(other, "on")

    flags = {tool: sorted(found) for tool, found in (await existing.flags("/hub")).items()}

    assert flags == {"on": sorted([(on, True), (twin, False)]), "off": [(off, False)], "unset": [(unset, None)]}
    assert await existing.flags("/nobody") == {}


@pytest.mark.parametrize("path", ["/the", "/", "/a/is"])
async def test_a_server_named_like_a_stop_word_has_no_flags(
    registry: Registry, existing: ExistingCollection, path: str
) -> None:
    """Nothing of it is left to be looked for; it must not stop the others from being mirrored."""
    registry.create(SERVER, TOOL, FLAG)
    registry.add(path, "read")

    assert await existing.flags(path) == {}


async def test_setting_a_flag_leaves_all_else_alone(registry: Registry, existing: ExistingCollection) -> None:
    registry.create(SERVER, TOOL, FLAG)
    keys = [registry.add("/hub", f"t{number}") for number in range(10)]
    before = [registry.object(key) for key in keys]

    await existing.set_flags({key: number % 2 == 0 for number, key in enumerate(keys)})

    for number, (key, old) in enumerate(zip(keys, before, strict=True)):
        new = registry.object(key)
        assert new["properties"] == {**old["properties"], "tool_enabled": number % 2 == 0}
        assert new["vector"] == old["vector"]


async def test_an_object_that_is_gone_is_passed_over(registry: Registry, existing: ExistingCollection) -> None:
    registry.create(SERVER, TOOL, FLAG)
    key, gone = registry.add("/hub", "read"), str(uuid.uuid4())

    await existing.set_flags({gone: True, key: True})

    assert await existing.flags("/hub") == {"read": [(key, True)]}
    with pytest.raises(OSError, match="404"):
        registry.object(gone)


async def test_a_frozen_server_is_unavailable(
    registry: Registry, existing: ExistingCollection, weaviate: WeaviateServer
) -> None:
    registry.create(SERVER, TOOL, FLAG)
    hasty = ExistingCollection(
        weaviate.url,
        weaviate.grpc,
        collection=registry.name,
        server_property="serverPath",
        tool_property="toolName",
        timeout_s=0.5,
    )
    await hasty.prepare()
    weaviate.freeze()

    for method in (hasty.prepare(), hasty.flags("/hub"), hasty.set_flags({str(uuid.uuid4()): True})):
        with pytest.raises(IndexUnavailable):
            await method
    await hasty.close()

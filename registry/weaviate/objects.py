"""Entries as Weaviate's objects, and back."""

from array import array
from collections.abc import Mapping
from typing import TypeAlias

from weaviate.classes.data import DataObject
from weaviate.collections.classes.types import WeaviateField
from weaviate.types import VECTORS

from registry.indexing import ToolEntry, Vector, searched_terms
from registry.weaviate.schema import VECTOR

STORED = (
    "server_id",
    "server_path",
    "server_name",
    "tool",
    "text",
    "tool_enabled",
    "server_enabled",
    "revision",
    "vector_source",
)
"""The properties that an entry is read from."""

Properties: TypeAlias = Mapping[str, WeaviateField]
Object: TypeAlias = DataObject[Properties, None]


def to_object(entry: ToolEntry, vector: Vector | None) -> Object:
    """The whole object. It names the source of its vector only when it has one."""
    properties: Properties = {
        **flags_of(entry),
        "server_id": entry.server_id,
        "server_path": entry.server_path,
        "server_name": entry.server_name,
        "tool": entry.tool,
        "text": entry.text,
        "terms": " ".join(searched_terms(entry)),
        "vector_source": entry.vector_source if vector else "",
    }
    vectors: VECTORS | None = {VECTOR: vector.tolist()} if vector else None
    return DataObject(properties=properties, uuid=entry.id, vector=vectors)


def flags_of(entry: ToolEntry) -> Properties:
    """The properties that a flip sets."""
    return {
        "tool_enabled": entry.tool_enabled,
        "server_enabled": entry.server_enabled,
        "revision": entry.revision,
    }


def to_entry(properties: Mapping[str, object]) -> ToolEntry:
    """What is missing, which only another writer can bring about, differs from anything that is wanted."""
    revision = properties.get("revision")
    return ToolEntry(
        server_id=_text(properties, "server_id"),
        server_path=_text(properties, "server_path"),
        server_name=_text(properties, "server_name"),
        tool=_text(properties, "tool"),
        text=_text(properties, "text"),
        tool_enabled=properties.get("tool_enabled") is True,
        server_enabled=properties.get("server_enabled") is True,
        revision=revision if isinstance(revision, int) else 0,
        vector_source=_text(properties, "vector_source"),
    )


def _text(properties: Mapping[str, object], name: str) -> str:
    return str(properties.get(name) or "")


def to_vector(vectors: Mapping[str, object]) -> Vector | None:
    """The vector of a fetched object, None when it has none."""
    found = vectors.get(VECTOR)
    return array("f", found) if isinstance(found, list) and found else None

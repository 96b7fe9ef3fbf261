"""The collection that we make, and what may be wrong with one that is there.

Source: WEAVIATE; DESIGN 6. Its description says that it is ours, and by what rules it was built: when those change, it
is made anew. Words are ranked through `terms`, which holds stems made here, so that Weaviate splits at spaces alone.
"""

from typing import Any

from weaviate import WeaviateAsyncClient
from weaviate.classes.config import (
    Configure,
    DataType,
    Property,
    StopwordsPreset,
    Tokenization,
    VectorDistances,
)
from weaviate.collections.classes.config import CollectionConfig
from weaviate.exceptions import UnexpectedStatusCodeError

from registry.errors import IndexUnavailable, IndexUnusable
from registry.weaviate.faults import status_of, what_it_said
from registry.words import FORM

VECTOR = "default"
"""The name of the only vector."""

_MARK = "Made by Sluicegate"
"""Begins the description of every collection that is ours to change and to remove."""


def described(vectorizer: str | None) -> str:
    """The description of a collection that is up to date."""
    return f"{_MARK} from its registry, and made anew as needed: form={FORM} vectorizer={vectorizer or 'none'}"


def _named(name: str) -> Property:
    """A text that is compared whole."""
    return _property(name, DataType.TEXT, tokenization=Tokenization.FIELD, index_filterable=True)


def _property(name: str, kind: DataType, **indexes: Any) -> Property:
    return Property(
        name=name,
        data_type=kind,
        skip_vectorization=name != "text",
        vectorize_property_name=False,
        **({"index_filterable": False} | ({"index_searchable": False} if kind is DataType.TEXT else {}) | indexes),
    )


PROPERTIES = (
    _named("server_id"),
    _named("server_path"),
    _named("server_name"),
    _named("tool"),
    _property("text", DataType.TEXT),
    _property("terms", DataType.TEXT, tokenization=Tokenization.WHITESPACE, index_searchable=True),
    _property("tool_enabled", DataType.BOOL, index_filterable=True),
    _property("server_enabled", DataType.BOOL, index_filterable=True),
    _property("revision", DataType.INT),
    _named("vector_source"),
)


async def read(client: WeaviateAsyncClient, name: str) -> CollectionConfig | None:
    """The collection as it is, None when there is none."""
    try:
        return await client.collections.use(name).config.get()
    except UnexpectedStatusCodeError as exc:
        if status_of(exc) != 404:
            raise
        return None
    except (KeyError, ValueError) as exc:
        raise IndexUnusable(
            f"the schema of {name} cannot be read; an older Weaviate client made nothing like it"
        ) from exc


async def exists(client: WeaviateAsyncClient, name: str) -> bool:
    """True when there is a collection of this name."""
    return await client.collections.exists(name)


async def remove(client: WeaviateAsyncClient, name: str) -> None:
    """Remove it with all objects; nothing when there is none."""
    await client.collections.delete(name)


async def add(client: WeaviateAsyncClient, name: str, lacking: Property) -> None:
    """Add a property to it."""
    await client.collections.use(name).config.add_property(lacking)


async def create(client: WeaviateAsyncClient, name: str, vectorizer: str | None) -> None:
    """Make it."""
    index = Configure.VectorIndex.hnsw(distance_metric=VectorDistances.COSINE)
    vectors = (
        Configure.Vectors.self_provided(name=VECTOR, vector_index_config=index)
        if vectorizer is None
        else Configure.Vectors.custom(
            name=VECTOR,
            module_name=vectorizer,
            module_config={"vectorizeClassName": False},
            source_properties=["text"],
            vector_index_config=index,
        )
    )
    words = Configure.inverted_index(bm25_k1=1.2, bm25_b=0.75, stopwords_preset=StopwordsPreset.NONE)
    try:
        await client.collections.create(
            name,
            description=described(vectorizer),
            properties=PROPERTIES,
            inverted_index_config=words,
            vector_config=vectors,
        )
    except UnexpectedStatusCodeError as exc:
        if status_of(exc) != 422:
            raise
        raise _not_made(name, what_it_said(exc)) from exc


def _not_made(name: str, said: str) -> IndexUnavailable | IndexUnusable:
    if "already exists" in said:
        return IndexUnavailable(f"the collection {name} is being made by another replica")
    return IndexUnusable(f"Weaviate does not make the collection {name}, see SLUICEGATE_WEAVIATE_VECTORIZER: {said}")


def check_ours(found: CollectionConfig) -> None:
    """Raise IndexUnusable when it is not ours, and so not ours to change."""
    if not (found.description or "").startswith(_MARK):
        raise clash(found.name, "was not made by Sluicegate")


def lacking(found: CollectionConfig) -> list[Property]:
    """The properties that it lacks. Raises IndexUnusable when one is of another type."""
    kinds = {known.name: known.data_type for known in found.properties}
    for wanted in PROPERTIES:
        if kinds.get(wanted.name, wanted.dataType) != wanted.dataType:
            raise clash(found.name, f"has a property {wanted.name} of type {kinds[wanted.name].value}")
    return [wanted for wanted in PROPERTIES if wanted.name not in kinds]


def clash(name: str, what: str) -> IndexUnusable:
    """A collection of that name is somebody else's, or was changed."""
    return IndexUnusable(
        f"schema clash: the collection {name} {what}; name another one with SLUICEGATE_WEAVIATE_COLLECTION"
    )

"""Searches our collection.

Source: Weaviate hybrid search, relativeScoreFusion: of each ranking the best 100 (or `limit`, if more), their scores
spread over 0 to 1, added with weights.
"""

from collections.abc import Sequence

from weaviate import WeaviateAsyncClient
from weaviate.classes.query import Filter, HybridFusion, HybridVector, MetadataQuery
from weaviate.collections.classes.filters import FilterReturn
from weaviate.collections.classes.grpc import HybridVectorType

from registry.indexing import Hit, SearchQuery
from registry.weaviate.link import Link
from registry.weaviate.schema import VECTOR
from registry.words import stems

ALPHA = 0.7
"""Weight of the vectors, as in the local index."""

MOST_HITS = 10_000
"""QUERY_MAXIMUM_RESULTS of Weaviate: it answers no query for more."""


class Searcher:
    """Searches one collection.

    Args:
        makes_vectors: a module of Weaviate makes the vector, out of the query's text.
    """

    def __init__(self, link: Link, collection: str, *, makes_vectors: bool) -> None:
        self._link = link
        self._name = collection
        self._makes_vectors = makes_vectors

    async def search(self, query: SearchQuery) -> Sequence[Hit]:
        """As ToolIndex.search."""
        terms = " ".join(stems(query.text))
        vector = self._vector(query, terms)
        if not (terms or vector) or (query.servers is not None and not query.servers):
            return ()
        hits = await self._link.ask(self._hits, query, terms, vector)
        return sorted(hits, key=lambda hit: (-hit.score, hit.server_id, hit.tool))

    def _vector(self, query: SearchQuery, terms: str) -> HybridVectorType | None:
        if self._makes_vectors:
            # a sentence is embedded as it is; stems would be no sentence
            return HybridVector.near_text(query.text.encode("utf-8", "replace").decode()) if terms else None
        return query.vector.tolist() if query.vector else None

    async def _hits(
        self, client: WeaviateAsyncClient, query: SearchQuery, terms: str, vector: HybridVectorType | None
    ) -> list[Hit]:
        found = await client.collections.use(self._name).query.hybrid(
            terms or None,
            query_properties=["terms"],
            vector=vector,
            target_vector=VECTOR,
            alpha=ALPHA if vector else 0,
            fusion_type=HybridFusion.RELATIVE_SCORE,
            filters=_filters(query),
            limit=min(query.limit, MOST_HITS),
            return_metadata=MetadataQuery(score=True),
            return_properties=["server_id", "tool"],
        )
        return [
            Hit(str(item.properties["server_id"]), str(item.properties["tool"]), item.metadata.score or 0.0)
            for item in found.objects
        ]


def _filters(query: SearchQuery) -> FilterReturn | None:
    wanted: list[FilterReturn] = []
    if query.only_enabled:
        wanted += [Filter.by_property(flag).equal(True) for flag in ("tool_enabled", "server_enabled")]
    if query.servers is not None:
        wanted.append(Filter.by_property("server_id").contains_any(sorted(query.servers)))
    return Filter.all_of(wanted) if wanted else None

"""Writes changes to our collection.

Source: WEAVIATE (cost of N changes). A flip alone is a PATCH, which leaves the vector as it is; many are one batch,
which has to carry the vector again, since it would be dropped.
"""

import asyncio
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from weaviate import WeaviateAsyncClient
from weaviate.classes.query import Filter
from weaviate.exceptions import UnexpectedStatusCodeError, WeaviateInsertManyAllFailedError

from registry.errors import IndexUnavailable
from registry.indexing import Changes, ToolEntry, Vector
from registry.weaviate import schema
from registry.weaviate.faults import from_words, is_of_other_length, status_of, what_it_said
from registry.weaviate.link import Link
from registry.weaviate.objects import Object, Properties, flags_of, to_object, to_vector

FEW = 4
"""Flips up to here are cheaper one by one: 1.2 ms each, against 7 ms for a batch and the vectors to be fetched."""

BATCH = 200
"""Objects per request: with vectors about a megabyte."""

AT_ONCE = 8
"""Requests at a time for one write."""

Item = TypeVar("Item")


class Writer:
    """Writes to one collection.

    Args:
        makes_vectors: a module of Weaviate makes the vectors, out of the text.
    """

    def __init__(self, link: Link, collection: str, *, makes_vectors: bool) -> None:
        self._link = link
        self._name = collection
        self._makes_vectors = makes_vectors

    async def apply(self, changes: Changes, vectors: Mapping[str, Vector]) -> None:
        """As ToolIndex.write."""
        await self._remove(changes.removals)
        flips = list(changes.flips)
        if self._makes_vectors or (not changes.upserts and len(flips) <= FEW):
            flips = await self._patch(flips)
        if flips or changes.upserts:
            await self._insert(flips, changes.upserts, vectors)

    async def _remove(self, keys: Iterable[str]) -> None:
        for some in batches(sorted(keys), BATCH):
            failed = await self._link.ask(self._delete, some)
            if failed:
                raise IndexUnavailable(f"Weaviate at {self._link.url} did not remove {failed} objects")

    async def _delete(self, client: WeaviateAsyncClient, keys: Sequence[str]) -> int:
        """Returns how many could not be removed."""
        where = Filter.by_id().contains_any(keys)
        return (await client.collections.use(self._name).data.delete_many(where=where)).failed

    async def _patch(self, flips: Sequence[ToolEntry]) -> list[ToolEntry]:
        """Set their flags; returns those that are not there."""
        flags = {entry.id: flags_of(entry) for entry in flips}
        gone = await patched(self._link, self._name, flags)
        return [entry for entry in flips if entry.id in gone]

    async def _insert(
        self, flips: Sequence[ToolEntry], upserts: Sequence[ToolEntry], vectors: Mapping[str, Vector]
    ) -> None:
        await self._must_exist()
        kept = await self._kept_vectors([entry for entry in flips if entry.vector_source], vectors)
        objects = [to_object(entry, vectors.get(entry.text) if entry.vector_source else None) for entry in upserts]
        objects += [to_object(entry, kept.get(entry.id)) for entry in flips]
        for some in batches(objects, BATCH):
            await self._insert_batch(some)
        if any(item.vector for item in objects):
            await self._insert_batch(objects[-1:])  # a server that is killed forgets the vectors of its last batch

    async def _must_exist(self) -> None:
        """A server with auto-schema would make a collection of its own out of what we insert."""
        if not await self._link.ask(schema.exists, self._name):
            raise IndexUnavailable(f"the collection {self._name} is gone; it will be made anew")

    async def _kept_vectors(self, flips: Sequence[ToolEntry], vectors: Mapping[str, Vector]) -> Mapping[str, Vector]:
        """By id: as given, else as stored."""
        kept = {entry.id: vectors[entry.text] for entry in flips if entry.text in vectors}
        for some in batches([entry.id for entry in flips if entry.id not in kept], BATCH):
            kept |= await self._link.ask(self._fetch_vectors, some)
        return kept

    async def _fetch_vectors(self, client: WeaviateAsyncClient, keys: Sequence[str]) -> Mapping[str, Vector]:
        found = await client.collections.use(self._name).query.fetch_objects_by_ids(
            keys, limit=len(keys), include_vector=True, return_properties=[]
        )
        vectors = ((str(item.uuid), to_vector(item.vector)) for item in found.objects)
        return {key: vector for key, vector in vectors if vector is not None}

    async def _insert_batch(self, objects: Sequence[Object]) -> None:
        failed = await self._link.ask(self._failures, objects)
        if not failed:
            return
        if any(map(is_of_other_length, failed)):
            await self._link.ask(schema.remove, self._name)
            raise IndexUnavailable(f"the vectors in {self._name} are of another length; it will be made anew")
        raise from_words(failed[0], self._link.url)

    async def _failures(self, client: WeaviateAsyncClient, objects: Sequence[Object]) -> list[str]:
        """What Weaviate said about the objects that it did not take."""
        try:
            done = await client.collections.use(self._name).data.insert_many(list(objects))
        except WeaviateInsertManyAllFailedError as exc:
            return [what_it_said(exc)]
        return [error.message for error in done.errors.values()]


async def patched(link: Link, collection: str, properties: Mapping[str, Properties]) -> Collection[str]:
    """Set these properties of these objects, by id; returns the ids of objects that are not there."""
    gone: set[str] = set()
    for some in batches(list(properties), AT_ONCE):
        requests = (link.ask(_patch, collection, key, properties[key]) for key in some)
        # all have ended before the first failure is told: nothing goes on behind our back
        for key, answer in zip(some, await asyncio.gather(*requests, return_exceptions=True), strict=True):
            if isinstance(answer, BaseException):
                raise answer
            if not answer:
                gone.add(key)
    return gone


async def _patch(client: WeaviateAsyncClient, collection: str, key: str, properties: Properties) -> bool:
    """False when the object is not there."""
    try:
        await client.collections.use(collection).data.update(uuid=key, properties=properties)
    except UnexpectedStatusCodeError as exc:
        if status_of(exc) != 404:
            raise
        return False
    return True


def batches(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """The items in order, `size` at a time."""
    return (items[start : start + size] for start in itertools.takewhile(len(items).__gt__, itertools.count(0, size)))

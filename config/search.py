"""Puts discovery together: catalogue, vectors, indexes, mirrors.

Source: DESIGN 6. The local index is always there: it is what is searched without Weaviate, and when Weaviate is down.
"""

import asyncio
import socket
import uuid
from collections.abc import Mapping, Sequence

import structlog

from config.authority import Authority
from config.background import Work
from config.progress import IndexingProgress
from config.settings import Settings
from registry.catalogue import Catalogue
from registry.discovery import Discovery, Indexes
from registry.embeddings import MiniLm, NoVectors, SqliteVectors
from registry.errors import EmbedderUnusable
from registry.lease import Leadership
from registry.localindex import LocalIndex
from registry.mirror import Mirror
from registry.mirroring import MirrorState, MirrorStatus, Order
from registry.mirrors import Mirrors
from registry.ports import Embedder, LeaseStore, ServerStore, VectorCache
from registry.targets import FlagTarget, IndexTarget
from registry.vectors import Vectors
from registry.weaviate import ExistingCollection, WeaviateIndex

log = structlog.get_logger(__name__)


class Search:
    """Discovery and what it rests on. `works` are to be run; `close` is called when they have ended."""

    def __init__(self, settings: Settings, servers: ServerStore, leases: LeaseStore, authority: Authority) -> None:
        self._settings = settings
        self._catalogue = Catalogue(servers, authority.feed)
        self._vectors = Vectors(self._embedder, _cache(settings), IndexingProgress().tell)
        local = LocalIndex()
        self._local = self._mirror("local", IndexTarget(local, self._catalogue, self._vectors))
        self._remote: list[Mirror] = []
        self._weaviate = self._weaviate_index()
        self._existing = self._existing_collection()
        self._leadership = Leadership(leases, _holder(), self._statuses, self._obey)
        indexes = Indexes(
            local,
            self._weaviate,
            is_ready=self._is_mirrored,
            is_fallback_ready=self._is_indexed,
            timeout_s=settings.search_timeout_s,
        )
        self.discovery = Discovery(indexes, self._catalogue, self._vectors, authority.facts)
        self.mirrors = Mirrors(authority.fresh, self._local, leases if self._remote else None, self._existing)

    @property
    def works(self) -> Mapping[str, Work]:
        """What runs in the background, by name."""
        works: dict[str, Work] = {
            "catalogue": self._catalogue.run,
            "vectors": self._vectors.run,
            "local index": self._local.run,
        }
        return works | ({"mirror": lambda: self._leadership.run(self._mirror_all)} if self._remote else {})

    def statuses(self) -> Sequence[MirrorStatus]:
        """Every mirror of this process as it is now, the local index first."""
        return [self._local.status, *self._statuses()]

    async def close(self) -> None:
        """End connections and threads."""
        for edge in (self._weaviate, self._existing, self._vectors):
            if edge is not None:
                await edge.close()

    def _mirror(self, name: str, target: IndexTarget | FlagTarget) -> Mirror:
        mirror = Mirror(name, target, reconcile_s=self._settings.mirror_reconcile_s)
        self._catalogue.listen(mirror.offer)
        if isinstance(target, IndexTarget):
            target.on_vectors = mirror.offer
        return mirror

    def _weaviate_index(self) -> WeaviateIndex | None:
        given = self._settings
        if given.weaviate_url is None:
            return None
        index = WeaviateIndex(
            given.weaviate_url,
            given.weaviate_grpc_address,
            api_key=_text(given),
            collection=given.weaviate_collection,
            vectorizer=given.weaviate_vectorizer,
        )
        # a module of Weaviate makes its own vectors
        vectors = self._vectors if given.weaviate_vectorizer is None else Vectors(_no_embedder, NoVectors())
        if vectors is not self._vectors:
            vectors.loaded.set()
        self._remote.append(self._mirror("weaviate", IndexTarget(index, self._catalogue, vectors)))
        return index

    def _existing_collection(self) -> ExistingCollection | None:
        given = self._settings
        if given.weaviate_url is None or given.weaviate_existing_collection is None:
            return None
        existing = ExistingCollection(
            given.weaviate_url,
            given.weaviate_grpc_address,
            api_key=_text(given),
            collection=given.weaviate_existing_collection,
            server_property=given.weaviate_existing_server_property,
            tool_property=given.weaviate_existing_tool_property,
        )
        by_path = given.weaviate_existing_server_by == "path"
        self._remote.append(self._mirror("existing", FlagTarget(existing, self._catalogue, by_path=by_path)))
        return existing

    async def _mirror_all(self) -> None:
        async with asyncio.TaskGroup() as group:
            for mirror in self._remote:
                group.create_task(mirror.run())

    def _statuses(self) -> Sequence[MirrorStatus]:
        return [mirror.status for mirror in self._remote]

    def _obey(self, order: Order) -> None:
        for mirror in self._remote:
            if order is Order.REBUILD:
                mirror.rebuild()
            else:
                mirror.reconcile()

    def _is_indexed(self) -> bool:
        return self._local.status.state is MirrorState.UP

    def _is_mirrored(self) -> bool:
        """False while Weaviate is known to be down, or not to hold everything yet; others tell with their lease."""
        statuses = self._statuses() if self._leadership.is_ours else self._leadership.lease.statuses
        return any(status.name == "weaviate" and status.state is MirrorState.UP for status in statuses)

    def _embedder(self) -> Embedder | None:
        """Blocks for about a second."""
        if self._settings.embeddings == "none":
            return None
        try:
            return MiniLm()
        except EmbedderUnusable as exc:
            if self._settings.embeddings != "auto":
                raise
            log.info("embedder.missing", cause=str(exc))
            return None


def _no_embedder() -> None:
    return None


def _text(settings: Settings) -> str | None:
    return None if settings.weaviate_api_key is None else settings.weaviate_api_key.get_secret_value()


def _cache(settings: Settings) -> VectorCache:
    return SqliteVectors(settings.data_dir / "vectors.sqlite") if settings.embeddings != "none" else NoVectors()


def _holder() -> str:
    return f"{socket.gethostname()}-{uuid.uuid4().hex[:8]}"

"""Vectors by text: computed once, in the background, and kept over a restart.

Source: DESIGN 6. Words are searchable at once; vectors follow at the speed of the embedder. A query goes before
everything that waits.

States of a text: unknown -> wanted -> known.
"""

import asyncio
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from itertools import islice

import structlog

from registry.errors import EmbedderUnusable
from registry.indexing import Vector
from registry.ports import Embedder, VectorCache

log = structlog.get_logger(__name__)

_AT_ONCE = 64
"""Texts between two deliveries: about a second of work, so that an index fills while one watches."""

_MOST_KNOWN = 200_000
"""Vectors kept in memory, of 1.5 KB each; the oldest go first, and the cache on disk keeps them."""

Delivery = Callable[[], None]
"""Told that some of the texts it waits for have vectors now. Returns at once and never raises."""

Watcher = Callable[[int, int], None]
"""Told how many texts are done and how many there are, of all that were wanted since nothing was."""


class Vectors:
    """The vectors of one embedder. Without an embedder there are none, and nothing waits for any.

    Args:
        load: gives the embedder, None for none; blocks, and is called once, off the event loop. Raises
            EmbedderUnusable.
        cache: what is known already.
        watcher: told how far the work is.
    """

    def __init__(self, load: Callable[[], Embedder | None], cache: VectorCache, watcher: Watcher | None = None) -> None:
        self._load = load
        self._embedder: Embedder | None = None
        self._cache = cache
        self._watcher = watcher
        self._known: dict[str, Vector] = {}
        self._wanted: dict[str, None] = {}
        self._waiting: dict[Hashable, tuple[set[str], Delivery]] = {}
        self._wake = asyncio.Event()
        self._done = 0
        self.loaded = asyncio.Event()
        """Set once what was kept on disk is known."""

    @property
    def name(self) -> str:
        """Of the embedder; empty without one."""
        return self._embedder.name if self._embedder else ""

    def known(self, texts: Iterable[str]) -> Mapping[str, Vector]:
        """Those of these texts that have a vector now."""
        return {text: vector for text in texts if (vector := self._known.get(text)) is not None}

    def want(self, key: Hashable, texts: Collection[str], delivery: Delivery) -> None:
        """Have the unknown ones of these texts embedded; returns at once.

        Args:
            key: who waits. A later wish of the same key takes the place of the one before.
            texts: in the order in which they are wanted.
            delivery: may be told several times.
        """
        missing = {text for text in texts if text not in self._known}
        if self._embedder is None or not missing:
            return
        self._wanted.update(dict.fromkeys(text for text in texts if text in missing))
        self._waiting[key] = (missing, delivery)
        self._wake.set()

    async def of_query(self, text: str) -> Vector | None:
        """The vector of one query, None when there can be none."""
        if self._embedder is None:
            return None
        try:
            return (await self._embedder.embed([text]))[0]
        except EmbedderUnusable as exc:
            self._give_up(exc)
            return None

    async def run(self) -> None:
        """Embed what is wanted until cancelled. Ends by itself when there is no embedder, or none that works."""
        await self._begin()
        while self._embedder is not None:
            await self._wake.wait()
            try:
                await self._embed_some(self._embedder)
            except EmbedderUnusable as exc:
                self._give_up(exc)

    async def _begin(self) -> None:
        try:
            self._embedder = await asyncio.to_thread(self._load)
        except EmbedderUnusable as exc:
            self._give_up(exc)
        if self._embedder is not None:
            self._known |= await asyncio.to_thread(self._cache.load, self._embedder.name)
        self.loaded.set()

    async def close(self) -> None:
        """End what the embedder runs."""
        if self._embedder is not None:
            await asyncio.to_thread(self._embedder.close)  # waits for what is being embedded

    def _give_up(self, exc: EmbedderUnusable) -> None:
        log.error("embedder.unusable", cause=str(exc))
        self._embedder = None
        self._wanted.clear()
        self._waiting.clear()

    async def _embed_some(self, embedder: Embedder) -> None:
        texts = list(islice((text for text in self._wanted if text not in self._known), _AT_ONCE))
        if not texts:
            self._wanted.clear()
            self._wake.clear()
            self._done = 0
            return
        made = dict(zip(texts, await embedder.embed(texts), strict=True))
        self._keep(made)
        await asyncio.to_thread(self._cache.save, embedder.name, made)

    def _keep(self, made: Mapping[str, Vector]) -> None:
        self._known |= made
        for text in list(islice(self._known, max(0, len(self._known) - _MOST_KNOWN))):
            del self._known[text]
        for text in made:
            self._wanted.pop(text, None)
        self._done += len(made)
        if self._watcher is not None:
            self._watcher(self._done, self._done + len(self._wanted))
        self._deliver(set(made))

    def _deliver(self, made: set[str]) -> None:
        for key, (missing, delivery) in list(self._waiting.items()):
            if missing.isdisjoint(made):
                continue
            if still := missing - made:
                self._waiting[key] = (still, delivery)
            else:
                del self._waiting[key]
            delivery()  # last, since it may wish for more under the same key

"""Finds tools by what they do, and offers none that its caller could not use.

Source: DESIGN 6 (discover_servers). An index proposes; the authority is asked about every hit, in a read that began
after the search, with the same decision as a call. More is fetched until the limit is full or the index has no more.

    index --hits--> decided one by one --permitted--> answer
      ^______________too few: four times as many_________|
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from registry import access
from registry.access import Reason, Refusal
from registry.callers import Caller, with_scope
from registry.catalogue import Catalogue
from registry.entries import Server, Tool
from registry.errors import Forbidden, IndexUnavailable, IndexUnusable, Invalid, NotFound
from registry.freshness import FactSource
from registry.indexing import Hit, SearchQuery
from registry.model import Facts, Scope
from registry.ports import ToolIndex
from registry.vectors import Vectors

log = structlog.get_logger(__name__)

MAX_QUERY_CHARS = 1_000
MAX_LIMIT = 100
DEFAULT_LIMIT = 10

SERVER_DISABLED = "server_disabled"
"""Why a tool cannot be used whose server is switched off as a whole; the decision itself says `not_visible`."""

_FIRST_HITS = 20
"""Of the first round, at least: most searches need no second one."""

_MOST_HITS = 10_000
"""Of one search; what Weaviate gives at most."""

_REST_S = 1.0
"""For which an index that has failed is not asked again: a frozen one must not cost every search its timeout."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is searched for. `server` is an id or a path, None for all.

    `include_disabled` shows tools that cannot be used too, on servers whose owner the caller is.
    """

    text: str
    limit: int = DEFAULT_LIMIT
    server: str | None = None
    include_disabled: bool = False

    def check(self) -> None:
        """Raises Invalid, naming the field."""
        if not self.text.strip():
            raise Invalid("the query is empty", field="q")
        if len(self.text) > MAX_QUERY_CHARS:
            raise Invalid(f"the query is over {MAX_QUERY_CHARS} characters", field="q")
        if not 1 <= self.limit <= MAX_LIMIT:
            raise Invalid(f"the limit is from 1 to {MAX_LIMIT}", field="limit")


@dataclass(frozen=True, slots=True)
class Found:
    """One tool. `reason` is None when the caller may use it now, else why not."""

    server: Server
    tool: Tool
    score: float
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found, best first.

    `degraded`: the fallback answered, since the index proper did not; or not everything is indexed yet.
    """

    found: tuple[Found, ...]
    degraded: bool


class Indexes:
    """The index that is asked, and the one that answers when it cannot.

    Args:
        fallback: in this process; always there.
        primary: None when the fallback is all there is.
        is_ready: False while the primary is known not to be complete.
        is_fallback_ready: False while the fallback is not, just after a start.
        timeout_s: for the primary.
        clock: seconds that never go back.
    """

    def __init__(
        self,
        fallback: ToolIndex,
        primary: ToolIndex | None = None,
        *,
        is_ready: Callable[[], bool] = lambda: True,
        is_fallback_ready: Callable[[], bool] = lambda: True,
        timeout_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fallback = fallback
        self._primary = primary
        self._is_ready = is_ready
        self._is_fallback_ready = is_fallback_ready
        self._timeout_s = timeout_s
        self._clock = clock
        self._resting_until = 0.0
        self._has_failed = False

    @property
    def degraded(self) -> bool:
        """True while searches are answered by the fallback for want of the primary, or are not complete."""
        lacks_primary = self._primary is not None and (self._has_failed or not self._is_ready())
        return lacks_primary or not self._is_fallback_ready()

    async def search(self, query: SearchQuery, *, keep: bool = False) -> tuple[tuple[Hit, ...], bool]:
        """The hits, and whether they may be worse than they should.

        `keep`: stay with the fallback, as before in this search.
        """
        if self._primary is None:
            return tuple(await self._fallback.search(query)), not self._is_fallback_ready()
        if not keep and self._is_ready() and self._clock() >= self._resting_until:
            hits = await self._asked(self._primary, query)
            if hits is not None:
                return hits, False
        return tuple(await self._fallback.search(query)), True

    async def _asked(self, primary: ToolIndex, query: SearchQuery) -> tuple[Hit, ...] | None:
        try:
            async with asyncio.timeout(self._timeout_s):
                hits = tuple(await primary.search(query))
        except (IndexUnavailable, IndexUnusable, TimeoutError) as exc:
            if not self._has_failed:
                log.warning("discovery.degraded", cause=str(exc) or "no answer in time")
            self._has_failed = True
            self._resting_until = self._clock() + _REST_S
            return None
        if self._has_failed:
            log.info("discovery.recovered")
        self._has_failed = False
        return hits


class Discovery:
    """Searches for tools. Raises Unauthenticated, Forbidden, NotFound, Invalid and StoreUnavailable."""

    def __init__(self, indexes: Indexes, catalogue: Catalogue, vectors: Vectors, facts: FactSource) -> None:
        self._indexes = indexes
        self._catalogue = catalogue
        self._vectors = vectors
        self._facts = facts

    @property
    def degraded(self) -> bool:
        """As `Indexes.degraded`."""
        return self._indexes.degraded

    async def search(self, caller: Caller, wanted: Wanted) -> Answer:
        """The best tools that this caller may use, best first, at most `wanted.limit`.

        With `include_disabled`: also those it may not use, on servers that it may share or administer, with the reason.
        """
        wanted.check()
        servers, vector = await asyncio.gather(self._where(caller, wanted), self._vectors.of_query(wanted.text))
        query = SearchQuery(
            text=wanted.text,
            vector=vector,
            limit=max(_FIRST_HITS, 2 * wanted.limit),
            servers=servers,
            only_enabled=not wanted.include_disabled,
        )
        found: list[Found] = []
        degraded = False
        async for hits, degraded in self._rounds(query):
            for some in _chunks(hits, wanted.limit):
                found += await self._decided(caller, some, wanted)
                if len(found) >= wanted.limit:
                    return Answer(tuple(_ranked(found[: wanted.limit])), degraded)
        return Answer(tuple(_ranked(found)), degraded)

    async def _where(self, caller: Caller, wanted: Wanted) -> frozenset[str] | None:
        """The servers to search in, None for all. One that cannot be used is not there, unless its owner asks."""
        if wanted.server is None:
            return None
        facts = await self._facts.facts(caller.asks(wanted.server))
        _admit(facts, wanted)
        if facts.server is None or not (_is_usable(facts) or (wanted.include_disabled and _is_owner(facts))):
            raise NotFound("no such server")
        return frozenset({facts.server.server_id})

    async def _rounds(self, query: SearchQuery) -> AsyncIterator[tuple[tuple[Hit, ...], bool]]:
        """New hits, round by round, each from four times as many, until the index has no more."""
        seen: set[tuple[str, str]] = set()
        degraded = False
        while True:
            hits, degraded = await self._indexes.search(query, keep=degraded)
            yield tuple(hit for hit in hits if (hit.server_id, hit.tool) not in seen), degraded
            if len(hits) < query.limit or query.limit >= _MOST_HITS:
                return
            seen |= {(hit.server_id, hit.tool) for hit in hits}
            query = replace(query, limit=min(4 * query.limit, _MOST_HITS))

    async def _decided(self, caller: Caller, hits: Iterable[Hit], wanted: Wanted) -> list[Found]:
        """What may be shown of these hits. The caller is admitted by the same read, also when there is no hit."""
        known = [found for hit in hits if (found := self._known(hit)) is not None]
        refs: list[str | None] = [*dict.fromkeys(_ref(found.server) for found in known)] or [None]
        facts = await asyncio.gather(*(self._facts.facts(caller.asks(ref)) for ref in refs))
        for one in facts:
            _admit(one, wanted)
        return list(_decisions(known, dict(zip(refs, facts, strict=True)), wanted.include_disabled))

    def _known(self, hit: Hit) -> Found | None:
        """None for what an index still holds and the catalogue does not any more."""
        server, tool = self._catalogue.server(hit.server_id), self._catalogue.tool(hit.server_id, hit.tool)
        return None if server is None or tool is None else Found(server, tool, hit.score)


def _ranked(found: Iterable[Found]) -> Iterator[Found]:
    """With one over the rank as the score: an index's own is relative to hits that this caller may not know of."""
    return (replace(one, score=1 / rank) for rank, one in enumerate(found, 1))


def _admit(facts: Facts, wanted: Wanted) -> None:
    """Raises Unauthenticated and Forbidden."""
    with_scope(facts, Scope.MCP)
    if wanted.include_disabled and not access.has_scope(facts, Scope.MANAGE, Scope.ADMIN):
        raise Forbidden("disabled tools are shown to owners and admins", required_scope=Scope.MANAGE)


def _chunks(hits: Sequence[Hit], size: int) -> Iterator[Sequence[Hit]]:
    """The hits in order, `size` at a time, so that the authority is asked about few servers. One at least."""
    return (hits[start : start + size] for start in range(0, max(len(hits), 1), size))


def _ref(server: Server) -> str:
    """What the authority is asked by: the path, which is one look-up where an id is two. What has none goes by id."""
    return server.path if server.path.startswith("/") else server.id


def _decisions(known: Iterable[Found], facts: Mapping[str | None, Facts], include_disabled: bool) -> Iterator[Found]:
    for found in known:
        about = facts[_ref(found.server)]
        if about.server is None or about.server.server_id != found.server.id:
            continue  # the path is another server's by now
        verdict = access.use_tool(about, found.tool.name)
        if not isinstance(verdict, Refusal):
            yield found
        elif include_disabled and _is_owner(about):
            yield replace(found, reason=_reason(about, verdict))


def _is_usable(facts: Facts) -> bool:
    return not isinstance(access.use_server(facts), Refusal)


def _is_owner(facts: Facts) -> bool:
    return access.may_share(facts) or access.may_administer(facts)


def _reason(facts: Facts, refusal: Refusal) -> str:
    is_off = facts.server is not None and not facts.server.enabled
    return SERVER_DISABLED if is_off and refusal.reason is Reason.NOT_VISIBLE else refusal.reason.value

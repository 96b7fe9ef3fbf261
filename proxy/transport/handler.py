"""Reads a client's request, has it judged, and answers or relays.

Source: DESIGN 1 (order of the checks; Host and Origin come before, in `guard`), DESIGN 4 (the facts come from a read
that began after the last byte of the body).
"""

import asyncio
import time

import structlog
from aiohttp import web

from proxy import replies
from proxy.errors import PolicyUnknown, ProxyError
from proxy.exchange import Exchange, RequestHead, known_id
from proxy.held import Held
from proxy.paths import PREFIX, Target, server_path, split_target
from proxy.ports import (
    DataPlaneSettings,
    Downstream,
    Fields,
    Forward,
    Meter,
    NoMeter,
    NoObserver,
    Observer,
    Policies,
    Reply,
)
from proxy.transport.about import About
from proxy.transport.answer import authored, strip_added
from proxy.transport.guard import ARRIVAL
from proxy.transport.intake import check_way, key_of, read_body
from proxy.transport.quota import StreamQuota
from proxy.transport.relay import Relay
from registry.access import Refusal
from registry.credentials import key_hash
from registry.model import Asked, Facts

log = structlog.get_logger(__name__)

_METHODS = frozenset({"GET", "POST", "DELETE"})


class DataPlane:
    """Everything below `/proxy/`."""

    def __init__(
        self,
        policies: Policies,
        downstream: Downstream,
        settings: DataPlaneSettings,
        meter: Meter | None = None,
        observer: Observer | None = None,
    ) -> None:
        self._meter = meter if meter is not None else NoMeter()
        self._observer = observer if observer is not None else NoObserver()
        self._policies = policies
        self._downstream = downstream
        self._settings = settings
        self._streams = StreamQuota(settings.max_streams_per_key)
        self._closing = asyncio.Event()

    def mount(self, app: web.Application) -> None:
        """Add the routes, and the end of idle streams when the application shuts down."""
        app.router.add_route("*", PREFIX + "/{tail:.*}", self._handle)
        app.on_response_prepare.append(strip_added)
        app.on_shutdown.append(self._end_idle_streams)

    async def _end_idle_streams(self, _app: web.Application) -> None:
        self._closing.set()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        target = split_target(request.raw_path)
        path = server_path(target.path.removeprefix(PREFIX)) if target else None
        if target is None or path is None:
            return authored(replies.NOT_FOUND)
        if request.method not in _METHODS:
            return authored(replies.METHOD_NOT_ALLOWED)
        return await self._served(request, target, About(path))

    async def _served(self, request: web.Request, target: Target, about: About) -> web.StreamResponse:
        fields: Fields = tuple(request.headers.items())
        try:
            body = await read_body(request, self._settings)
            about.began = time.perf_counter()
            check_way(fields, self._settings.pseudonym, body)
            key = key_of(fields)
            asked = Asked(None if key is None else key_hash(key), about.server)
            facts = await self._facts(asked, body)
        except ProxyError as error:
            return _failed(replies.for_error(error), error, about)
        about.key_id = facts.key.id if facts.key else None
        about.server_id = facts.server.server_id if facts.server else None
        version = f"{request.version.major}.{request.version.minor}"
        exchange = Exchange(facts, RequestHead(request.method, target.query, fields, key, version), self._settings)
        outcome = exchange.receive_request(body)
        if isinstance(outcome, Reply):
            self._meter.decided(facts.server, 0, outcome.refusals)
            return _refused(outcome, about)
        self._meter.decided(facts.server, len(outcome.permits), ())
        relay = Relay(exchange, lambda held: self._released(held, asked, about), about, self._closing, self._meter)
        if exchange.is_subscription:
            return await self._streamed(relay, request, outcome, asked)
        return await relay.run(request, self._downstream.send(outcome))

    async def _streamed(self, relay: Relay, request: web.Request, forward: Forward, asked: Asked) -> web.StreamResponse:
        with self._streams.taken(_holder(request, asked)) as is_within:
            if not is_within:
                return _refused(replies.TOO_MANY_STREAMS, relay.about)
            self._meter.streams(1)
            try:
                return await relay.run(request, self._downstream.send(forward))
            finally:
                self._meter.streams(-1)

    async def _released(self, held: Held, asked: Asked, about: About) -> bytes | Refusal:
        released = held.release(await self._policies.facts(asked))
        if about.server_id is not None and not isinstance(released, Refusal):
            self._observer.listed(about.server_id, held.names)
        return released

    async def _facts(self, asked: Asked, body: bytes) -> Facts:
        try:
            return await self._policies.facts(asked)
        except PolicyUnknown as error:
            error.id = known_id(body)
            raise


def _holder(request: web.Request, asked: Asked) -> str:
    """Whose stream it is: the key's, or without one the client's address."""
    came = request.get(ARRIVAL)
    return asked.key_hash or (came.client if came else "")


def _refused(reply: Reply, about: About) -> web.Response:
    for refusal in reply.refusals:
        log.info("exchange.refused", reason=refusal.reason.value, tool=refusal.tool, **about.fields())
    if not reply.refusals:
        log.info("exchange.rejected", status=reply.status, **about.fields())
    return authored(reply)


def _failed(reply: Reply, error: ProxyError, about: About) -> web.Response:
    log.warning("exchange.failed", status=reply.status, cause=error.cause, **about.fields())
    return authored(reply)

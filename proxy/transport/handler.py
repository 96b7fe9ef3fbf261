"""Reads a client's request, has it judged, and answers or relays.

Source: DESIGN 1 (order of the checks; Host and Origin come before, in `guard`), DESIGN 4 (the facts come from a read
that began after the last byte of the body).
"""

import asyncio
import uuid

import structlog
from aiohttp import web

from proxy import replies
from proxy.errors import PolicyUnknown, ProxyError
from proxy.exchange import Exchange, RequestHead, known_id
from proxy.paths import PREFIX, Target, server_path, split_target
from proxy.ports import DataPlaneSettings, Downstream, Fields, Policies, Reply
from proxy.transport.answer import authored, strip_added
from proxy.transport.intake import key_of, read_body
from proxy.transport.relay import Relay
from registry.credentials import key_hash
from registry.model import Asked

log = structlog.get_logger(__name__)

_METHODS = frozenset({"GET", "POST", "DELETE"})


class DataPlane:
    """Everything below `/proxy/`."""

    def __init__(self, policies: Policies, downstream: Downstream, settings: DataPlaneSettings) -> None:
        self._policies = policies
        self._downstream = downstream
        self._settings = settings
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
        with structlog.contextvars.bound_contextvars(request_id=uuid.uuid4().hex, server=path):
            return await self._served(request, target, path)

    async def _served(self, request: web.Request, target: Target, path: str) -> web.StreamResponse:
        fields: Fields = tuple(request.headers.items())
        try:
            body = await read_body(request, self._settings)
            key = key_of(fields)
            asked = Asked(None if key is None else key_hash(key), path)
            exchange = await self._judged(RequestHead(request.method, target.query, fields, key), asked, body)
        except ProxyError as error:
            return _failed(replies.for_error(error), error)
        outcome = exchange.receive_request(body)
        if isinstance(outcome, Reply):
            return _refused(outcome)
        return await Relay(exchange, self._policies, asked, self._closing).run(request, self._downstream.send(outcome))

    async def _judged(self, head: RequestHead, asked: Asked, body: bytes) -> Exchange:
        try:
            facts = await self._policies.facts(asked)
        except PolicyUnknown as error:
            error.id = known_id(body)
            raise
        _bind(facts.key.id if facts.key else None, facts.server.server_id if facts.server else None)
        return Exchange(facts, head, self._settings)


def _bind(key_id: str | None, server_id: str | None) -> None:
    structlog.contextvars.bind_contextvars(key_id=key_id, server_id=server_id)


def _refused(reply: Reply) -> web.Response:
    for refusal in reply.refusals:
        log.info("exchange.refused", reason=refusal.reason.value, tool=refusal.tool)
    if not reply.refusals:
        log.info("exchange.rejected", status=reply.status)
    return authored(reply)


def _failed(reply: Reply, error: ProxyError) -> web.Response:
    log.warning("exchange.failed", status=reply.status, cause=str(error))
    return authored(reply)

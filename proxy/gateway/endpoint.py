"""The endpoint `/mcp` over HTTP: reads a request, has each of its messages answered, writes the answers.

Source: DESIGN 1 (order of the checks); MCP 2026-07-28 basic/transports (one POST a request, an answer as JSON or as
events), 2025-03-26 (batches). An answer is one JSON body, unless its caller asked for progress and reads events.
"""

import asyncio
import json
import uuid
from dataclasses import replace

import structlog
from aiohttp import web

from proxy import headers, jsonrpc, replies
from proxy.errors import InvalidParams, InvalidRequest, MethodNotFound, NotAcceptable, ProxyError, UnsupportedMedia
from proxy.exchange import known_id
from proxy.gateway.asking import Asking, downstream_credentials
from proxy.gateway.flights import FlightId, Flights
from proxy.gateway.methods import INITIALIZE, Methods
from proxy.gateway.progress import ProgressStream, progress_token
from proxy.gateway.revision import Era, era_of, revision_of
from proxy.jsonrpc import TOOLS_CALL, Body, Message, Notification, Request, Response
from proxy.jsontext import Number
from proxy.ports import DataPlaneSettings, Fields, Policies, Reply
from proxy.transport.answer import authored
from proxy.transport.intake import check_way, key_of, read_body
from registry import access
from registry.credentials import key_hash
from registry.model import Asked

log = structlog.get_logger(__name__)

PATH = "/mcp"
SESSION = "mcp-session-id"
REQUEST_CANCELLED = -32800
"""What the official SDK answers to a request that its client has cancelled."""

MOST_IN_BATCH = 20
"""Messages: their answers are held until the last one is there."""

_JSON: Fields = (("Content-Type", headers.JSON),)
_POST_ONLY = replace(
    replies.problem(405, "method not allowed", "Only POST is served.", "method_not_allowed"),
    fields=(*_JSON, ("Allow", "POST")),
)


class Gateway:
    """Everything at `/mcp`."""

    def __init__(self, policies: Policies, methods: Methods, settings: DataPlaneSettings) -> None:
        self._policies = policies
        self._methods = methods
        self._settings = settings
        self._flights = Flights()

    def mount(self, app: web.Application) -> None:
        """Add the route."""
        app.router.add_route("*", PATH, self._handle)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if request.method != "POST":
            return authored(_POST_ONLY)
        with structlog.contextvars.bound_contextvars(request_id=uuid.uuid4().hex, surface="gateway"):
            try:
                return await self._served(request)
            except ProxyError as error:
                log.info("gateway.rejected", status=error.status, cause=str(error))
                return authored(replies.for_error(error))

    async def _served(self, request: web.Request) -> web.StreamResponse:
        fields: Fields = tuple(request.headers.items())
        body = await read_body(request, self._settings)
        check_way(fields, self._settings.pseudonym, body)
        key = key_of(fields)
        hashed = None if key is None else key_hash(key)
        if (turned_away := await self._entered(hashed, body)) is not None:
            return authored(turned_away)
        _check_head(fields)
        messages = jsonrpc.parse(body)
        headers.check_mcp_fields(fields, messages)
        revision = revision_of(fields, messages)
        asking = Asking(hashed, revision, _session(fields, revision), downstream_credentials(fields))
        return await self._answered(request, asking, messages)

    async def _entered(self, hashed: str | None, body: bytes) -> Reply | None:
        try:
            refusal = access.enter(await self._policies.facts(Asked(hashed)))
        except ProxyError as error:
            error.id = known_id(body)
            raise
        return None if refusal is None else replies.turned_away(refusal)

    async def _answered(self, request: web.Request, asking: Asking, body: Body) -> web.StreamResponse:
        only = body.messages[0]
        if isinstance(only, Request) and not body.is_batch:
            return await self._one(request, asking, only)
        if len(body.messages) > MOST_IN_BATCH:
            raise InvalidRequest(f"a batch here has at most {MOST_IN_BATCH} messages")
        answers = [answer for message in body.messages if (answer := await self._of_many(asking, message)) is not None]
        if not answers:
            return authored(Reply(202, ()))
        return authored(Reply(200, _JSON, b"[" + b",".join(answers) + b"]"))

    async def _of_many(self, asking: Asking, message: Message) -> bytes | None:
        """The answer to one message of a batch, or to a notification or response, which has none."""
        match message:
            case Request(method=method) if method == INITIALIZE:
                return replies.error(message.id, replies.INVALID_REQUEST, "initialize is never part of a batch")
            case Request():
                try:
                    return await self._flown(asking, message, None)
                except ProxyError as error:
                    return replies.error(error.id or message.id, error.code, str(error), error.data)
            case Notification(method=method, params=params) if method == "notifications/cancelled":
                self._flights.cancel(FlightId(asking.key_hash, asking.session, _id_text(params.get("requestId"))))
            case Response() if era_of(asking.revision) is Era.MODERN:
                raise InvalidRequest("a client of this revision answers nothing")
        return None

    async def _one(self, request: web.Request, asking: Asking, message: Request) -> web.StreamResponse:
        token = progress_token(message) if message.method == TOOLS_CALL else None  # others are done at once
        if token is not None and headers.accepts(_fields(request), headers.EVENT_STREAM):
            return await self._streamed(request, asking, message, token)
        try:
            answer = await self._flown(asking, message, None)
        except (MethodNotFound, InvalidParams) as error:
            if era_of(asking.revision) is Era.MODERN:
                raise
            return authored(Reply(200, _JSON, replies.error(error.id, error.code, str(error))))
        except ProxyError as error:
            error.id = error.id or message.id
            raise
        is_handshake = message.method == INITIALIZE
        return authored(Reply(200, _JSON + (((SESSION, uuid.uuid4().hex),) if is_handshake else ()), answer))

    async def _streamed(self, request: web.Request, asking: Asking, message: Request, token: str) -> web.StreamResponse:
        async with ProgressStream(request, token) as stream:
            try:
                answer = await self._flown(asking, message, stream)
            except ProxyError as error:
                answer = replies.error(message.id, error.code, str(error), error.data)
            await stream.end(answer)
            return stream.response

    async def _flown(self, asking: Asking, message: Request, stream: ProgressStream | None) -> bytes:
        """The answer, unless its client cancels it first."""
        flight = FlightId(asking.key_hash, asking.session, _same_id(message.id))
        work = asyncio.ensure_future(self._methods.answer(asking, message, stream.tell if stream else None))
        with self._flights.joined(flight, work):
            try:
                await asyncio.wait((work,))
            finally:
                work.cancel()  # when this request was ended: its client has hung up
        if work.cancelled():
            return replies.error(message.id, REQUEST_CANCELLED, "Request cancelled")
        return work.result()


def _session(fields: Fields, revision: str) -> str:
    """The name of the client's session, empty where the revision has none."""
    return next(iter(headers.values(fields, SESSION)), "") if era_of(revision) is Era.HANDSHAKE else ""


def _check_head(fields: Fields) -> None:
    headers.check_request_fields(fields)
    if headers.media_type(fields) != headers.JSON:
        raise UnsupportedMedia("the body of a request is application/json")
    if not headers.accepts(fields, headers.JSON):
        raise NotAcceptable("the client must accept application/json and text/event-stream")


def _fields(request: web.Request) -> Fields:
    return tuple(request.headers.items())


def _same_id(text: str) -> str:
    """The JSON text of an id, strings as `_id_text` spells them: an escape makes no other id."""
    return replies.json_text(json.loads(text)) if text.startswith('"') else text


def _id_text(value: object) -> str:
    """The JSON text of an id out of decoded parameters; empty for what is none."""
    if isinstance(value, Number):
        return str(value)
    return replies.json_text(value) if isinstance(value, str) else ""

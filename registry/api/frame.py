"""What happens round every handler, in DESIGN 1's order: path, size, key; then the handler.

An unknown path is refused before the body is read, a body over the cap before the key is looked up, a missing key
before anything is said about the body. Every use case looks the key up itself, in the read that it decides on; it is
looked up here only where a request cannot be read and no use case was asked.
"""

import asyncio
import uuid

from aiohttp import web

from registry.api import faults
from registry.api.context import BODY, CALLER, REQUEST_ID, Handler, services
from registry.api.faults import BadRequest
from registry.callers import Caller
from registry.credentials import AmbiguousCredentials, key_hash, presented_key
from registry.errors import Invalid, RegistryError

MAX_BODY_BYTES = 1024 * 1024
"""A security limit: a list of 10,000 tool names fits, and a stranger cannot fill the memory."""


BODY_TIMEOUT_S = 30.0
"""A stranger who sends nothing must not hold a connection for ever."""


@web.middleware
async def framed(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give the request an id, answer every refusal in one shape, and let nobody store an answer."""
    request[REQUEST_ID] = uuid.uuid4().hex
    response = await _answer(request, handler)
    response.headers["X-Request-Id"] = request[REQUEST_ID]
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


async def _answer(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        if request.match_info.http_exception is None:
            await _receive(request)
        return await _handled(request, handler)
    except RegistryError as exc:
        return faults.of_registry(exc)
    except BadRequest as exc:
        return faults.of_request(exc)
    except web.HTTPException as exc:
        return faults.of_http(exc)


async def _receive(request: web.Request) -> None:
    request[BODY] = await _body(request)
    request[CALLER] = Caller(_presented_hash(request), request[REQUEST_ID])


async def _handled(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except (BadRequest, Invalid):
        await services(request).keys.own(request[CALLER])
        raise


async def _body(request: web.Request) -> bytes:
    if any(coding.lower() != "identity" for coding in request.headers.getall("Content-Encoding", ())):
        raise BadRequest(415, "unsupported_media_type", "the body must not be compressed")
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            return await _bounded(request)
    except TimeoutError as exc:
        raise BadRequest(408, "body_timeout", "the body did not arrive in time") from exc


async def _bounded(request: web.Request) -> bytes:
    body = bytearray()
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise BadRequest(413, "body_too_large", f"the body is over {MAX_BODY_BYTES} bytes")
    return bytes(body)


def _presented_hash(request: web.Request) -> str | None:
    try:
        key = presented_key(request.headers.items())
    except AmbiguousCredentials as exc:
        raise BadRequest(400, "ambiguous_credentials", str(exc)) from exc
    return None if key is None else key_hash(key)

"""Reads what every surface of this plane needs of a request: the body within its limits, and the key."""

import asyncio

from aiohttp import web

from proxy import headers
from proxy.errors import BadFields, BodyTimeout, BodyTooLarge, LoopDetected
from proxy.exchange import known_id
from proxy.ports import DataPlaneSettings, Fields
from registry.credentials import AmbiguousCredentials, presented_key


async def read_body(request: web.Request, settings: DataPlaneSettings) -> bytes:
    """The whole body. Raises BodyTooLarge and BodyTimeout."""
    limit = settings.max_body_bytes
    too_large = BodyTooLarge(f"the body is over {limit} bytes")
    if (request.content_length or 0) > limit:
        raise too_large
    if request.content.is_eof():  # it came with its head, as small ones do
        body = request.content.read_nowait()
        if len(body) > limit:
            raise too_large
        return body
    try:
        async with asyncio.timeout(settings.body_timeout_s):
            return await _arrived(request, too_large, limit)
    except TimeoutError as exc:
        raise BodyTimeout("the body did not arrive in time") from exc


async def _arrived(request: web.Request, too_large: BodyTooLarge, limit: int) -> bytes:
    body = bytearray()
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > limit:
            raise too_large
    return bytes(body)


def check_way(fields: Fields, pseudonym: str, body: bytes) -> None:
    """Raises LoopDetected, with the caller's id when it is known, for a request that has been here before."""
    if headers.came_through(fields, pseudonym):
        raise LoopDetected(
            "what is behind this address leads back to it: the request was here before", id=known_id(body)
        )


def key_of(fields: Fields) -> str | None:
    """The text of the key that was presented, None without one. Raises BadFields."""
    try:
        return presented_key(fields)
    except AmbiguousCredentials as exc:
        raise BadFields(str(exc)) from exc

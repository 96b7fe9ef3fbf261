"""For orchestrators: /healthz and /readyz; and the answer to an address that nobody serves.

Source: DESIGN 1. Alive means that the loop turns; ready means that the authority answers, since without it every
decision is a refusal. Discovery that is degraded is no reason not to be ready: switches hold, calls run. Neither
route asks for a key or a known Host: a probe comes by address and has none.
"""

import asyncio
from typing import Protocol

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from registry.errors import StoreUnavailable
from registry.ports import Health

_ALIVE = "/healthz"
_READY = "/readyz"


class Degradable(Protocol):
    """What may be worse than it should be without anything being refused."""

    @property
    def degraded(self) -> bool:
        """True while it is."""
        ...


def routes(health: Health, discovery: Degradable, *, timeout_s: float) -> list[web.RouteDef]:
    """The two routes. `timeout_s` bounds the question to the store."""

    async def healthz(_request: web.Request) -> web.Response:
        return _json({"status": "alive"})

    async def readyz(_request: web.Request) -> web.Response:
        try:
            async with asyncio.timeout(timeout_s):
                await health.ping()
        except (StoreUnavailable, TimeoutError):
            return _json({"status": "unready", "store": "unavailable"}, status=503)
        search = "degraded" if discovery.degraded else "available"
        return _json({"status": "ready", "store": "available", "discovery": search})

    return [web.get(_ALIVE, healthz), web.get(_READY, readyz)]


def except_health(middleware: Middleware) -> Middleware:
    """The same middleware, past which the two routes go."""

    @web.middleware
    async def chosen(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path in (_ALIVE, _READY):
            return await handler(request)
        return await middleware(request, handler)

    return chosen


@web.middleware
async def json_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answers an unknown address or method as the rest of the product does: `{"detail", "code"}`."""
    try:
        return await handler(request)
    except web.HTTPNotFound:
        return _json({"detail": "nothing is served at this address", "code": "not_found"}, status=404)
    except web.HTTPMethodNotAllowed as exc:
        detail = {"detail": f"{request.method} is not served at this address", "code": "method_not_allowed"}
        return _json(detail, status=405, headers={"Allow": exc.headers["Allow"]})


def _json(body: dict[str, str], *, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    fields = {"Cache-Control": "no-store", **(headers or {})}
    return web.json_response(body, status=status, headers=fields)

"""Host and Origin, checked before anything else; and who asks, for the log.

Source: DESIGN 1 (421, then 403), DESIGN 3; MCP 2026-07-28 (DNS rebinding); RFC 9110 section 7.4. The downstream can no
longer check them: it sees the Host that we send.
"""

import re

import structlog
from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware

from proxy import replies
from proxy.forwarding import Arrival, Networks, arrival
from proxy.transport.answer import authored

ARRIVAL = web.RequestKey("arrival", Arrival)
"""How the request came to us, for handlers behind the guard."""

_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]/@\s]+)(?::\d{1,5})?")
"""A host, an IPv6 address in brackets, perhaps a port. The name decides: the port is where we were reached."""


def guard(hosts: frozenset[str], origins: frozenset[str], trusted: Networks = ()) -> Middleware:
    """A middleware that answers 421 to a foreign Host and 403 to a foreign Origin.

    Args:
        hosts: accepted names without port, lower case; IPv6 in brackets.
        origins: accepted origins, `scheme://host[:port]` as browsers spell them.
        trusted: proxies whose word about client, host and scheme counts.
    """

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        came = arrival(request.remote or "", request.scheme, tuple(request.headers.items()), trusted)
        if _name(came.host) not in hosts:
            return authored(replies.MISDIRECTED)
        if not origins.issuperset(request.headers.getall(hdrs.ORIGIN, ())):
            return authored(replies.ORIGIN_REFUSED)
        request[ARRIVAL] = came
        structlog.contextvars.bind_contextvars(client=came.client, scheme=came.scheme)  # of this request's own task
        return await handler(request)

    return guarded


def _name(host: str | None) -> str | None:
    match = _HOST.fullmatch(host or "")
    return match[1].lower().removesuffix(".") if match else None

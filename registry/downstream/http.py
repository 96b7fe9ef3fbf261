"""The HTTP client that asks downstreams: one origin, judged addresses, no redirects, no proxies, bounded answers."""

from collections.abc import AsyncIterator, Callable, Mapping

import httpcore2
import httpx2
import structlog

from registry.downstream.network import JudgedBackend, Network
from registry.model import ServerPolicy

log = structlog.get_logger(__name__)

CONNECT_TIMEOUT_S = 5.0
"""DESIGN 3."""

FAREWELL_TIMEOUT_S = 2.0
"""Ending a session is a courtesy; a downstream that ignores it must not hold the caller."""

MAX_ANSWER_BYTES = 64 * 1024 * 1024
"""Of one answer. A security limit: the client library reads a JSON answer whole."""


MAX_EVENT_BYTES = 16 * 1024 * 1024
"""Of one event, and of all the answer to one call. Large servers list more than a megabyte of schemas."""


class AnswerTooLarge(httpx2.TransportError):
    """An answer over the limit, or one in a content coding that we did not ask for."""


Credentials = Callable[[ServerPolicy], Mapping[str, str]]
"""The static header fields of a server. Raises DownstreamFailed."""


def no_credentials(policy: ServerPolicy) -> Mapping[str, str]:
    """For servers that ask for none."""
    del policy
    return {}


def http_client(
    transport: "BoundedTransport", timeout_s: float, fields: Mapping[str, str] | None = None
) -> httpx2.AsyncClient:
    """A client for one session with one server.

    Args:
        timeout_s: bounds the wait for each piece of an answer.
        fields: sent with every request; a credential that must not reach another origin.
    """
    return httpx2.AsyncClient(
        transport=transport,
        timeout=httpx2.Timeout(timeout_s, connect=min(CONNECT_TIMEOUT_S, timeout_s)),
        headers={**(fields or {}), "Accept-Encoding": "identity"},
        follow_redirects=False,
        max_redirects=0,  # the MCP transport follows within the origin by itself, up to this many
        trust_env=False,
        event_hooks={"request": [_hurry_farewell]},
    )


async def _hurry_farewell(request: httpx2.Request) -> None:
    if request.method == "DELETE":
        request.extensions["timeout"] = httpx2.Timeout(FAREWELL_TIMEOUT_S).as_dict()


_LIMITS = httpx2.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=5.0)
"""The library's own."""


class BoundedTransport(httpx2.AsyncHTTPTransport):
    """Bounds each answer. `last_status` is the status of the last answer to a message, None before there is one.

    Why a connection was not made is logged here, since those who asked for it are not told.
    """

    last_status: int | None = None
    max_answer_bytes = MAX_ANSWER_BYTES

    def __init__(self, network: Network, limits: httpx2.Limits = _LIMITS) -> None:
        super().__init__(verify=network.tls, trust_env=False)
        # The library has no public place for a backend; no connection was made by the pool that this one replaces.
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=network.tls,
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=JudgedBackend(network.destinations),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send it; the answer's body raises AnswerTooLarge beyond the limit."""
        try:
            response = await super().handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as exc:
            log.warning("downstream.unreachable", host=request.url.host, cause=str(exc) or "no connection in time")
            raise
        if request.method == "POST":
            self.last_status = response.status_code
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            await response.aclose()
            raise AnswerTooLarge("an answer in a content coding")
        response.stream = _Counted(response.stream, self.max_answer_bytes)
        return response


class _Counted(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.SyncByteStream | httpx2.AsyncByteStream, most: int) -> None:
        if not isinstance(stream, httpx2.AsyncByteStream):
            raise TypeError("an asynchronous transport gave a synchronous stream")
        self._stream = stream
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received = 0
        async for chunk in self._stream:
            received += len(chunk)
            if received > self._most:
                raise AnswerTooLarge(f"an answer of over {self._most} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()

"""What became of the HTTP exchange of one call, and a transport that keeps its trouble away from other calls.

Source: mcp 2.3.0, whose transport ends a whole session, with every call in it, when one POST of it fails. So a failure
becomes an answer that fails that one message, and its cause is noted here. The exchange finds its POST by a context
variable: the library sends each message in the context of the task that asked for it.
"""

import contextlib
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from http import HTTPStatus

import httpx2

from registry.downstream.http import MAX_EVENT_BYTES, BoundedTransport
from registry.downstream.network import Network

MOST_CONNECTIONS = 1000
"""Of one session. A call holds one while it runs; this only bounds a runaway."""

KEPT_S = 2.5
"""For which an unused connection is kept: below the five seconds after which common servers close it, since a request
that meets the closing fails and must not be repeated."""

ASIDE_TIMEOUT_S = 5.0
"""For a notification or a refusal of ours. The library sends nothing else meanwhile, so an answer that does not come
must not hold up the calls of the session."""

_current: ContextVar["Exchange | None"] = ContextVar("exchange", default=None)


@dataclass(slots=True)
class Exchange:
    """The HTTP side of one request. `status` None: no answer. `error` is what broke it, also after a status."""

    status: int | None = None
    error: httpx2.TransportError | None = None
    in_session: bool = False
    sent: bool = False

    @property
    def lost_session(self) -> bool:
        """True when the downstream does not know the session (2025-11-25 basic/transports), so nothing was run."""
        return self.in_session and self.status == HTTPStatus.NOT_FOUND

    @property
    def doubts_session(self) -> bool:
        """True when it refused the message as a whole: servers that forgot a session say 400 as well as 404."""
        return self.in_session and self.status is not None and self.status >= HTTPStatus.BAD_REQUEST


@contextlib.contextmanager
def exchange() -> Iterator[Exchange]:
    """Note in it what becomes of the first message that is sent in this block."""
    made = Exchange()
    token = _current.set(made)
    try:
        yield made
    finally:
        _current.reset(token)


class ContainedTransport(BoundedTransport):
    """Fails single messages. Before `contain` it raises, so that an opening that fails says why.

    The session's own stream (GET) is never opened: nothing on it is of use to a call, and a downstream could fill it
    without end. A stream that is resumed is the answer to a call.
    """

    max_answer_bytes = MAX_EVENT_BYTES

    def __init__(self, network: Network) -> None:
        super().__init__(network, httpx2.Limits(max_connections=MOST_CONNECTIONS, keepalive_expiry=KEPT_S))
        self._contains = False

    def contain(self) -> None:
        """From now on, answer failures."""
        self._contains = True

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send it. Of a POST, what goes wrong is answered with status 502, and so is a redirect."""
        if request.method == "GET" and "last-event-id" not in request.headers:
            return httpx2.Response(HTTPStatus.METHOD_NOT_ALLOWED)
        if not self._contains or request.method != "POST":
            return await super().handle_async_request(request)
        noted = _noted(request)
        try:
            response = await super().handle_async_request(request)
        except httpx2.TransportError as exc:
            noted.error = exc
            return httpx2.Response(HTTPStatus.BAD_GATEWAY)
        noted.status = response.status_code
        if response.is_redirect:
            await response.aclose()
            return httpx2.Response(HTTPStatus.BAD_GATEWAY)  # the library would quote the address
        response.stream = _Contained(response.stream, noted)
        return response


def _noted(request: httpx2.Request) -> Exchange:
    """The exchange to note it in. Further messages of a call are asides: they are hurried, and noted nowhere."""
    found = _current.get()
    if found is None or found.sent:
        request.extensions["timeout"] = httpx2.Timeout(ASIDE_TIMEOUT_S).as_dict()
        return Exchange()
    found.sent = True
    found.in_session = "mcp-session-id" in request.headers
    return found


class _Broken(httpx2.StreamError):
    """The one error of an answer's body that the library takes for that of one message."""


class _Contained(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.SyncByteStream | httpx2.AsyncByteStream, noted: Exchange) -> None:
        if not isinstance(stream, httpx2.AsyncByteStream):
            raise TypeError("an asynchronous transport gave a synchronous stream")
        self._stream = stream
        self._noted = noted

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._stream:
                yield chunk
        except httpx2.TransportError as exc:
            self._noted.error = exc
            raise _Broken("the answer broke off") from exc

    async def aclose(self) -> None:
        await self._stream.aclose()

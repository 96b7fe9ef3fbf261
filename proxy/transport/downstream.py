"""Sends a request downstream, once, to the configured origin, and gives the answer as it arrives.

Source: DESIGN 3; RFC 9112; PROTOCOL 11 (aiohttp's defaults that a proxy must not have).

Invariant: takes a `Forward` and nothing else, so that nothing goes downstream without a permit.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from types import TracebackType

from yarl import URL

from proxy.errors import DownstreamTimeout, DownstreamUnreachable, DownstreamUnusable
from proxy.ports import Credentials, DataPlaneSettings, Fields, Forward, no_credentials
from proxy.transport.connection import BadAnswer, Connection, NoAnswer
from proxy.transport.connector import Connector, unreachable
from proxy.transport.pool import Origin, Pool

_NO_LINE = "\r\n\0"


class HttpDownstream:
    """`proxy.ports.Downstream` over HTTP. Use it as an async context manager, or `start` and `close` it.

    `connector` says where connections may go, `credentials` gives the static header fields of a server.
    """

    def __init__(
        self, settings: DataPlaneSettings, connector: Connector, credentials: Credentials = no_credentials
    ) -> None:
        self._settings = settings
        self._credentials = credentials
        self._pool = Pool(connector)

    async def start(self) -> None:
        """Open nothing yet: connections are made when they are needed."""
        self._pool.start()

    async def close(self) -> None:
        """End all connections that are idle; whoever has one ends it."""
        await self._pool.close()

    async def __aenter__(self) -> "HttpDownstream":
        await self.start()
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        await self.close()

    @contextlib.asynccontextmanager
    async def send(self, forward: Forward) -> AsyncIterator["Answer"]:
        """As `proxy.ports.Downstream.send`."""
        url = target_url(forward)
        origin = Origin(url.raw_host or "", url.port or 0, url.scheme == "https")
        request = self._request(forward, url)  # before a connection is made: it may be refused
        try:
            async with asyncio.timeout(self._timeout_s(forward)):
                connection = await self._taken(origin)
                await _answered(connection, request)
        except TimeoutError as exc:
            raise DownstreamTimeout("the downstream gave no answer in time") from exc
        try:
            yield Answer(connection)
        finally:
            self._pool.put(origin, connection)  # ended unless the body was read to its end

    def _timeout_s(self, forward: Forward) -> float:
        return forward.server.passing.downstream_timeout_s or self._settings.downstream_timeout_s

    async def _taken(self, origin: Origin) -> Connection:
        try:
            return await self._pool.take(origin, self._settings.connect_timeout_s)
        except TimeoutError as exc:
            raise DownstreamUnreachable("the downstream did not take the connection in time") from exc
        except (OSError, UnicodeError) as exc:  # name look-up and TLS included; a name that cannot be one
            raise unreachable(exc) from exc

    def _request(self, forward: Forward, url: URL) -> bytes:
        """The whole request. Raises DownstreamUnusable when a field cannot be put on the wire."""
        lines = [f"{forward.method} {url.raw_path_qs} HTTP/1.1", f"Host: {_host_of(url)}"]
        lines += [f"{name}: {value}" for name, value in self._fields(forward)]
        if forward.body is not None:
            lines.append(f"Content-Length: {len(forward.body)}")
        if any(char in line for line in lines for char in _NO_LINE):
            raise DownstreamUnusable("a header field for the downstream cannot be put on the wire")
        head = "\r\n".join((*lines, "", ""))
        return head.encode("utf-8", "surrogateescape") + (forward.body or b"")

    def _fields(self, forward: Forward) -> Fields:
        """The client's fields, and the server's static credentials where the client sent none of its own."""
        if not forward.server.credentials:
            return forward.fields
        given = {name.lower() for name, _ in forward.fields}
        lacking = tuple(template for template in forward.server.credentials if template[0].lower() not in given)
        return (*forward.fields, *self._credentials(replace(forward.server, credentials=lacking)))


async def _answered(connection: Connection, request: bytes) -> None:
    try:
        await connection.answered(request)
    except NoAnswer as exc:
        raise DownstreamUnreachable("the downstream ended the connection without an answer") from exc
    except BadAnswer as exc:
        raise DownstreamUnusable(str(exc)) from exc
    except BaseException:
        connection.close()  # nobody waits any more: the client has gone, or the time is up
        raise


class Answer:
    """`proxy.ports.DownstreamAnswer`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def status(self) -> int:
        """The HTTP status code."""
        return self._connection.status

    @property
    def fields(self) -> Fields:
        """All header lines, in order."""
        return self._connection.fields

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it arrives. Raises DownstreamUnusable when it ends before its framing says."""
        try:
            while chunk := await self._connection.chunk():
                yield chunk
        except BadAnswer as exc:
            raise DownstreamUnusable(str(exc)) from exc


def _host_of(url: URL) -> str:
    host = f"[{url.raw_host}]" if ":" in (url.raw_host or "") else url.raw_host
    return f"{host}" if url.is_default_port() else f"{host}:{url.port}"


def target_url(forward: Forward) -> URL:
    """The configured address with the client's query after its own; nothing is decoded or normalised."""
    configured = forward.server.url
    if not forward.query:
        return URL(configured, encoded=True)
    return URL(f"{configured}{'&' if '?' in configured else '?'}{forward.query}", encoded=True)

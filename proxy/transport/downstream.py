"""Sends a request downstream, once, to the configured origin, and gives the answer as it arrives.

Source: DESIGN 3; RFC 9112; PROTOCOL 11 (aiohttp's defaults that a proxy must not have).

Invariant: takes a `Forward` and nothing else, so that nothing goes downstream without a permit.
"""

import asyncio
import contextlib
import io
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from types import TracebackType

import aiohttp
from aiohttp import hdrs
from multidict import CIMultiDict
from yarl import URL

from proxy.errors import DownstreamTimeout, DownstreamUnreachable, DownstreamUnusable
from proxy.ports import Credentials, DataPlaneSettings, Fields, Forward, no_credentials

_MAX_FIELD_BYTES = 65_536
"""Of a header line; tokens and mirrored arguments grow beyond aiohttp's 8 KiB."""

_LARGE_BODY_BYTES = 1 << 20
"""From here on aiohttp advises against writing a body at once."""

_NOT_ADDED = (hdrs.USER_AGENT, hdrs.ACCEPT, hdrs.ACCEPT_ENCODING, hdrs.CONTENT_TYPE)
"""Fields that aiohttp would add when the client sent none."""


class HttpDownstream:
    """`proxy.ports.Downstream` over HTTP. Use it as an async context manager, or `start` and `close` it.

    `credentials` gives the static header fields of a server.
    """

    def __init__(self, settings: DataPlaneSettings, credentials: Credentials = no_credentials) -> None:
        self._settings = settings
        self._credentials = credentials
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Open the connection pool; connections are made when they are needed."""
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=None, use_dns_cache=False),
            timeout=aiohttp.ClientTimeout(
                total=None, connect=self._settings.connect_timeout_s
            ),  # name look-up and TLS included
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=_NOT_ADDED,
            trust_env=False,
            max_line_size=_MAX_FIELD_BYTES,
            max_field_size=_MAX_FIELD_BYTES,
        )
        session._retry_connection = False  # a GET or DELETE must not run twice; aiohttp has no public switch for it
        self._session = session

    async def close(self) -> None:
        """End all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

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
        response = await self._answered(forward)
        try:
            yield Answer(response)
        finally:
            response.close()  # ends the connection, unless the body was read to its end and it is back in the pool

    async def _answered(self, forward: Forward) -> aiohttp.ClientResponse:
        try:
            async with asyncio.timeout(self._settings.downstream_timeout_s):
                return await self._request(forward)
        except aiohttp.ClientConnectorError as exc:  # name look-up included
            raise DownstreamUnreachable("the downstream cannot be reached") from exc
        except aiohttp.ConnectionTimeoutError as exc:
            raise DownstreamUnreachable("the downstream did not take the connection in time") from exc
        except TimeoutError as exc:
            raise DownstreamTimeout("the downstream gave no answer in time") from exc
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as exc:
            raise DownstreamUnreachable("the downstream ended the connection without an answer") from exc
        except (aiohttp.ClientError, ValueError) as exc:  # ValueError: a field that cannot be put on the wire
            raise DownstreamUnusable("the downstream's answer is not HTTP that can be passed on") from exc

    async def _request(self, forward: Forward) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("not started")
        return await self._session.request(
            forward.method,
            target_url(forward),
            headers=self._fields(forward),
            data=_payload(forward.body),
            allow_redirects=False,
        )

    def _fields(self, forward: Forward) -> CIMultiDict[str]:
        """The client's fields, and the server's static credentials where the client sent none of its own."""
        fields = CIMultiDict(forward.fields)
        if not forward.server.credentials:
            return fields
        lacking = tuple(template for template in forward.server.credentials if template[0] not in fields)
        fields.extend(self._credentials(replace(forward.server, credentials=lacking)))
        return fields


def _payload(body: bytes | None) -> bytes | io.BytesIO | None:
    """A large body is written in pieces, so that it does not hold up everybody else."""
    return io.BytesIO(body) if body is not None and len(body) > _LARGE_BODY_BYTES else body


class Answer:
    """`proxy.ports.DownstreamAnswer`."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    @property
    def status(self) -> int:
        """The HTTP status code."""
        return self._response.status

    @property
    def fields(self) -> Fields:
        """All header lines, in order."""
        return tuple(self._response.headers.items())

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it arrives. Raises DownstreamUnusable when it ends before its framing says."""
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, OSError) as exc:
            raise DownstreamUnusable("the downstream's answer ended too early") from exc


def target_url(forward: Forward) -> URL:
    """The configured address with the client's query after its own; nothing is decoded or normalised."""
    configured = forward.server.url
    if not forward.query:
        return URL(configured, encoded=True)
    return URL(f"{configured}{'&' if '?' in configured else '?'}{forward.query}", encoded=True)

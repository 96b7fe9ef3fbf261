"""Asks a downstream for all its tools.

Source: DESIGN 5 (Refresh). Every failure becomes one sentence without the address, a credential or anything that the
downstream wrote.
"""

import asyncio
from http import HTTPStatus
from typing import Any

import httpx2
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from registry.downstream.http import AnswerTooLarge, BoundedTransport, http_client
from registry.downstream.pages import Catalogue
from registry.downstream.session import opened, tools_page
from registry.errors import DownstreamFailed
from registry.model import Snapshot

_EXPECTED = (MCPError, httpx2.HTTPError, httpx2.InvalidURL, ValidationError, RuntimeError)
"""What the client library raises for a downstream that misbehaves; an unusable handshake is a RuntimeError."""

_SENTENCES: tuple[tuple[type[Exception], str], ...] = (
    (AnswerTooLarge, "the downstream sent an answer that is too large, or compressed"),
    (httpx2.ConnectTimeout, "the downstream could not be connected to in time"),
    (httpx2.ConnectError, "the downstream could not be connected to"),
    (httpx2.TimeoutException, "the downstream did not answer in time"),
    (httpx2.HTTPError, "the connection to the downstream broke"),
    (ValidationError, "the downstream sent an answer that is not MCP"),
)


class McpCatalogue:
    """`CatalogueSource` on the official MCP client library.

    `timeout_s` bounds all of one listing.
    """

    def __init__(self, timeout_s: float = 30.0) -> None:
        self._timeout_s = timeout_s

    async def snapshot(self, url: str) -> Snapshot:
        """All pages of `tools/list` and the declared capabilities, within `timeout_s`. Raises DownstreamFailed."""
        transport = BoundedTransport()
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._listing(url, transport)
        except TimeoutError as exc:
            raise DownstreamFailed(f"the downstream did not list its tools in {self._timeout_s:g} s") from exc
        except (DownstreamFailed, *_EXPECTED, ExceptionGroup) as exc:
            raise _failure(exc, transport.last_status) from exc

    async def _listing(self, url: str, transport: BoundedTransport) -> Snapshot:
        async with http_client(transport, self._timeout_s) as http, opened(url, http) as session:
            catalogue = Catalogue()
            catalogue.add(await tools_page(session, None))
            while catalogue.next_cursor is not None:
                catalogue.add(await tools_page(session, catalogue.next_cursor))
            return Snapshot(catalogue.tools, _capabilities(session))


def _capabilities(session: ClientSession) -> dict[str, Any]:
    declared = session.server_capabilities
    return {} if declared is None else declared.model_dump(by_alias=True, mode="json", exclude_none=True)


def _failure(error: Exception, status: int | None) -> DownstreamFailed:
    """The error to show. What is no failure of a downstream is a fault of ours and goes on as it is."""
    first = _first(error)
    if isinstance(first, DownstreamFailed):
        return first
    if isinstance(first, MCPError):
        return DownstreamFailed(_refusal(first, status))
    for kind, sentence in _SENTENCES:
        if isinstance(first, kind):
            return DownstreamFailed(sentence)
    return DownstreamFailed("the downstream did not speak MCP")


def _refusal(error: MCPError, status: int | None) -> str:
    if status is not None and status >= HTTPStatus.BAD_REQUEST:
        return f"the downstream answered with HTTP status {status}"
    if status is not None and status >= HTTPStatus.MULTIPLE_CHOICES:
        return f"the downstream redirects (HTTP status {status}), which is never followed"
    return f"the downstream answered with the JSON-RPC error {error.code}, or with what is not MCP"


def _first(error: Exception) -> Exception:
    if not isinstance(error, ExceptionGroup):
        return error
    _, ours = error.split((DownstreamFailed, *_EXPECTED))
    if ours is not None:
        raise ours
    return _first(error.exceptions[0])

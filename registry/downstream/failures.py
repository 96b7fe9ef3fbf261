"""What goes wrong with a downstream, as one sentence without its address, a credential or anything that it wrote."""

from http import HTTPStatus

import httpx2
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from registry.downstream.http import AnswerTooLarge
from registry.errors import DownstreamFailed

EXPECTED = (MCPError, httpx2.HTTPError, httpx2.InvalidURL, ValidationError, RuntimeError)
"""What the client library raises for a downstream that misbehaves; an unusable handshake is a RuntimeError."""

_SENTENCES: tuple[tuple[type[Exception], str], ...] = (
    (AnswerTooLarge, "the downstream sent an answer that is too large, or compressed"),
    (httpx2.ConnectTimeout, "the downstream could not be connected to in time"),
    (httpx2.ConnectError, "the downstream could not be connected to"),
    (httpx2.TimeoutException, "the downstream did not answer in time"),
    (httpx2.HTTPError, "the connection to the downstream broke"),
    (ValidationError, "the downstream sent an answer that is not MCP"),
)


def failure(error: Exception, status: int | None) -> DownstreamFailed:
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
    _, ours = error.split((DownstreamFailed, *EXPECTED))
    if ours is not None:
        raise ours
    return _first(error.exceptions[0])

"""What Weaviate's client raises, as the registry's errors.

Source: WEAVIATE (exceptions of the client). httpx and gRPC errors come through as they are; a refusal is a status over
REST, and only a sentence in a gRPC answer or in the error of one object.

Invariant: a message holds what the server said, never what we sent, so no key is in it.
"""

import re
from collections.abc import Iterator
from typing import Any

import grpc  # type: ignore[import-untyped]  # its stubs are a package of their own
import httpx
from weaviate.exceptions import (
    InsufficientPermissionsError,
    UnexpectedStatusCodeError,
    WeaviateBaseError,
    WeaviateConnectionError,
    WeaviateInsertManyAllFailedError,
    WeaviateStartUpError,
)

from registry.errors import IndexUnavailable, IndexUnusable

FAULTS = (WeaviateBaseError, httpx.HTTPError, grpc.RpcError, UnicodeEncodeError)
"""All that a call of the client may raise, apart from time running out."""

_REFUSED = re.compile(r"unauthori[sz]ed|insufficient permissions|anonymous access not enabled", re.IGNORECASE)

_OTHER_LENGTH = re.compile(r"vector lengths don't match|vector dimensions do not match|vector with length \d+")

_MAX_CHARS = 300
"""Of what a server said; one sentence is enough for a person, and a batch repeats it for each object."""


def translated(exc: BaseException, url: str) -> IndexUnavailable | IndexUnusable:
    """The registry's error for one of FAULTS."""
    if isinstance(exc, UnicodeEncodeError):
        return IndexUnusable("a lone surrogate is no character and cannot be stored in Weaviate")
    if isinstance(exc, InsufficientPermissionsError) or status_of(exc) == httpx.codes.UNAUTHORIZED:
        return _refusal(what_it_said(exc), url)
    if isinstance(exc, WeaviateStartUpError) and "is not supported" in str(exc):
        return IndexUnusable(f"the Weaviate at {url} is too old: run version 1.27 or newer")
    if isinstance(exc, httpx.ConnectError | WeaviateConnectionError):
        return IndexUnavailable(f"Weaviate at {url} cannot be reached; see SLUICEGATE_WEAVIATE_URL")
    return from_words(what_it_said(exc), url)


def from_words(said: str, url: str) -> IndexUnavailable | IndexUnusable:
    """The registry's error for what Weaviate said about an object, or about a call over gRPC."""
    if _REFUSED.search(said):
        return _refusal(said, url)
    return IndexUnavailable(f"Weaviate at {url} failed: {_short(said)}")


def _refusal(said: str, url: str) -> IndexUnusable:
    return IndexUnusable(
        f"Weaviate at {url} refuses the key: set SLUICEGATE_WEAVIATE_API_KEY to one that may read, create, update and"
        f" delete the collection and its objects ({_short(said)})"
    )


def is_of_other_length(said: str) -> bool:
    """True when a vector was refused because those in the collection are longer or shorter."""
    return _OTHER_LENGTH.search(said) is not None


def status_of(exc: BaseException) -> int | None:
    """The HTTP status, None when the error is of another kind."""
    return exc.status_code if isinstance(exc, UnexpectedStatusCodeError) else None


def what_it_said(exc: BaseException) -> str:
    """The server's own words; the kind of the error when it did not say any."""
    for cause in _chain(exc):
        if isinstance(cause, grpc.aio.AioRpcError):
            return str(cause.details() or cause.code().name)
    if isinstance(exc, UnexpectedStatusCodeError):
        return f"status {exc.status_code}: {_message(exc.error)}"
    return str(exc) if isinstance(exc, WeaviateInsertManyAllFailedError) else type(exc).__name__


def _chain(exc: BaseException | None) -> Iterator[BaseException]:
    while exc is not None:
        yield exc
        exc = exc.__cause__ or exc.__context__


def _message(body: Any) -> str:
    """Of `{"error": [{"message": ...}]}` or `{"message": ...}`."""
    if isinstance(body, dict):
        errors = body.get("error")
        first = errors[0] if isinstance(errors, list) and errors else body
        return str(first.get("message", first) if isinstance(first, dict) else first)
    return str(body or "no reason given")


def _short(said: str) -> str:
    words = " ".join(said.split())
    return words if len(words) <= _MAX_CHARS else words[:_MAX_CHARS] + "..."

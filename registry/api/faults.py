"""Every "no" of the API as one JSON shape: `{"detail", "code"}`, and what else the caller needs.

Source: DESIGN 5 (errors everywhere on the API), RFC 9110 15.5 (401, 405), RFC 6750 3 (WWW-Authenticate).
"""

from typing import Any

from aiohttp import web

from registry.errors import (
    Conflict,
    DownstreamFailed,
    Forbidden,
    IndexUnavailable,
    IndexUnusable,
    Invalid,
    NotFound,
    PreconditionFailed,
    RegistryError,
    StoreUnavailable,
    Unauthenticated,
)

_STATUS: dict[type[RegistryError], int] = {
    Invalid: 400,
    Unauthenticated: 401,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    PreconditionFailed: 412,
    DownstreamFailed: 502,
    IndexUnavailable: 503,
    IndexUnusable: 409,
    StoreUnavailable: 503,
    RegistryError: 500,
}
"""By class, subclasses included. An `Invalid` that names its field is 422."""

_CODES = {404: "not_found", 405: "method_not_allowed", 413: "body_too_large", 415: "unsupported_media_type"}
"""For what aiohttp refuses before a handler is asked."""

CHALLENGE = 'Bearer realm="sluicegate"'


class BadRequest(Exception):
    """The request itself cannot be read; `code` is for programs."""

    def __init__(self, status: int, code: str, detail: str, *, field: str | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.field = field


def of_registry(error: RegistryError) -> web.Response:
    """The answer to an error of a use case."""
    status = next(number for kind, number in _STATUS.items() if isinstance(error, kind))
    more: dict[str, Any] = {}
    if isinstance(error, Forbidden) and error.required_scope is not None:
        more["required_scope"] = str(error.required_scope)
    if isinstance(error, Forbidden) and error.required_permission is not None:
        more["required_permission"] = error.required_permission
    if isinstance(error, Invalid) and error.field is not None:
        status, more["field"] = 422, camel(error.field)
    response = _response(status, str(error), error.code, **more)
    if status == 401:
        response.headers["WWW-Authenticate"] = CHALLENGE
    return response


def of_request(error: BadRequest) -> web.Response:
    """The answer to a request that cannot be read."""
    more = {} if error.field is None else {"field": error.field}
    return _response(error.status, str(error), error.code, **more)


def of_http(error: web.HTTPException) -> web.Response:
    """The answer to what aiohttp refuses: no such route, or not with this method."""
    response = _response(error.status, error.reason, _CODES.get(error.status, "http_error"))
    if "Allow" in error.headers:
        response.headers["Allow"] = error.headers["Allow"]
    return response


def _response(status: int, detail: str, code: str, **more: Any) -> web.Response:
    return web.json_response({"detail": detail, "code": code, **more}, status=status)


def camel(name: str) -> str:
    """`expires_at` as the wire spells it: `expiresAt`."""
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)

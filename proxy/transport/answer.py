"""What the core says, as aiohttp sends it.

aiohttp adds fields of its own when a response lacks them; `strip_added` takes those away again that an answer of a
downstream did not have, so that an empty 202 stays one without a type.
"""

from typing import TypeVar

from aiohttp import hdrs, web
from multidict import CIMultiDict

from proxy.ports import Fields, Reply

R = TypeVar("R", bound=web.StreamResponse)

_FIELDS = web.ResponseKey("fields", frozenset)


def authored(reply: Reply) -> web.Response:
    """An answer of ours; nobody may store it."""
    response = web.Response(status=reply.status, headers=CIMultiDict(reply.fields), body=reply.body)
    response.headers[hdrs.CACHE_CONTROL] = "no-store"
    return _marked(response, reply.fields)


def whole(status: int, fields: Fields, body: bytes) -> web.Response:
    """A downstream's answer of known length."""
    return _marked(web.Response(status=status, headers=CIMultiDict(fields), body=body), fields)


def streamed(status: int, fields: Fields) -> web.StreamResponse:
    """A downstream's answer, to be written as it arrives."""
    return _marked(web.StreamResponse(status=status, headers=CIMultiDict(fields)), fields)


def _marked(response: R, fields: Fields) -> R:
    response[_FIELDS] = frozenset(name.lower() for name, _ in fields)
    return response


async def strip_added(_request: web.Request, response: web.StreamResponse) -> None:
    """A signal handler for `on_response_prepare`: takes away what aiohttp added."""
    given = response.get(_FIELDS)
    if given is not None:
        for name in (hdrs.CONTENT_TYPE, hdrs.SERVER):
            if name.lower() not in given:
                response.headers.pop(name, None)

"""Reads what a client sent: a body as a model, a name in the path.

A body is one JSON object in UTF-8 without a repeated member; what is no such thing is 400, what has the wrong shape
is 422 and names the member. No value is coerced, and none is echoed: it may be a secret.
"""

import json
import re
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes

from aiohttp import web
from pydantic import BaseModel, ValidationError

from registry.api.context import BODY
from registry.api.faults import BadRequest
from registry.discovery import DEFAULT_LIMIT, Wanted

ModelT = TypeVar("ModelT", bound=BaseModel)

_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_TAG = re.compile(r'(W/)?"([!#-~\x80-\xff]*)"')
_TAGS = re.compile(rf"[ \t,]*{_TAG.pattern}(?:[ \t]*,[ \t,]*{_TAG.pattern})*[ \t,]*")
_BAD_PATH = "the path is not percent-encoded UTF-8"


def body_as(model: type[ModelT], request: web.Request) -> ModelT:
    """The body as `model`. Raises BadRequest, 400 or 422."""
    _check_json(request[BODY])
    try:
        return model.model_validate_json(request[BODY], strict=True)
    except ValidationError as exc:
        raise _fault(exc) from None  # the cause would carry the input


def _check_json(body: bytes) -> None:
    try:
        value = json.loads(body.decode("utf-8"), object_pairs_hook=_unrepeated, parse_constant=_refused)
    except (ValueError, RecursionError) as exc:
        raise BadRequest(400, "invalid_json", "the body is not JSON in UTF-8 without repeated members") from exc
    if not isinstance(value, dict):
        raise BadRequest(400, "invalid_json", "the body is not a JSON object")


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member is repeated")
    return members


def _refused(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _fault(error: ValidationError) -> BadRequest:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        return BadRequest(400, "invalid_json", "the body is not JSON")
    where = ".".join(str(step) for step in first["loc"])
    field = str(first["loc"][0]) if first["loc"] else None
    return BadRequest(422, "invalid_body", f"{where}: {first['msg']}" if where else first["msg"], field=field)


def server_in(request: web.Request) -> str:
    """The server of `/servers/{server}/...`: an id, or a path, whose slash is percent-encoded."""
    return _decoded(_after_servers(request).partition("/")[0])


def tool_in(request: web.Request) -> str:
    """The tool of `/servers/{server}/tools/{tool}`: everything after it, so that any name can be given."""
    return _decoded(_after_servers(request).split("/", 2)[2])


def _after_servers(request: web.Request) -> str:
    # The path as it came: a router's decoding cannot tell `%252F` from `%2F` in every position.
    return request.rel_url.raw_path.partition("/servers/")[2]


def _decoded(segment: str) -> str:
    try:
        text = unquote_to_bytes(segment).decode("utf-8")
    except UnicodeError as exc:
        raise BadRequest(400, "invalid_path", _BAD_PATH) from exc
    if _BROKEN_ESCAPE.search(segment):
        raise BadRequest(400, "invalid_path", _BAD_PATH)
    return text


def seen_in(request: web.Request) -> frozenset[str] | None:
    """The fingerprints of `If-Match` (RFC 9110 13.1.1); None without the field and for `*`. Raises BadRequest.

    Weak tags are left out: none of ours is weak, and a weak one never matches.
    """
    lines = request.headers.getall("If-Match", [])
    if not lines or lines == ["*"]:
        return None
    text = ",".join(lines)
    if not _TAGS.fullmatch(text):
        raise BadRequest(400, "invalid_if_match", "If-Match is * or a list of entity tags")
    return frozenset(tag for weak, tag in _TAG.findall(text) if not weak)


def wanted_in(request: web.Request) -> Wanted:
    """The search of `/discovery/search?q=&limit=&server=&include_disabled=`. Raises BadRequest, 422."""
    given = _query(request, frozenset({"q", "limit", "server", "include_disabled"}))
    return Wanted(
        text=given.get("q", ""),
        limit=_whole(given.get("limit"), DEFAULT_LIMIT),
        server=given.get("server"),
        include_disabled=_flag(given.get("include_disabled", "false")),
    )


def reason_in(request: web.Request) -> str | None:
    """The reason of `DELETE ...?reason=`, which has no body to say it in. Raises BadRequest, 422."""
    return _query(request, frozenset({"reason"})).get("reason")


def _query(request: web.Request, names: frozenset[str]) -> dict[str, str]:
    raw = request.rel_url.raw_query_string
    if _BROKEN_ESCAPE.search(raw) or not _is_utf8(raw):
        raise BadRequest(400, "invalid_query", "the query is not percent-encoded UTF-8")
    given = dict(request.query)
    if len(given) != len(request.query):
        repeated = next(name for name in request.query if len(request.query.getall(name)) > 1)
        raise BadRequest(422, "invalid_query", f"the query parameter {repeated} is repeated", field=repeated)
    if given.get("server") == "":
        raise BadRequest(422, "invalid_query", "server is an id or a path, and not empty", field="server")
    if unknown := sorted(given.keys() - names):
        raise BadRequest(422, "invalid_query", f"there is no query parameter {unknown[0]}", field=unknown[0])
    return given


def _is_utf8(raw: str) -> bool:
    try:
        unquote_to_bytes(raw).decode("utf-8")
    except UnicodeError:
        return False
    return True


def _whole(text: str | None, default: int) -> int:
    if text is None:
        return default
    if not re.fullmatch(r"-?[0-9]{1,9}", text):
        raise BadRequest(422, "invalid_query", "limit is a whole number", field="limit")
    return int(text)


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise BadRequest(422, "invalid_query", "include_disabled is true or false", field="include_disabled")
    return text == "true"

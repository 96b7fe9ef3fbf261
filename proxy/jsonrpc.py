"""An HTTP body read as JSON-RPC messages, strictly: what two readers could take differently is refused.

Source: JSON-RPC 2.0 sections 4 to 6; PROTOCOL 10.4 rules 3 to 7. The levels that decide are the message object, its
`params` and their `_meta`; everything deeper is the downstream's business.

Invariant: whatever a reader in the field would run as `tools/call` of a name, `parse` reports as `tools/call` of
exactly that name, or refuses.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from proxy import jsontext
from proxy.errors import InvalidRequest, ParseError
from proxy.jsontext import Decoded, NotJson, Number, Pairs, has_lone_surrogate, string

TOOLS_CALL = "tools/call"
"""The one method that runs a tool; compared exactly, since no server folds it."""

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
"""The member of `params._meta` that a request's `MCP-Protocol-Version` mirrors."""


@dataclass(frozen=True, slots=True)
class Request:
    """A call that wants an answer.

    `id` is its JSON text (`7`, `"a"`), which an answer repeats: as spelled, unless the body has escapes. `params` is
    `{}` when absent; numbers in it are `jsontext.Number`. A `tools/call` has a string `params["name"]`.
    """

    id: str
    method: str
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Notification:
    """A call that wants no answer; otherwise like a request."""

    method: str
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Response:
    """A client's answer to a request of the downstream. `id` is JSON text; None in an error about an unread id."""

    id: str | None


Message = Request | Notification | Response


@dataclass(frozen=True, slots=True)
class Body:
    """The messages of one HTTP body in their order, never none. A batch of one is still a batch."""

    messages: tuple[Message, ...]
    is_batch: bool

    @property
    def only_id(self) -> str | None:
        """The id of the one request; None for a batch, which has several, and where no answer is wanted."""
        first = self.messages[0]
        return first.id if isinstance(first, Request) and not self.is_batch else None


_NAMES = ("jsonrpc", "id", "method", "params", "name", "uri", "result", "error", "_meta", "taskId", VERSION_KEY)
_DECIDING = {name.casefold(): name for name in _NAMES}
_USUAL = frozenset((*_NAMES, "arguments", "cursor", "progressToken"))
"""Names of which no two fold alike: a level that has only these, each once, is read alike by everybody."""

_MIRRORED = ("name", "uri", "taskId")

MAX_MEMBERS = 20_000
"""At the levels that decide, in one body. Each costs a microsecond of everybody's time, and a message has a dozen."""

_SMALL_BYTES = MAX_MEMBERS
"""A body under it cannot have that many: a member takes several bytes, an element one and its comma."""


def parse(body: bytes) -> Body:
    """Read an HTTP body as one message or a batch of them.

    Args:
        body: UTF-8 JSON, at most the transport's body limit in bytes.

    Raises:
        ParseError: `body` is not JSON, or nested too deeply.
        InvalidRequest: it is not one unambiguous message or a non-empty batch. Carries the id of a single request
            when that can be read without doubt.
    """
    try:
        decoded = jsontext.decode(body)
        _check_size(len(body), decoded.pairs)
    except NotJson as exc:
        raise ParseError(f"Parse error: {exc}") from exc
    try:
        return _body(decoded)
    except _Doubt as exc:
        raise InvalidRequest(f"Invalid request: {exc}", id=_known_id(decoded)) from exc


class _Doubt(Exception):
    """Why this is not one unambiguous message; never quotes it."""


def _check_size(size: int, pairs: Any) -> None:
    if size < _SMALL_BYTES:
        return
    messages = pairs if isinstance(pairs, list) else [pairs]
    levels = (level for message in messages for level in _deciding_levels(message))
    if len(messages) + sum(map(len, levels)) > MAX_MEMBERS:
        raise NotJson("too many members to be judged")


def _deciding_levels(message: Any) -> Iterator[Pairs]:
    """The levels of one message whose members decide, from the top down; none when it is no object."""
    level = message
    for inner in ("params", "_meta", ""):
        if not isinstance(level, tuple):
            return
        yield level
        level = next((value for name, value in level if name == inner), None)


def _body(decoded: Decoded) -> Body:
    value, pairs = decoded.value, decoded.pairs
    if not isinstance(pairs, list):
        return Body((_message(value, pairs, decoded.text),), is_batch=False)
    if not pairs:
        raise _Doubt("the batch is empty")
    messages = tuple(_message(*one, decoded.text) for one in zip(value, pairs, strict=True))
    return Body(messages, is_batch=True)


def _message(message: Any, pairs: Any, text: str) -> Message:
    if not isinstance(message, dict):
        raise _Doubt("a message is an object")
    if any(map(_is_ambiguous, _deciding_levels(pairs))):
        raise _Doubt("two readers could take its members differently")
    if string(message.get("jsonrpc")) != "2.0":
        raise _Doubt('"jsonrpc" must be "2.0"')
    return _call(message, text) if "method" in message else _response(message, text)


def _is_ambiguous(level: Pairs) -> bool:
    names = [name for name, _ in level]
    distinct = set(names)
    if len(distinct) == len(names) and distinct <= _USUAL:
        return False  # the usual case, and a quarter of the cost
    return jsontext.ambiguity(names, _DECIDING) is not None


def _call(message: Mapping[str, Any], text: str) -> Request | Notification:
    method = string(message["method"])
    if method is None:
        raise _Doubt('"method" must be a string')
    if "result" in message or "error" in message:
        raise _Doubt("a request has no result or error")  # some servers would run it, others take it for an answer
    params = message.get("params", {})
    if not isinstance(params, dict):
        raise _Doubt('"params" must be an object')
    if method == TOOLS_CALL and string(params.get("name")) is None:
        raise _Doubt("tools/call needs the name of a tool")
    _check_decodable(method, params)
    if "id" not in message:
        return Notification(method, params)
    if (id_text := _id_text(message["id"], text)) is None:
        raise _Doubt("an id is a string or an integer")
    return Request(id_text, method, params)


def _check_decodable(method: str, params: Mapping[str, Any]) -> None:
    """Refuse a lone surrogate in what decides: no store can hold it, so no switch could ever name it."""
    meta = params.get("_meta")
    version = meta.get(VERSION_KEY) if isinstance(meta, Mapping) else None
    for value in (method, version, *(params.get(name) for name in _MIRRORED)):
        if has_lone_surrogate(string(value) or ""):
            raise _Doubt("a lone surrogate stands in a string that decides")


def _response(message: Mapping[str, Any], text: str) -> Response:
    if ("result" in message) == ("error" in message):
        raise _Doubt("neither a request nor a response")
    if "error" in message and "id" in message and message["id"] is None:
        return Response(None)
    id_text = _id_text(message.get("id"), text)
    if id_text is None:
        raise _Doubt("a response needs the id of its request")
    return Response(id_text)


def _known_id(decoded: Decoded) -> str | None:
    """The id of a single message; None for a batch, which has several, and where readers could differ."""
    if not isinstance(decoded.value, dict) or _is_ambiguous(decoded.pairs):
        return None
    return _id_text(decoded.value.get("id"), decoded.text)


def _id_text(value: Any, text: str) -> str | None:
    if isinstance(value, Number):
        return str(value) if value.lstrip("-").isdigit() else None  # 7.0 and 7E0 would come back as 7
    if not isinstance(value, str):
        return None
    return f'"{value}"' if "\\" not in text else json.dumps(value)

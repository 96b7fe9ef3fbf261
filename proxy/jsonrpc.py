"""An HTTP body read as JSON-RPC messages, strictly: what two readers could take differently is refused.

Source: JSON-RPC 2.0 sections 4 to 6; PROTOCOL 10.4 rules 3 to 7. The levels that decide are the message object, its
`params` and their `_meta`; everything deeper is the downstream's business.

Invariant: whatever a reader in the field would run as `tools/call` of a name, `parse` reports as `tools/call` of
exactly that name, or refuses.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from proxy import jsontext
from proxy.errors import InvalidRequest, ParseError
from proxy.jsontext import Array, Document, NotJson, Number, Object, Opaque, Shape, has_lone_surrogate, string

TOOLS_CALL = "tools/call"
"""The one method that runs a tool; compared exactly, since no server folds it."""

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
"""The member of `params._meta` that a request's `MCP-Protocol-Version` mirrors."""


@dataclass(frozen=True, slots=True)
class Request:
    """A call that wants an answer.

    `id` is its JSON text as spelled (`7`, `"a"`): an answer repeats it. `params` is `{}` when absent; numbers in it
    are `jsontext.Number`. A `tools/call` has a string `params["name"]`.
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


_PARAMS = Shape({"_meta": Shape()})
_BODY = Shape({"params": _PARAMS}, elements=Shape({"params": _PARAMS}))

_NAMES = ("jsonrpc", "id", "method", "params", "name", "uri", "result", "error", "_meta", "taskId", VERSION_KEY)
_DECIDING = {name.casefold(): name for name in _NAMES}
_MIRRORED = ("name", "uri", "taskId")


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
        document = jsontext.read(body, _BODY)
    except NotJson as exc:
        raise ParseError(f"Parse error: {exc}") from exc
    try:
        return _body(document)
    except _Doubt as exc:
        raise InvalidRequest(f"Invalid request: {exc}", id=_known_id(document)) from exc


class _Doubt(Exception):
    """Why this is not one unambiguous message; never quotes it."""


def _body(document: Document) -> Body:
    root = document.root
    if not isinstance(root, Array):
        return Body((_message(document.text, root),), is_batch=False)
    if not root.elements:
        raise _Doubt("the batch is empty")
    return Body(tuple(_message(document.text, element) for element in root.elements), is_batch=True)


def _message(text: str, node: jsontext.Node) -> Message:
    if not isinstance(node, Object):
        raise _Doubt("a message is an object")
    if any(_is_ambiguous(level) for level in _deciding_levels(node)):
        raise _Doubt("two readers could take its members differently")
    if _string(node, "jsonrpc") != "2.0":
        raise _Doubt('"jsonrpc" must be "2.0"')
    return _response(text, node) if node.get("method") is None else _call(text, node)


def _deciding_levels(message: Object) -> Iterator[Object]:
    yield message
    params = message.get("params")
    if isinstance(params, Object):
        yield params
        meta = params.get("_meta")
        if isinstance(meta, Object):
            yield meta


def _is_ambiguous(level: Object) -> bool:
    return jsontext.ambiguity((member.name for member in level.members), _DECIDING) is not None


def _call(text: str, node: Object) -> Request | Notification:
    method = _string(node, "method")
    if method is None:
        raise _Doubt('"method" must be a string')
    if node.get("result") is not None or node.get("error") is not None:
        raise _Doubt("a request has no result or error")  # some servers would run it, others take it for an answer
    params = _params(node)
    if method == TOOLS_CALL and string(params.get("name")) is None:
        raise _Doubt("tools/call needs the name of a tool")
    _check_decodable(method, params)
    if (id_node := node.get("id")) is None:
        return Notification(method, params)
    if (id_text := _id_text(text, id_node)) is None:
        raise _Doubt("an id is a string or an integer")
    return Request(id_text, method, params)


def _params(message: Object) -> Mapping[str, Any]:
    node = message.get("params")
    if node is None:
        return {}
    if not isinstance(node, Object):
        raise _Doubt('"params" must be an object')
    params: Mapping[str, Any] = jsontext.decoded(node)
    return params


def _check_decodable(method: str, params: Mapping[str, Any]) -> None:
    """Refuse a lone surrogate in what decides: no store can hold it, so no switch could ever name it."""
    meta = params.get("_meta")
    version = meta.get(VERSION_KEY) if isinstance(meta, Mapping) else None
    for value in (method, version, *(params.get(name) for name in _MIRRORED)):
        if has_lone_surrogate(string(value) or ""):
            raise _Doubt("a lone surrogate stands in a string that decides")


def _response(text: str, node: Object) -> Response:
    if (node.get("result") is None) == (node.get("error") is None):
        raise _Doubt("neither a request nor a response")
    id_node = node.get("id")
    if node.get("error") is not None and isinstance(id_node, Opaque) and id_node.value is None:
        return Response(None)
    id_text = _id_text(text, id_node)
    if id_text is None:
        raise _Doubt("a response needs the id of its request")
    return Response(id_text)


def _known_id(document: Document) -> str | None:
    """The id of a single message; None for a batch, which has several, and where readers could differ."""
    root = document.root
    if not isinstance(root, Object) or _is_ambiguous(root):
        return None
    return _id_text(document.text, root.get("id"))


def _id_text(text: str, node: jsontext.Node | None) -> str | None:
    if not isinstance(node, Opaque):
        return None
    is_integer = isinstance(node.value, Number) and node.value.lstrip("-").isdigit()  # 7.0 and 7E0 would come back as 7
    return text[node.start : node.end] if is_integer or string(node.value) is not None else None


def _string(node: Object, name: str) -> str | None:
    member = node.get(name)
    return string(member.value) if isinstance(member, Opaque) else None

"""The answers that we author: JSON-RPC errors, and plain JSON where no message is answered.

Source: JSON-RPC 2.0 section 5; DESIGN 1 and 3 (Block, Own failures); PROTOCOL 5; RFC 9110 for 401, 405 and 421. An
error whose caller's id is not known has `"id": null`: JSON-RPC asks for it, and official clients read no error that
lacks the member.

Invariant: unless a setting says otherwise, a refused tool is answered as a server without that tool would answer,
whatever the reason.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from proxy import sentences
from proxy.errors import ProxyError
from proxy.jsonrpc import Body, Request
from proxy.ports import Fields, RefusalStyle, Reply
from registry.access import Permit, Reason, Refusal

INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SWITCHED_OFF = -32003

_JSON: Fields = (("Content-Type", "application/json"),)

_FIELDS_OF: Mapping[int, Fields] = {
    401: (("WWW-Authenticate", 'Bearer realm="sluicegate"'),),
    405: (("Allow", "GET, POST, DELETE"),),
    429: (("Retry-After", "10"),),
}
"""What RFC 9110 and RFC 6585 ask for beside these statuses."""


def error(id_text: str | None, code: int, message: str, data: Any = None) -> bytes:
    """One JSON-RPC error.

    Args:
        id_text: the JSON text of the caller's id, repeated as spelled; None when it is not known.
        code: of JSON-RPC or MCP.
        message: any code points, lone surrogates included; leaves as ASCII.
        data: decoded JSON for programs, None for none.
    """
    content = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return f'{{"jsonrpc":"2.0","id":{id_text or "null"},"error":{json_text(content)}}}'.encode()


def for_error(fault: ProxyError) -> Reply:
    """The answer to an exchange that cannot go on."""
    return Reply(fault.status, _JSON, error(fault.id, fault.code, str(fault), fault.data))


def result(id_text: str, content: Mapping[str, Any]) -> bytes:
    """One JSON-RPC result of ours; `id_text` as for `error`. Leaves as ASCII."""
    return f'{{"jsonrpc":"2.0","id":{id_text},"result":{json_text(content)}}}'.encode()


def json_text(value: Any) -> str:
    """Decoded JSON as compact ASCII text. Raises ValueError for an infinity, which JSON has no form for."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def refused(body: Body, verdicts: Sequence[Permit | Refusal], style: RefusalStyle = RefusalStyle.UNKNOWN) -> Reply:
    """The answer to a body that holds a refused message; nothing of it goes downstream.

    A batch is refused whole: one error for each message with an id. 202 without a body when none has one.

    Args:
        body: what was asked.
        verdicts: one for each message in order, at least one of them a refusal.
        style: how a refused call is answered.
    """
    refusals = tuple(verdict for verdict in verdicts if isinstance(verdict, Refusal))
    if refusals[0].reason in _ABOUT_SERVER:  # the same for every message of the body
        return turned_away(refusals[0], body.only_id)
    answers = tuple(_answers(body, verdicts, style))
    if not answers:
        return Reply(202, (), refusals=refusals)
    return Reply(200, _JSON, b"[" + b",".join(answers) + b"]" if body.is_batch else answers[0], refusals)


def _answers(body: Body, verdicts: Sequence[Permit | Refusal], style: RefusalStyle) -> Iterator[bytes]:
    for message, verdict in zip(body.messages, verdicts, strict=True):
        if isinstance(message, Request) and isinstance(verdict, Refusal):
            yield _refusal(message.id, verdict, style)
        elif isinstance(message, Request):
            yield error(message.id, INVALID_REQUEST, "batch refused")


def _refusal(id_text: str, refusal: Refusal, style: RefusalStyle) -> bytes:
    text = sentences.of_refusal(refusal, style)
    if style is RefusalStyle.EXPLAIN:
        return result(id_text, {"resultType": "complete", "content": [{"type": "text", "text": text}], "isError": True})
    return error(id_text, _CODES[style], text)


_CODES: Mapping[RefusalStyle, int] = {RefusalStyle.UNKNOWN: INVALID_PARAMS, RefusalStyle.LEGACY: SWITCHED_OFF}


def turned_away(refusal: Refusal, id_text: str | None = None) -> Reply:
    """The answer to a caller who may not reach the server at all: rows 1 to 3, and a policy that cannot be read.

    Args:
        refusal: from `access.use_server`, or from `use_tool` for one of its reasons.
        id_text: the caller's id when it is known.
    """
    if refusal.reason is Reason.POLICY_UNREADABLE:
        unreadable = error(id_text, INTERNAL_ERROR, "the stored policy of this server cannot be read")
        return Reply(503, _JSON, unreadable, (refusal,))
    return replace(_ENTRY[refusal.reason], refusals=(refusal,))


def problem(status: int, summary: str, detail: str, code: str, required_scope: str | None = None) -> Reply:
    """Plain JSON `{error, detail, code, required_scope?}`, for a request that is turned away before it is read.

    Args:
        status: of HTTP; the fields that RFC 9110 asks for beside it are set.
        summary: goes out as `error`; short, and fixed for its cause.
        detail: one sentence for a person.
        code: for programs.
        required_scope: the scope that lacks, None when none does.
    """
    content = {"error": summary, "detail": detail, "code": code}
    if required_scope is not None:
        content["required_scope"] = required_scope
    return Reply(status, _JSON + _FIELDS_OF.get(status, ()), json.dumps(content).encode())


NOT_FOUND = problem(404, "not found", sentences.NO_SUCH_SERVER, Reason.NOT_VISIBLE)
"""The same for an address that can be no server's, for none registered, and for an invisible one."""

MISDIRECTED = problem(421, "misdirected request", "This host name is not served here.", "host_refused")

ORIGIN_REFUSED = problem(403, "origin refused", "Pages of this origin may not call this service.", "origin_refused")

METHOD_NOT_ALLOWED = problem(405, "method not allowed", "Only GET, POST and DELETE are served.", "method_not_allowed")

TOO_MANY_STREAMS = problem(
    429, "too many streams", "This caller holds as many streams open as it may; it must end one.", "too_many_streams"
)

_ENTRY: Mapping[Reason, Reply] = {
    Reason.KEY_INVALID: problem(
        401, "invalid API key", "The API key is missing, unknown, disabled or expired.", Reason.KEY_INVALID
    ),
    Reason.SCOPE_MCP: problem(
        403, "API key lacks the 'mcp' scope", "Ask for a key with this scope.", Reason.SCOPE_MCP, "mcp"
    ),
    Reason.NOT_VISIBLE: NOT_FOUND,
}

_ABOUT_SERVER = frozenset((*_ENTRY, Reason.POLICY_UNREADABLE))

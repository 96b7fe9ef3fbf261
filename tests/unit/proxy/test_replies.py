"""What we answer ourselves, byte for byte where the design fixes it (DESIGN 3; PROTOCOL 5; JSON-RPC 2.0 section 5)."""

import json
from typing import Any

import pytest

from proxy import errors, replies, sentences
from proxy.jsonrpc import Body, Message, Notification, Request, Response
from proxy.ports import RefusalStyle, Reply
from registry import access
from registry.access import Permit, Reason, Refusal
from tests.build import facts

JSON_TYPE = ("Content-Type", "application/json")
OFF = Refusal(Reason.TOOL_DISABLED, "danger")
CALL = Request("7", "tools/call", {"name": "danger"})


def _permit(tool: str | None = None) -> Permit:
    verdict = access.use_server(facts()) if tool is None else access.use_tool(facts(), tool)
    assert isinstance(verdict, Permit)
    return verdict


def _single(message: Message) -> Body:
    return Body((message,), is_batch=False)


def _content(reply: Reply) -> Any:
    return json.loads(reply.body)


def test_a_refused_call_is_answered_as_by_a_server_without_that_tool() -> None:
    body = b'{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Unknown tool: danger"}}'

    assert replies.refused(_single(CALL), [OFF]) == Reply(200, (JSON_TYPE,), body, (OFF,))


@pytest.mark.parametrize(
    "reason",
    [
        Reason.TOOL_DISABLED,
        Reason.TOOL_SWITCHED_OFF,
        Reason.NOT_IN_KEY_TOOLS,
        Reason.SCOPE_WRITE,
        Reason.ARGUMENT_REFUSED,
    ],
)
def test_the_reason_is_for_the_log_alone(reason: Reason) -> None:
    reply = replies.refused(_single(CALL), [Refusal(reason, "danger")])

    assert reply.body == replies.refused(_single(CALL), [OFF]).body
    assert reply.refusals == (Refusal(reason, "danger"),)


@pytest.mark.parametrize("id_text", ["7", '"7"', "1" * 40, '"ñ"', r'"\u0061\ud800"'])
def test_the_id_is_repeated_as_it_was_spelled(id_text: str) -> None:
    body = replies.refused(_single(Request(id_text, "tools/call", {"name": "danger"})), [OFF]).body

    assert body.startswith(f'{{"jsonrpc":"2.0","id":{id_text},"error":'.encode())


@pytest.mark.parametrize("style", RefusalStyle)
@pytest.mark.parametrize("tool", ["dañger", 'a"b\\c', "a\nb", "\ud800", "\U0001f600", "", "{tool}", "%s"])
def test_a_name_of_any_code_points_leaves_as_ascii(tool: str, style: RefusalStyle) -> None:
    refusal = Refusal(Reason.TOOL_DISABLED, tool)
    reply = replies.refused(_single(CALL), [refusal], style)

    assert reply.body.isascii()
    content = _content(reply)
    said = content["error"]["message"] if "error" in content else content["result"]["content"][0]["text"]
    assert said == sentences.of_refusal(refusal, style)
    assert tool in said


def test_a_refused_notification_is_dropped_with_202() -> None:
    message = Notification("tools/call", {"name": "danger"})

    assert replies.refused(_single(message), [OFF]) == Reply(202, (), b"", (OFF,))


def test_a_batch_is_refused_whole_with_one_error_for_each_id() -> None:
    batch = Body((Request('"a"', "ping", {}), Notification("n", {}), Response("9"), CALL), is_batch=True)

    reply = replies.refused(batch, [_permit(), _permit(), _permit(), OFF])

    body = (
        b'[{"jsonrpc":"2.0","id":"a","error":{"code":-32600,"message":"batch refused"}},'
        b'{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Unknown tool: danger"}}]'
    )
    assert reply == Reply(200, (JSON_TYPE,), body, (OFF,))


def test_an_explained_refusal_is_a_result_with_one_sentence() -> None:
    reply = replies.refused(_single(CALL), [OFF], RefusalStyle.EXPLAIN)

    text = {"type": "text", "text": "Tool danger is disabled on this server by its owner."}
    result = {"resultType": "complete", "content": [text], "isError": True}
    assert (reply.status, _content(reply)) == (200, {"jsonrpc": "2.0", "id": 7, "result": result})


def test_a_legacy_refusal_has_the_code_of_older_gateways() -> None:
    reply = replies.refused(_single(CALL), [OFF], RefusalStyle.LEGACY)

    error = {"code": -32003, "message": "tool 'danger' is switched off"}
    assert (reply.status, _content(reply)) == (200, {"jsonrpc": "2.0", "id": 7, "error": error})


@pytest.mark.parametrize("style", RefusalStyle)
def test_a_notification_is_dropped_and_an_id_repeated_as_spelled_in_every_style(style: RefusalStyle) -> None:
    notification = Notification("tools/call", {"name": "danger"})
    request = Request(r'"\u0061\ud800"', "tools/call", {"name": "danger"})

    assert replies.refused(_single(notification), [OFF], style) == Reply(202, (), b"", (OFF,))
    assert replies.refused(_single(request), [OFF], style).body.startswith(rb'{"jsonrpc":"2.0","id":"\u0061\ud800",')


@pytest.mark.parametrize("style", RefusalStyle)
def test_every_reason_to_refuse_a_tool_has_an_answer_in_every_style(style: RefusalStyle) -> None:
    about_server = {Reason.KEY_INVALID, Reason.SCOPE_MCP, Reason.NOT_VISIBLE, Reason.POLICY_UNREADABLE}
    for reason in set(Reason) - about_server:
        batch = Body((Request('"a"', "ping", {}), CALL), is_batch=True)
        content = _content(replies.refused(batch, [_permit(), Refusal(reason, "\ud800")], style))
        assert [answer["id"] for answer in content] == ["a", 7]
        assert content[0]["error"]["code"] == -32600


def test_a_refused_batch_of_one_is_answered_as_a_batch() -> None:
    assert _content(replies.refused(Body((CALL,), is_batch=True), [OFF]))[0]["id"] == 7


def test_two_calls_with_one_id_get_two_errors() -> None:
    batch = Body((Request("7", "tools/call", {"name": "safe"}), CALL), is_batch=True)

    content = _content(replies.refused(batch, [_permit("safe"), OFF]))

    assert [(e["id"], e["error"]["code"]) for e in content] == [(7, -32600), (7, -32602)]


def test_a_refused_batch_without_any_id_is_dropped_with_202() -> None:
    batch = Body((Notification("tools/call", {"name": "danger"}), Response("7")), is_batch=True)

    assert replies.refused(batch, [OFF, _permit()]) == Reply(202, (), b"", (OFF,))


def test_each_message_needs_its_verdict() -> None:
    with pytest.raises(ValueError, match="shorter"):
        replies.refused(Body((CALL, CALL), is_batch=True), [OFF])


def test_an_invalid_key_is_401_with_a_challenge() -> None:
    reply = replies.turned_away(Refusal(Reason.KEY_INVALID))

    assert reply.status == 401
    assert reply.fields == (JSON_TYPE, ("WWW-Authenticate", 'Bearer realm="sluicegate"'))
    assert (_content(reply)["error"], _content(reply)["code"]) == ("invalid API key", "key_invalid")
    assert reply.refusals == (Refusal(Reason.KEY_INVALID),)


def test_a_key_without_the_scope_is_403_and_names_it() -> None:
    reply = replies.turned_away(Refusal(Reason.SCOPE_MCP))

    content = _content(reply)
    assert (reply.status, reply.fields) == (403, (JSON_TYPE,))
    assert set(content) == {"error", "detail", "code", "required_scope"}
    assert (content["error"], content["required_scope"]) == ("API key lacks the 'mcp' scope", "mcp")
    assert content["code"] == "scope_mcp"


def test_an_invisible_server_looks_like_one_that_is_not_there() -> None:
    reply = replies.turned_away(Refusal(Reason.NOT_VISIBLE))

    assert (reply.status, reply.fields, reply.body) == (404, (JSON_TYPE,), replies.NOT_FOUND.body)
    assert replies.NOT_FOUND.refusals == ()
    assert set(_content(reply)) == {"error", "detail", "code"}


@pytest.mark.parametrize("id_text", [None, "7", '"a"'])
def test_an_unreadable_policy_is_503_and_says_so(id_text: str | None) -> None:
    refusal = Refusal(Reason.POLICY_UNREADABLE)

    reply = replies.turned_away(refusal, id_text)

    assert (reply.status, reply.fields, reply.refusals) == (503, (JSON_TYPE,), (refusal,))
    assert _content(reply)["id"] == json.loads(id_text or "null")
    assert _content(reply)["error"]["code"] == -32603
    assert "policy" in _content(reply)["error"]["message"]


@pytest.mark.parametrize(
    ("body", "id_value"),
    [
        (_single(CALL), 7),
        (Body((CALL,), is_batch=True), None),
        (_single(Notification("n", {})), None),
        (_single(Response("9")), None),
    ],
    ids=["request", "batch", "notification", "response"],
)
def test_a_refused_server_answers_once_with_the_id_of_a_single_request(body: Body, id_value: int | None) -> None:
    reply = replies.refused(body, [Refusal(Reason.POLICY_UNREADABLE, "danger")])

    assert (reply.status, _content(reply)["id"]) == (503, id_value)


@pytest.mark.parametrize(
    ("reply", "status", "code"),
    [
        (replies.NOT_FOUND, 404, "not_visible"),
        (replies.MISDIRECTED, 421, "host_refused"),
        (replies.ORIGIN_REFUSED, 403, "origin_refused"),
        (replies.METHOD_NOT_ALLOWED, 405, "method_not_allowed"),
        (replies.TOO_MANY_STREAMS, 429, "too_many_streams"),
    ],
)
def test_a_request_that_is_turned_away_unread_gets_plain_json(reply: Reply, status: int, code: str) -> None:
    assert (reply.status, reply.fields[0]) == (status, JSON_TYPE)
    assert set(_content(reply)) == {"error", "detail", "code"}
    assert _content(reply)["code"] == code


def test_429_says_when_to_come_again() -> None:
    """RFC 6585 4: a 429 may have a Retry-After field; without it clients try again at once."""
    assert replies.TOO_MANY_STREAMS.fields[1:] == (("Retry-After", "10"),)


def test_405_lists_the_methods() -> None:
    """RFC 9110 15.5.6: a 405 has an Allow field."""
    assert replies.METHOD_NOT_ALLOWED.fields[1:] == (("Allow", "GET, POST, DELETE"),)


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        (errors.ParseError("m"), 400, -32700),
        (errors.InvalidRequest("m"), 400, -32600),
        (errors.HeaderMismatch("m"), 400, -32020),
        (errors.BadFields("m"), 400, -32600),
        (errors.UnsupportedMedia("m"), 415, -32600),
        (errors.BodyTooLarge("m"), 413, -32600),
        (errors.BodyTimeout("m"), 408, -32600),
        (errors.PolicyUnknown("m"), 503, -32603),
        (errors.DownstreamUnreachable("m"), 502, -32603),
        (errors.DownstreamUnusable("m"), 502, -32603),
        (errors.DownstreamTimeout("m"), 504, -32603),
    ],
)
def test_a_failure_is_a_json_rpc_error_of_its_class(fault: errors.ProxyError, status: int, code: int) -> None:
    body = f'{{"jsonrpc":"2.0","id":null,"error":{{"code":{code},"message":"m"}}}}'

    assert replies.for_error(fault) == Reply(status, (JSON_TYPE,), body.encode())


def test_a_failure_carries_the_id_when_it_is_known() -> None:
    assert _content(replies.for_error(errors.DownstreamTimeout("m", id='"a"')))["id"] == "a"


def test_a_result_of_ours_repeats_the_id_as_spelled() -> None:
    assert replies.result('"\\u0061"', {"a": "\u00e9"}) == b'{"jsonrpc":"2.0","id":"\\u0061","result":{"a":"\\u00e9"}}'


def test_what_json_has_no_form_for_is_an_error() -> None:
    for value in (float("inf"), float("nan")):
        with pytest.raises(ValueError, match="JSON"):
            replies.json_text([value])


def test_an_error_may_carry_data() -> None:
    answer = json.loads(replies.error("1", -32022, "no", {"supported": ["a"]}))
    assert answer["error"] == {"code": -32022, "message": "no", "data": {"supported": ["a"]}}
    fault = errors.UnsupportedVersion("no", id="1", data={"supported": ["a"]})
    assert json.loads(replies.for_error(fault).body) == answer

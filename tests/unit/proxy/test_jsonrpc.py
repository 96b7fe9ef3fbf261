"""A body is one unambiguous message or a batch of them, or refused (JSON-RPC 2.0; PROTOCOL 10.4 rules 3 to 7)."""

import json
from typing import Any

import pytest

from proxy.errors import InvalidRequest, ParseError
from proxy.jsonrpc import VERSION_KEY, Body, Message, Notification, Request, Response, parse
from proxy.jsontext import Number


def _text(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def _call(params: str, head: str = '"jsonrpc":"2.0","id":7,"method":"tools/call"') -> bytes:
    return f'{{{head},"params":{params}}}'.encode()


def _one(body: bytes) -> Message:
    parsed = parse(body)
    assert not parsed.is_batch
    (message,) = parsed.messages
    return message


def _refused(body: bytes) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        parse(body)
    return caught.value


def test_a_tool_call_is_a_request_with_its_name_and_arguments() -> None:
    body = _call('{"name":"a","arguments":{"n":1E2,"n2":[7]},"_meta":{"x":null}}')

    params = {"name": "a", "arguments": {"n": Number("1E2"), "n2": [Number("7")]}, "_meta": {"x": None}}
    assert _one(body) == Request("7", "tools/call", params)


def test_escapes_and_order_make_no_difference() -> None:
    body = rb'{"p\u0061rams":{"n\u0061me":"d\u0061nger"},"method":"tools\/call","id":"a","jsonrpc":"2.0"}'

    assert _one(body) == Request('"a"', "tools/call", {"name": "danger"})


@pytest.mark.parametrize("params", [{}, {"params": {}}])
def test_absent_params_are_empty_params(params: dict[str, Any]) -> None:
    assert _one(_text(id=1, method="ping", **params)) == Request("1", "ping", {})


def test_a_call_without_an_id_is_a_notification() -> None:
    body = _text(method="notifications/cancelled", params={"requestId": "x"})

    assert _one(body) == Notification("notifications/cancelled", {"requestId": "x"})


@pytest.mark.parametrize("id_text", ["7", "-1", "0", "1" * 40, '""', '"a"', '"ñ"', '" 7 "'])
def test_an_id_keeps_its_spelling(id_text: str) -> None:
    assert _one(f'{{"jsonrpc":"2.0","id": {id_text} ,"method":"ping"}}'.encode()) == Request(id_text, "ping", {})


@pytest.mark.parametrize("level", ['"params":{%s}', '"params":{"_meta":{%s}}', "%s"])
def test_thousands_of_members_at_the_levels_that_decide_are_refused(level: str) -> None:
    def body(many: int) -> bytes:
        members = ",".join(f'"m{number}":1' for number in range(many))
        return f'{{"jsonrpc":"2.0","id":7,"method":"ping",{level % members}}}'.encode()

    assert isinstance(_one(body(19_900)), Request)
    with pytest.raises(ParseError, match="too many members"):
        parse(body(20_000))


def test_an_id_in_a_body_with_escapes_keeps_its_meaning() -> None:
    body = rb'{"jsonrpc":"2.0","id":"\u0061\"\ud800","method":"ping"}'
    assert _one(body) == Request(r'"a\"\ud800"', "ping", {})


@pytest.mark.parametrize("id_text", ["null", "true", "7.0", "7e0", "7E0", "1e400", "{}", "[7]", '["7"]'])
def test_a_request_with_an_id_that_servers_read_differently_is_refused(id_text: str) -> None:
    assert _refused(f'{{"jsonrpc":"2.0","id":{id_text},"method":"ping"}}'.encode()).id is None


@pytest.mark.parametrize(
    ("body", "response"),
    [
        (_text(id=7, result={}), Response("7")),
        (_text(id="a", result=None), Response('"a"')),
        (_text(id=7, error={"code": 1, "message": "m"}), Response("7")),
        (_text(id=None, error={}), Response(None)),
    ],
)
def test_an_answer_of_the_client_is_a_response(body: bytes, response: Response) -> None:
    assert _one(body) == response


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"id": 7},
        {"id": 7, "params": {"name": "a"}},
        {"id": 7, "result": {}, "error": {}},
        {"result": {}},
        {"error": {}},
        {"id": None, "result": {}},
        {"id": 7.5, "result": {}},
        {"id": {}, "error": {}},
        {"id": True, "error": {}},
    ],
)
def test_what_is_neither_a_request_nor_a_response_is_refused(members: dict[str, Any]) -> None:
    _refused(_text(**members))


@pytest.mark.parametrize("extra", ["result", "error"])
@pytest.mark.parametrize("value", [{}, None])
def test_a_request_that_looks_like_a_response_is_refused(extra: str, value: Any) -> None:
    """PROTOCOL 7.3: some servers run it, so nobody may pass it as an answer."""
    assert _refused(_text(id=7, method="tools/call", params={"name": "a"}, **{extra: value})).id == "7"


@pytest.mark.parametrize("body", [b"7", b'"x"', b"null", b"true", b"[7]", b"[null]", b"[[]]", b'["{}"]'])
def test_what_is_not_an_object_is_no_message(body: bytes) -> None:
    assert _refused(body).id is None


@pytest.mark.parametrize("body", [b"", b"{", b'{"a":NaN}', b"[" * 200 + b"]" * 200, b"\xff", b"\xef\xbb\xbf{}"])
def test_what_is_not_json_is_a_parse_error(body: bytes) -> None:
    with pytest.raises(ParseError) as caught:
        parse(body)

    assert caught.value.id is None


@pytest.mark.parametrize(
    "head",
    ['"id":7,"method":"ping"', '"jsonrpc":2.0,"id":7,"method":"ping"', '"jsonrpc":"2","id":7,"method":"ping"'],
)
def test_another_version_of_json_rpc_is_refused(head: str) -> None:
    assert _refused(_call("{}", head)).id == "7"


@pytest.mark.parametrize("method", [None, 7, ["tools/call"], {"m": 1}, True])
def test_a_method_that_is_no_string_is_refused(method: Any) -> None:
    assert _refused(_text(id=7, method=method)).id == "7"


@pytest.mark.parametrize("params", ['["danger",{}]', '"x"', "7", "null", "[]"])
@pytest.mark.parametrize("method", ["tools/call", "ping"])
def test_params_other_than_an_object_are_refused(method: str, params: str) -> None:
    assert _refused(_call(params, f'"jsonrpc":"2.0","id":7,"method":"{method}"')).id == "7"


@pytest.mark.parametrize(
    "params", ["{}", '{"name":7}', '{"name":null}', '{"name":["a"]}', '{"name":{"name":"a"}}', '{"toolName":"a"}']
)
@pytest.mark.parametrize("id_member", ['"id":7,', ""])
def test_a_tool_call_without_the_name_of_a_tool_is_refused(id_member: str, params: str) -> None:
    _refused(_call(params, f'"jsonrpc":"2.0",{id_member}"method":"tools/call"'))


def test_a_tool_call_without_params_is_refused() -> None:
    assert _refused(_text(id=7, method="tools/call")).id == "7"


@pytest.mark.parametrize("method", ["Tools/Call", "tools/call ", "tools//call", "tools/call\0"])
def test_a_method_that_only_resembles_tools_call_is_another_method(method: str) -> None:
    assert _one(_text(id=7, method=method)) == Request("7", method, {})


AMBIGUOUS_MESSAGES = [
    '"method":"tools/list","method":"tools/call"',
    '"method":"tools/call","Method":"tools/call"',
    '"Method":"tools/call"',
    '"METHOD":"tools/call"',
    '"m\\u0045thod":"tools/call"',
    '"method":"ping","Result":{}',
    '"method":"ping","JSONRPC":"2.0"',
    '"method":"ping","Params":{}',
    '"method":"ping","param\\u017f":{}',
    '"method":"ping","zz":1,"ZZ":2',
    '"method":"ping","id":8',
    '"method":"ping","ID":8',
]


@pytest.mark.parametrize("members", AMBIGUOUS_MESSAGES)
def test_a_message_whose_members_readers_take_differently_is_refused_without_an_id(members: str) -> None:
    assert _refused(f'{{"jsonrpc":"2.0","id":7,{members}}}'.encode()).id is None


AMBIGUOUS_PARAMS = [
    '{"name":"safe","name":"danger"}',
    '{"name":"safe","Name":"danger"}',
    '{"name":"safe","n\\u0061me":"danger"}',
    '{"name":"a","URI":"b"}',
    '{"name":"a","arguments":{},"Arguments":{}}',
    '{"name":"a","_META":{}}',
    '{"name":"a","_meta":{},"_meta":{}}',
    '{"name":"a","_meta":{"x":1,"X":2}}',
    f'{{"name":"a","_meta":{{"{VERSION_KEY}":"1","{VERSION_KEY}":"2"}}}}',
    f'{{"name":"a","_meta":{{"{VERSION_KEY.lower()}":"1"}}}}',
    '{"taskid":"1","name":"a"}',
]


@pytest.mark.parametrize("params", AMBIGUOUS_PARAMS)
def test_params_whose_members_readers_take_differently_are_refused(params: str) -> None:
    assert _refused(_call(params)).id == "7"


@pytest.mark.parametrize(
    "params",
    [
        '{"name":"a","arguments":{"n":1,"n":2,"N":3}}',
        '{"name":"a","Other":1}',
        '{"name":"a","name\\u0000":"b","\\ufeffname":"c"}',
        '{"name":"a","_meta":[{"x":1}]}',
        '{"name":"a","_meta":{"deep":{"x":1,"X":2}}}',
    ],
)
def test_what_lies_below_the_deciding_levels_is_the_downstreams_business(params: str) -> None:
    assert _one(_call(params)) == Request("7", "tools/call", json.loads(params, parse_int=Number))


@pytest.mark.parametrize(
    "body",
    [
        _call(r'{"name":"danger\udc00"}'),
        _call(r'{"name":"\ud800"}'),
        _call(r'{"uri":"\udfff"}', '"jsonrpc":"2.0","id":7,"method":"resources/read"'),
        _call(r'{"taskId":"\udbff"}', '"jsonrpc":"2.0","id":7,"method":"tasks/get"'),
        _call(rf'{{"_meta":{{"{VERSION_KEY}":"\ud800"}}}}', '"jsonrpc":"2.0","id":7,"method":"ping"'),
        _call("{}", r'"jsonrpc":"2.0","id":7,"method":"\ud800"'),
    ],
)
def test_a_lone_surrogate_in_a_string_that_decides_is_refused(body: bytes) -> None:
    assert _refused(body).id == "7"


@pytest.mark.parametrize("params", [r'{"name":"\ud83d\ude00"}', r'{"name":"a","arguments":{"x":"\ud800"}}'])
def test_a_pair_of_surrogates_and_one_in_the_arguments_pass(params: str) -> None:
    assert _one(_call(params)) == Request("7", "tools/call", json.loads(params))


def test_a_batch_keeps_the_order_of_its_messages() -> None:
    body = b"[" + b" , ".join([_text(id=1, method="ping"), _text(method="n"), _text(id=2, result={})]) + b"]"

    assert parse(body) == Body((Request("1", "ping", {}), Notification("n", {}), Response("2")), is_batch=True)


def test_a_batch_of_one_is_a_batch() -> None:
    assert parse(b"[" + _text(id=1, method="ping") + b"]") == Body((Request("1", "ping", {}),), is_batch=True)


@pytest.mark.parametrize(
    "body",
    [b"[]", b"[" + _text(id=1, method="ping") + b",7]", b"[[" + _text(id=1, method="ping") + b"]]"],
    ids=["empty", "a scalar in it", "nested"],
)
def test_a_batch_of_anything_but_messages_is_refused_whole(body: bytes) -> None:
    assert _refused(body).id is None


def test_an_ambiguous_element_has_its_batch_refused_without_an_id() -> None:
    body = b"[" + _text(id=1, method="ping") + b"," + _call('{"name":"a","name":"b"}') + b"]"

    assert _refused(body).id is None


def test_the_reason_never_quotes_the_body() -> None:
    assert "s3cret" not in str(_refused(_call('{"name":"a","s3cret":1,"S3cret":2}')))

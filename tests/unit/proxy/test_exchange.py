"""One exchange, driven without a socket."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from proxy.errors import DownstreamTimeout, DownstreamUnusable, PolicyUnknown
from proxy.exchange import Exchange, Mode, RequestHead, known_id
from proxy.held import Held
from proxy.ports import DataPlaneSettings, Fields, Forward, Reply
from registry.access import Reason, Refusal
from registry.model import Facts, Scope
from tests.build import KEY, facts, key, policy

JSON: Fields = (("Content-Type", "application/json"),)
STREAM: Fields = (("Content-Type", "text/event-stream"),)
LIST = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
CALL = b'{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"t"}}'
TOOLS = b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"t"},{"name":"u"}],"ttlMs":9,"cacheScope":"public"}}'
EVENT = b"id: 1\ndata: " + TOOLS + b"\n\n"

WITHOUT_T = facts(server=policy(disabled_tools=frozenset({"t"})))
LOST = facts(server=policy(enabled=False))


def exchange(known: Facts | None = None, method: str = "POST", **changes: Any) -> Exchange:
    head = {"query": "", "fields": JSON, "key": KEY, **changes}
    return Exchange(known or facts(), RequestHead(method, **head), DataPlaneSettings(max_event_bytes=1024))


def refused_with(outcome: Forward | Reply) -> tuple[int, int]:
    """HTTP status and JSON-RPC code of a reply."""
    assert isinstance(outcome, Reply)
    return outcome.status, json.loads(outcome.body)["error"]["code"]


def forwarded(body: bytes = LIST, known: Facts | None = None) -> Exchange:
    """An exchange whose request went downstream."""
    made = exchange(known)
    assert isinstance(made.receive_request(body), Forward)
    return made


def answered(fields: Fields, *chunks: bytes, body: bytes = LIST, fresh: Facts | None = None) -> bytes:
    """What leaves of an answer to a permitted request, once every held list is released."""
    made = forwarded(body)
    made.receive_response_head(200, fields)
    outputs = [output for chunk in chunks for output in made.receive_response_data(chunk)]
    return released([*outputs, *made.receive_response_eof()], fresh or facts())


def released(outputs: Iterable[bytes | Held], fresh: Facts) -> bytes:
    pieces = [output.release(fresh) if isinstance(output, Held) else output for output in outputs]
    assert all(isinstance(piece, bytes) for piece in pieces)
    return b"".join(piece for piece in pieces if isinstance(piece, bytes))


# The request


def test_a_permitted_request_goes_on_with_the_very_bytes_that_came() -> None:
    outcome = exchange(query="a=%31").receive_request(CALL)

    assert isinstance(outcome, Forward)
    assert outcome.body is CALL
    assert (outcome.method, outcome.query, outcome.server) == ("POST", "a=%31", policy())
    assert [permit.tool for permit in outcome.permits] == ["t"]
    assert outcome.fields == (*JSON, ("Accept-Encoding", "identity"), ("Via", "1.1 sluicegate"))


def test_each_message_of_a_batch_has_its_permit() -> None:
    outcome = exchange().receive_request(b"[" + LIST + b"," + CALL + b"]")

    assert isinstance(outcome, Forward)
    assert [permit.tool for permit in outcome.permits] == [None, "t"]


def test_one_refused_message_refuses_all() -> None:
    outcome = exchange(WITHOUT_T).receive_request(b"[" + LIST + b"," + CALL + b"]")

    assert isinstance(outcome, Reply)
    assert [error["error"]["code"] for error in json.loads(outcome.body)] == [-32600, -32602]
    assert outcome.refusals == (Refusal(Reason.TOOL_DISABLED, "t"),)


@pytest.mark.parametrize(
    ("known", "status"),
    [
        (facts(key=None), 401),
        (facts(key=None, server=None), 401),
        (facts(key=key(scopes=frozenset({Scope.READ}))), 403),
        (facts(key=key(scopes=frozenset({Scope.READ})), server=None), 403),
        (facts(server=None), 404),
        (LOST, 404),
        (facts(server=policy(fault="unreadable")), 503),
    ],
)
def test_who_may_not_enter_is_turned_away_before_anything_is_read(known: Facts, status: int) -> None:
    outcome = exchange(known, fields=(*JSON, *JSON)).receive_request(b"not json")

    assert isinstance(outcome, Reply)
    assert outcome.status == status


def test_the_field_lines_are_judged_before_the_address_and_the_address_before_the_body() -> None:
    """DESIGN 1: one order of the checks, so that one request has one answer."""
    coded = exchange(fields=(("Content-Encoding", "gzip"),), query=f"key={KEY}").receive_request(b"not json")
    addressed = exchange(query=f"key={KEY}").receive_request(b"not json")

    assert (refused_with(coded), refused_with(addressed)) == ((415, -32600), (400, -32600))


def test_a_refused_notification_is_dropped() -> None:
    outcome = exchange(WITHOUT_T).receive_request(CALL.replace(b'"id":"x",', b""))

    assert outcome == Reply(202, (), refusals=(Refusal(Reason.TOOL_DISABLED, "t"),))


def test_a_server_whose_policy_cannot_be_read_says_so_by_the_callers_id() -> None:
    outcome = exchange(facts(server=policy(fault="unreadable"))).receive_request(CALL)

    assert isinstance(outcome, Reply)
    assert json.loads(outcome.body)["id"] == "x"


@pytest.mark.parametrize(
    ("changes", "body", "expected"),
    [
        ({"fields": (*JSON, *JSON)}, CALL, (400, -32600)),
        ({"fields": (("Content-Encoding", "gzip"),)}, CALL, (415, -32600)),
        ({"query": f"key={KEY}"}, CALL, (400, -32600)),
        ({}, b"not json", (400, -32700)),
        ({}, b"", (400, -32700)),
        ({}, b"[]", (400, -32600)),
        ({"fields": (("Mcp-Name", "u"),)}, CALL, (400, -32020)),
        ({"method": "GET"}, CALL, (400, -32600)),
        ({"method": "GET", "query": f"a=1&key={KEY}"}, b"", (400, -32600)),
        ({"method": "DELETE"}, b" ", (400, -32600)),
    ],
)
def test_what_cannot_be_read_without_doubt_is_refused(
    changes: dict[str, Any], body: bytes, expected: tuple[int, int]
) -> None:
    assert refused_with(exchange(**changes).receive_request(body)) == expected


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_request_without_a_body_needs_the_server_alone(method: str) -> None:
    outcome = exchange(WITHOUT_T, method).receive_request(b"")

    assert isinstance(outcome, Forward)
    assert (outcome.body, [permit.tool for permit in outcome.permits]) == (None, [None])


# The answer's head


@pytest.mark.parametrize("status", [101, 206, 300, 301, 302, 303, 307, 308])
def test_an_interim_answer_or_a_redirect_is_not_passed_on(status: int) -> None:
    with pytest.raises(DownstreamUnusable):
        forwarded().receive_response_head(status, JSON)


@pytest.mark.parametrize("status", [200, 202, 204, 304, 400, 404, 500])
def test_any_other_status_is(status: int) -> None:
    assert forwarded().receive_response_head(status, JSON).status == status


def test_an_answer_in_the_one_coding_that_was_asked_for_is_passed_on() -> None:
    head = forwarded().receive_response_head(200, (*JSON, ("Content-Encoding", "identity")))

    assert head.mode is Mode.WHOLE


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (LIST, (*JSON, ("Content-Encoding", "gzip"))),
        (CALL, (*JSON, ("Content-Encoding", "br"))),
        (CALL, (*JSON, ("Mcp-Session-Id", "\udcff"))),
        (CALL, (*JSON, ("Mcp-Session-Id", "a\x7f"))),
        (CALL, (*JSON, ("Transfer-Encoding", "gzip, chunked"))),
        (LIST, (("Content-Type", "application/json; charset=utf-16"),)),
        (CALL, (("Content-Type", "text/event-stream; charset=utf-7"),)),
    ],
)
def test_an_answer_that_could_be_decoded_in_two_ways_is_not_passed_on(body: bytes, fields: Fields) -> None:
    with pytest.raises(DownstreamUnusable):
        forwarded(body).receive_response_head(200, fields)


@pytest.mark.parametrize(
    ("body", "fields", "mode"),
    [
        (CALL, JSON, Mode.STREAM),
        (CALL, (("Content-Type", "application/json; charset=utf-16"),), Mode.STREAM),
        (CALL, STREAM, Mode.EVENTS),
        (LIST, STREAM, Mode.EVENTS),
        (LIST, JSON, Mode.WHOLE),
        (LIST.replace(b'"id":1,', b""), JSON, Mode.WHOLE),
        (LIST, (), Mode.WHOLE),
        (LIST, (("Content-Type", "text/html"),), Mode.WHOLE),
        (b"[" + CALL + b"," + LIST + b"]", JSON, Mode.WHOLE),
    ],
)
def test_a_body_is_looked_at_where_a_list_may_come(body: bytes, fields: Fields, mode: Mode) -> None:
    head = forwarded(body).receive_response_head(200, (*fields, ("ETag", '"x"')))

    assert head.mode is mode
    assert (("ETag", '"x"') in head.fields) == (mode is Mode.STREAM)


def test_a_get_may_bring_a_list_that_another_process_asked_for() -> None:
    made = exchange(method="GET")
    made.receive_request(b"")

    assert made.receive_response_head(200, JSON).mode is Mode.WHOLE


# The answer's body


def test_a_stream_that_can_hold_no_list_passes_as_it_comes() -> None:
    assert answered(JSON, b"\xff\x00", TOOLS, body=CALL) == b"\xff\x00" + TOOLS


@pytest.mark.parametrize("fields", [JSON, STREAM])
def test_a_list_waits_for_younger_facts(fields: Fields) -> None:
    data = TOOLS if fields is JSON else EVENT
    left = answered(fields, data[:20], data[20:], fresh=WITHOUT_T)

    assert left == data.replace(b'{"name":"t"},', b"").replace(b"9", b"0").replace(b"public", b"private")


def test_a_tool_that_was_switched_on_while_its_list_was_on_the_way_is_shown() -> None:
    made = exchange(WITHOUT_T)
    made.receive_request(LIST)
    made.receive_response_head(200, JSON)
    outputs = [*made.receive_response_data(TOOLS), *made.receive_response_eof()]

    assert b'{"name":"t"}' in released(outputs, facts())


def test_what_follows_a_list_comes_after_it() -> None:
    made = forwarded()
    made.receive_response_head(200, STREAM)
    outputs = list(made.receive_response_data(b"data: 1\n\n" + EVENT + b"data: 2\n\n" + EVENT + b": ping\n"))

    assert [output if isinstance(output, bytes) else Held for output in outputs] == [
        b"data: 1\n\n",
        Held,
        b"data: 2\n\n",
        Held,
        b": ping\n",
    ]


def test_what_came_before_an_unreadable_list_leaves() -> None:
    made = forwarded()
    made.receive_response_head(200, STREAM)
    outputs = made.receive_response_data(b'data: 1\n\ndata: {"tools"\n\n')

    assert next(outputs) == b"data: 1\n\n"
    with pytest.raises(DownstreamUnusable):
        next(outputs)


def test_a_begun_comment_leaves_when_the_stream_ends() -> None:
    assert answered(STREAM, b"data: 1\n\n: by") == b"data: 1\n\n: by"


def test_a_list_shows_what_the_key_may_use() -> None:
    """DESIGN 3: a list shows exactly what rows 4 to 7 permit this caller."""
    readers = facts(server=policy(read_only_tools=frozenset({"u"})), key=key(scopes=frozenset({Scope.MCP, Scope.READ})))

    assert json.loads(answered(JSON, TOOLS, fresh=readers))["result"]["tools"] == [{"name": "u"}]


def test_a_list_that_shows_nothing_too_much_leaves_as_it_came() -> None:
    data = TOOLS.replace(b"9", b"0").replace(b"public", b"private")

    assert answered(JSON, data) == data


def test_events_without_a_list_leave_at_once_and_an_unfinished_one_never() -> None:
    made = forwarded()
    made.receive_response_head(200, STREAM)

    assert list(made.receive_response_data(b": ping\n\ndata: {}\n\ndata: half")) == [
        b": ping\n",
        b"\n",
        b"data: {}\n\n",
    ]
    assert list(made.receive_response_eof()) == []


def test_a_body_without_a_list_leaves_whole() -> None:
    assert answered((("Content-Type", "text/html"),), b"<p>", b"</p>") == b"<p></p>"
    assert answered(JSON) == b""


@pytest.mark.parametrize("data", [b'data: {"result":{"tools":\n\n', b'data: {"tools"\n\n', b"data: \\u0074\n\n"])
def test_an_event_that_may_be_a_list_and_cannot_be_read_is_not_passed_on(data: bytes) -> None:
    made = forwarded()
    made.receive_response_head(200, STREAM)

    with pytest.raises(DownstreamUnusable):
        list(made.receive_response_data(data))


def test_a_body_that_may_be_a_list_and_cannot_be_read_is_not_passed_on() -> None:
    with pytest.raises(DownstreamUnusable):
        answered((("Content-Type", "text/plain"),), TOOLS[:-1])


@pytest.mark.parametrize("fields", [JSON, STREAM])
def test_more_than_can_be_held_is_not_passed_on(fields: Fields) -> None:
    made = forwarded()
    made.receive_response_head(200, fields)

    with pytest.raises(DownstreamUnusable):
        list(made.receive_response_data(b"data: " + b"x" * 2000))


def test_an_answer_of_exactly_the_limit_is_held() -> None:
    assert answered(JSON, b"x" * 1000, b"x" * 24) == b"x" * 1024


@pytest.mark.parametrize(
    ("fresh", "reason"),
    [
        (LOST, Reason.NOT_VISIBLE),
        (facts(entries=()), Reason.NOT_VISIBLE),
        (facts(key=key(enabled=False)), Reason.KEY_INVALID),
        (facts(key=key(scopes=frozenset({Scope.READ}))), Reason.SCOPE_MCP),
        (facts(server=policy(fault="unreadable")), Reason.POLICY_UNREADABLE),
    ],
)
@pytest.mark.parametrize("fields", [JSON, STREAM], ids=["JSON", "SSE"])
def test_a_caller_that_may_not_enter_any_more_gets_a_refusal_in_place_of_a_list(
    fields: Fields, fresh: Facts, reason: Reason
) -> None:
    made = forwarded()
    made.receive_response_head(200, fields)
    data = TOOLS if fields is JSON else EVENT
    [held] = [*made.receive_response_data(data), *made.receive_response_eof()]

    assert isinstance(held, Held)
    assert held.release(fresh) == Refusal(reason)


# What we say when it goes wrong


def test_a_failure_is_told_by_the_callers_id() -> None:
    reply = forwarded(CALL).failed(DownstreamTimeout("too late"))

    assert (reply.status, json.loads(reply.body)["id"]) == (504, "x")
    assert json.loads(forwarded(CALL).failed(PolicyUnknown("gone", id="7")).body)["id"] == 7


@pytest.mark.parametrize("body", [b"[" + LIST + b"]", CALL.replace(b'"id":"x",', b"")], ids=["batch", "notification"])
def test_a_failure_without_one_request_is_told_without_an_id(body: bytes) -> None:
    assert json.loads(forwarded(body).failed(DownstreamTimeout("too late")).body)["id"] is None


def test_a_caller_that_lost_its_access_is_turned_away() -> None:
    assert forwarded(CALL).turned_away(Refusal(Reason.NOT_VISIBLE)).status == 404
    unreadable = forwarded(CALL).turned_away(Refusal(Reason.POLICY_UNREADABLE))
    assert (unreadable.status, json.loads(unreadable.body)["id"]) == (503, "x")


@pytest.mark.parametrize(
    ("body", "id_text"),
    [
        (CALL, '"x"'),
        (LIST, "1"),
        (b'{"jsonrpc":"2.0","id":7,"method":5}', "7"),
        (b"[" + LIST + b"]", None),
        (b'{"jsonrpc":"2.0","method":"m"}', None),
        (b"{", None),
    ],
)
def test_an_id_is_known_when_there_is_no_doubt(body: bytes, id_text: str | None) -> None:
    assert known_id(body) == id_text


def test_nothing_happens_out_of_turn() -> None:
    fresh = exchange()
    with pytest.raises(RuntimeError):
        fresh.receive_response_head(200, JSON)
    with pytest.raises(RuntimeError):
        list(fresh.receive_response_data(b""))
    with pytest.raises(RuntimeError):
        list(fresh.receive_response_eof())
    fresh.receive_request(b"not json")
    with pytest.raises(RuntimeError):
        fresh.receive_request(LIST)
    with pytest.raises(RuntimeError):
        fresh.receive_response_head(200, JSON)


def test_an_answer_has_one_head_and_one_end() -> None:
    made = forwarded()
    with pytest.raises(RuntimeError):
        made.receive_request(LIST)
    made.receive_response_head(200, JSON)
    with pytest.raises(RuntimeError):
        made.receive_response_head(200, JSON)
    assert list(made.receive_response_eof()) == [b""]
    with pytest.raises(RuntimeError):
        list(made.receive_response_data(b""))
    with pytest.raises(RuntimeError):
        list(made.receive_response_eof())


def test_who_was_turned_away_has_no_answer_to_come() -> None:
    made = exchange(facts(key=None))
    made.receive_request(LIST)
    with pytest.raises(RuntimeError):
        made.receive_response_head(200, JSON)


def test_a_forward_is_made_of_permits() -> None:
    with pytest.raises(TypeError):
        Forward((), "POST", "", (), b"")


@pytest.mark.parametrize(
    ("body", "is_subscription"), [(CALL, False), (LIST.replace(b"tools/list", b"subscriptions/listen"), True)]
)
def test_an_answer_whose_end_nobody_waits_for_is_known(body: bytes, is_subscription: bool) -> None:
    assert forwarded(body).is_subscription == is_subscription
    assert exchange(method="GET").is_subscription

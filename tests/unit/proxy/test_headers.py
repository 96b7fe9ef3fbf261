"""Header fields: what is refused, what must agree with the body, what passes (RFC 9110; DESIGN 3; PROTOCOL 2, 9)."""

import base64
from typing import Any

import pytest

from proxy.errors import BadFields, HeaderMismatch, UnsupportedMedia
from proxy.headers import (
    accepts,
    came_through,
    charset_is_utf8,
    check_mcp_fields,
    check_request_fields,
    content_coding,
    forwarded_fields,
    holds_control,
    is_utf8,
    media_type,
    transfer_coding,
    values,
)
from proxy.jsonrpc import VERSION_KEY, Body, Message, Notification, Request, Response
from proxy.jsontext import Number
from proxy.ports import Fields
from tests.build import KEY

IDENTITY = ("Accept-Encoding", "identity")
VIA = "1.1 sluicegate"
OURS = (IDENTITY, ("Via", VIA))
OTHER_KEY = "sg_" + "o" * 43


def _typed(value: str) -> Fields:
    return (("Content-Type", value),)


def _call(name: str = "danger", **meta: Any) -> Request:
    return Request("7", "tools/call", {"name": name, "_meta": meta} if meta else {"name": name})


def _single(message: Message) -> Body:
    return Body((message,), is_batch=False)


def _mismatch(fields: Fields, body: Body) -> HeaderMismatch:
    with pytest.raises(HeaderMismatch) as caught:
        check_mcp_fields(fields, body)
    return caught.value


def _coded(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def test_values_are_found_in_any_case_in_order_and_trimmed() -> None:
    assert values((("X-A", " 1\t"), ("y", "2"), ("x-a", "3")), "x-a") == ("1", "3")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (_typed("application/json"), "application/json"),
        (_typed(" APPLICATION/JSON ;\tcharset=utf-8"), "application/json"),
        (_typed("application/json, text/plain"), "application/json, text/plain"),
        (_typed(""), ""),
        ((), ""),
        (_typed("application/json") * 2, ""),
    ],
)
def test_the_media_type_is_without_parameters_and_empty_when_there_is_no_one(fields: Fields, expected: str) -> None:
    assert media_type(fields) == expected


UTF8 = [
    "application/json",
    "application/json; charset=utf-8",
    "application/json;charset=UTF-8",
    'application/json; charset="utf-8"; x=y',
    "application/json; charset=utf8",
    "application/json ;\tCharset=Utf-8 ; x=y",
    "",
]
NOT_UTF8 = [
    "application/json; charset=utf-7",
    'application/json; charset="UTF-7"',
    "application/json; charset=utf-16",
    "application/json; charset=iso-8859-1",
    "application/json; charset=utf-8; charset=utf-7",
    "application/json; charset=utf-8; charset=utf-8",
    "application/json; charset=utf-8, text/plain; charset=utf-7",
    "application/json; charset*=utf-7''x",
    "application/json; charset*0=utf-7",
    "application/json; charset",
    "application/json; charset=",
    "application/json; charset = utf-7",
    'application/json; charset="ut\\f-7"',
    "application/json; charset='utf-7'",
    "application/json; charset=utf-8x",
    "application/json; xcharset=utf-7",
    "application/json; char\u017fet=utf-7",
]


@pytest.mark.parametrize("value", UTF8)
def test_utf8_in_any_quoting_is_accepted(value: str) -> None:
    assert charset_is_utf8(_typed(value))
    check_request_fields(_typed(value))


@pytest.mark.parametrize("value", NOT_UTF8)
def test_any_other_mention_of_a_charset_is_refused(value: str) -> None:
    assert not charset_is_utf8(_typed(value))
    with pytest.raises(UnsupportedMedia):
        check_request_fields(_typed(value))


def test_a_body_without_content_type_has_no_charset() -> None:
    assert charset_is_utf8(())


def test_charsets_of_several_lines_count_together() -> None:
    assert not charset_is_utf8(_typed("a/b; charset=utf-8") * 2)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], ""),
        (["identity"], ""),
        (["Identity, "], ""),
        (["gzip"], "gzip"),
        (["identity, X-GZIP"], "x-gzip"),
        (["identity", "br"], "br"),
        (["gzip,identity", "br"], "gzip, br"),
    ],
)
def test_the_content_codings_are_those_that_change_the_bytes(lines: list[str], expected: str) -> None:
    assert content_coding(tuple(("Content-Encoding", line) for line in lines)) == expected


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "x-gzip", "identity, gzip", "zstd"])
def test_a_coded_request_is_refused(coding: str) -> None:
    with pytest.raises(UnsupportedMedia):
        check_request_fields((("Content-Encoding", coding),))


@pytest.mark.parametrize(
    "name", ["Content-Type", "Authorization", "Mcp-Method", "Mcp-Name", "MCP-Protocol-Version", "Mcp-Session-Id"]
)
def test_two_lines_of_a_field_that_decides_are_refused(name: str) -> None:
    """PROTOCOL 2: first-copy and last-copy readers differ, even about equal copies."""
    with pytest.raises(BadFields):
        check_request_fields(((name, "a"), (name.upper(), "a")))


@pytest.mark.parametrize(
    "listed",
    [
        "Mcp-Session-Id, Content-Type",
        "close, mcp-name",
        "MCP-PARAM-X",
        "Authorization",
        "X-Sluicegate-Key",
        "host",
        "content-length",
        "Cookie",
        "Content-Encoding",
        "Accept",
        "Last-Event-ID",
        "Origin",
    ],
)
def test_connection_cannot_have_an_end_to_end_field_taken_away(listed: str) -> None:
    """PROTOCOL 9; RFC 9110 7.6.1: a sender lists no field that is for all recipients."""
    with pytest.raises(BadFields):
        check_request_fields((("Connection", "keep-alive"), ("Connection", listed)))


def test_ordinary_request_fields_pass() -> None:
    fields = (
        ("Host", "127.0.0.1"),
        ("Content-Type", "text/plain"),
        ("Connection", "Upgrade, HTTP2-Settings, X-Mine"),
        ("Content-Encoding", "identity"),
        ("X-A", "1"),
        ("X-A", "2"),
    )

    check_request_fields(fields)


MIRRORS: list[tuple[Fields, Message]] = [
    ((), _call()),
    ((("Mcp-Method", "tools/call"),), _call()),
    ((("mcp-name", "danger"),), _call()),
    ((("Mcp-Name", " danger\t"),), _call()),
    ((("Mcp-Name", _coded("danger")),), _call()),
    ((("Mcp-Name", _coded("dañger")),), _call("dañger")),
    ((("Mcp-Name", _coded(" a")),), _call(" a")),
    ((("Mcp-Name", _coded("")),), _call("")),
    ((("Mcp-Name", _coded("=?base64?x?=")),), _call("=?base64?x?=")),
    ((("Mcp-Name", "=?utf-8?x?="),), _call("=?utf-8?x?=")),
    ((("Mcp-Name", "a b"),), _call("a b")),
    ((("Mcp-Name", "p"),), Request("7", "prompts/get", {"name": "p"})),
    ((("Mcp-Name", "u://x"),), Request("7", "resources/read", {"uri": "u://x"})),
    ((("Mcp-Name", "t1"),), Request("7", "tasks/get", {"taskId": "t1"})),
    ((("Mcp-Name", "t1"),), Request("7", "tasks/update", {"taskId": "t1"})),
    ((("Mcp-Name", "t1"),), Request("7", "tasks/cancel", {"taskId": "t1"})),
    ((("Mcp-Method", "notifications/x"),), Notification("notifications/x", {})),
    ((("Mcp-Param-Region", "=?base64?!!"), ("Mcp-Session-Id", "s")), _call()),
    ((("MCP-Protocol-Version", "2025-11-25"),), _call()),
    ((("MCP-Protocol-Version", "2025-11-25"),), _call(progressToken="t")),
    ((("MCP-Protocol-Version", "2025-11-25"),), Request("7", "ping", {"_meta": []})),
    ((("MCP-Protocol-Version", "2025-11-25"),), Response("7")),
    ((("MCP-Protocol-Version", "2026-07-28 \t"),), _call(**{VERSION_KEY: "2026-07-28"})),
    ((), _call(**{VERSION_KEY: "2026-07-28"})),
]


@pytest.mark.parametrize(("fields", "message"), MIRRORS)
def test_fields_that_say_what_the_body_says_or_are_absent_pass(fields: Fields, message: Message) -> None:
    check_mcp_fields(fields, _single(message))


MISMATCHES: list[tuple[Fields, Message]] = [
    ((("Mcp-Method", "tools/list"),), _call()),
    ((("Mcp-Method", "Tools/Call"),), _call()),
    ((("Mcp-Method", ""),), _call()),
    ((("Mcp-Method", _coded("tools/call")),), _call()),
    ((("Mcp-Method", "caf\u00e9"),), Request("7", "caf\u00e9", {})),
    ((("Mcp-Name", "safe"),), _call()),
    ((("Mcp-Name", "Danger"),), _call()),
    ((("Mcp-Name", "danger"), ("Mcp-Name", "safe")), _call()),
    ((("Mcp-Name", "dañger"),), _call("dañger")),
    ((("Mcp-Name", "da\udcc3\udcb1ger"),), _call("dañger")),
    ((("Mcp-Name", "a\tb"),), _call("a\tb")),
    ((("Mcp-Name", _coded("dan\u0303ger")),), _call("dañger")),
    ((("Mcp-Name", "=?BASE64?ZGFuZ2Vy?="),), _call()),
    ((("Mcp-Name", "=?BASE64?ZGFuZ2Vy?="),), _call("=?BASE64?ZGFuZ2Vy?=")),
    ((("Mcp-Name", "=?base64?x?="),), _call("=?base64?x?=")),
    ((("Mcp-Name", "=?base64?ZGFuZ2V?="),), _call()),
    ((("Mcp-Name", "=?base64?ZGFuZ2Vy"),), _call()),
    ((("Mcp-Name", "=?base64?ZGFu ZGFu?="),), _call()),
    ((("Mcp-Name", "=?base64?RGFuZ2VyMh==?="),), _call("Danger2")),
    ((("Mcp-Name", "=?base64?/w==?="),), _call("\ufffd")),
    ((("Mcp-Name", "x"),), Request("7", "ping", {"name": "x"})),
    ((("Mcp-Name", ""),), Request("7", "ping", {})),
    ((("Mcp-Name", "n"),), Request("7", "resources/read", {"name": "n", "uri": "u"})),
    ((("Mcp-Name", "7"),), Request("7", "resources/read", {"uri": Number("7")})),
    ((("MCP-Protocol-Version", "2025-11-25"),), _call(**{VERSION_KEY: "2026-07-28"})),
    ((("MCP-Protocol-Version", "2026"),), _call(**{VERSION_KEY: Number("2026")})),
    ((("MCP-Protocol-Version", "1"), ("MCP-Protocol-Version", "2")), _call(**{VERSION_KEY: "1"})),
]


@pytest.mark.parametrize(("fields", "message"), MISMATCHES)
def test_a_field_that_says_something_else_than_the_body_is_refused_with_the_id(
    fields: Fields, message: Message
) -> None:
    """MCP 2026-07-28: HTTP 400 and -32020."""
    assert _mismatch(fields, _single(message)).id == "7"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ((("Mcp-Method", "ping"),), Notification("n", {})),
        ((("Mcp-Method", "ping"),), Response("7")),
        ((("Mcp-Name", "a"),), Response("7")),
    ],
)
def test_a_mismatch_about_a_message_that_is_no_request_has_no_id(fields: Fields, message: Message) -> None:
    assert _mismatch(fields, _single(message)).id is None


@pytest.mark.parametrize("field", [("Mcp-Method", "tools/call"), ("Mcp-Name", "danger")])
def test_a_batch_with_a_mirrored_method_or_name_is_a_mismatch(field: tuple[str, str]) -> None:
    """DESIGN 3: even when it agrees with every element."""
    assert _mismatch((field,), Body((_call(),), is_batch=True)).id is None


def test_every_element_of_a_batch_must_agree_with_the_version_field() -> None:
    fields = (("MCP-Protocol-Version", "2026-07-28"),)
    same = _call(**{VERSION_KEY: "2026-07-28"})

    check_mcp_fields(fields, Body((same, Response("7"), _call()), is_batch=True))
    assert _mismatch(fields, Body((same, _call(**{VERSION_KEY: "2027-01-01"})), is_batch=True)).id is None


def test_what_is_meant_for_the_downstream_is_forwarded_in_order_as_it_came() -> None:
    fields = (
        ("content-type", "Application/JSON"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Session-Id", "s"),
        ("mcp-protocol-version", "2025-06-18"),
        ("Mcp-Param-Region", "=?base64?w7E=?="),
        ("Last-Event-ID", "e"),
        ("Authorization", "Bearer of-the-downstream"),
        ("traceparent", "00-x"),
        ("User-Agent", "c"),
        ("X-A", "1"),
        ("x-a", "2"),
    )

    assert forwarded_fields(fields, KEY, VIA) == (*fields, *OURS)


@pytest.mark.parametrize(
    "name",
    [
        "Connection",
        "Keep-Alive",
        "Proxy-Authorization",
        "Proxy-Connection",
        "TE",
        "Trailer",
        "Transfer-Encoding",
        "Upgrade",
        "HTTP2-Settings",
        "Content-Length",
        "Host",
        "Expect",
        "Cookie",
        "Origin",
        "Accept-Encoding",
        "Forwarded",
        "X-Forwarded-For",
        "X-Forwarded-Uri",
        "X-HTTP-Method",
        "X-HTTP-Method-Override",
        "X-Method-Override",
        "X-Original-URL",
        "X-Rewrite-URL",
    ],
)
def test_what_is_about_this_connection_or_for_us_is_not_forwarded(name: str) -> None:
    assert forwarded_fields(((name, "x"), (name.lower(), "y")), None, VIA) == OURS


def test_what_connection_lists_is_not_forwarded() -> None:
    fields = (
        ("Connection", "close, X-Drop"),
        ("X-Drop", "1"),
        ("connection", "x-too"),
        ("X-Too", "2"),
        ("X-Keep", "3"),
    )

    assert forwarded_fields(fields, None, VIA) == (("X-Keep", "3"), *OURS)


@pytest.mark.parametrize("key", [KEY, None])
@pytest.mark.parametrize(
    "field",
    [
        ("Authorization", f"Bearer {KEY}"),
        ("authorization", f"bearer  {KEY} "),
        ("X-Sluicegate-Key", KEY),
        ("x-sluicegate-key", "anything"),
        ("X-Api-Key", KEY),
        ("X-Debug", f"curl -H 'Authorization: Bearer {KEY}'"),
        ("Authorization", f"Bearer {OTHER_KEY}"),
        ("Authorization", "Bearer sg_short"),
    ],
)
def test_no_line_with_a_key_of_ours_goes_downstream(field: tuple[str, str], key: str | None) -> None:
    assert forwarded_fields((field, ("X-A", "1")), key, VIA) == (("X-A", "1"), *OURS)


def test_an_accepted_key_of_any_form_stays_here() -> None:
    assert forwarded_fields((("X-A", "has odd in it"), ("X-B", "1")), "odd", VIA) == (("X-B", "1"), *OURS)


@pytest.mark.parametrize("field", [("X-Name", "caf\udce9"), ("X-\udce9", "")])
def test_a_field_that_is_not_utf8_is_refused(field: tuple[str, str]) -> None:
    """The HTTP library would leave the bytes out, and the downstream would read another value."""
    with pytest.raises(BadFields):
        check_request_fields((field,))
    assert is_utf8((("X-Name", "caf\u00e9"),))


@pytest.mark.parametrize(
    "name", ["X_Sluicegate_Key", "Mcp_Name", "mcp-protocol_version", "Transfer_Encoding", "X_HTTP_Method_Override"]
)
def test_a_name_that_some_readers_take_for_one_of_ours_stays_here(name: str) -> None:
    """CGI-like readers cannot tell `_` from `-`."""
    assert forwarded_fields(((name, "x"), ("X_Other", "y")), None, VIA) == (
        ("X_Other", "y"),
        *OURS,
    )


@pytest.mark.parametrize("name", ["Range", "If-Range"])
def test_no_part_of_an_answer_is_asked_for(name: str) -> None:
    """Half of a list looks like none."""
    assert forwarded_fields(((name, "bytes=50-"),), None, VIA) == OURS


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (("A", "b"), False),
        (("A", "b\tc"), False),
        (("A", "b\x01"), True),
        (("A", "b\x7f"), True),
        (("A\x00", "b"), True),
    ],
)
def test_a_control_character_other_than_a_tab_is_found(field: tuple[str, str], expected: bool) -> None:
    """RFC 9110 section 5.5."""
    assert holds_control((field,)) is expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], ""),
        (["chunked"], ""),
        (["Identity"], ""),
        (["GZip, chunked"], "gzip"),
        (["gzip", "deflate, chunked"], "gzip, deflate"),
    ],
)
def test_a_transfer_coding_that_nobody_undoes_is_named(lines: list[str], expected: str) -> None:
    """RFC 9112 section 6.1."""
    assert transfer_coding(tuple(("Transfer-Encoding", line) for line in lines)) == expected


@pytest.mark.parametrize(
    ("accept", "json", "events"),
    [
        ((), True, True),
        (("application/json, text/event-stream",), True, True),
        (("application/json", "text/event-stream"), True, True),
        (("Application/JSON;q=0.5",), True, False),
        (("text/*",), False, True),
        (("*/*",), True, True),
        (("text/html",), False, False),
        (("application/jsonp",), False, False),
    ],
)
def test_what_a_client_accepts_is_read_from_all_its_lines(accept: tuple[str, ...], json: bool, events: bool) -> None:
    """RFC 9110 12.5.1."""
    fields = tuple(("accept", value) for value in accept)
    assert (accepts(fields, "application/json"), accepts(fields, "text/event-stream")) == (json, events)


def test_fields_that_are_for_us_stay_here() -> None:
    fields = (
        ("X-Sluicegate-Downstream-Authorization", "/a Bearer b"),
        ("x_sluicegate_anything", "1"),
        ("X-Other", "2"),
    )
    assert forwarded_fields(fields, None, VIA) == (("X-Other", "2"), *OURS)


def test_the_via_of_others_stays_before_ours() -> None:
    theirs = (("via", "1.0 fred, 1.1 p.example.net (Apache/1.1)"), ("X-A", "1"), ("VIA", "2 nginx"))

    assert forwarded_fields(theirs, None, VIA) == (*theirs, *OURS)


@pytest.mark.parametrize(
    ("lines", "is_known"),
    [
        ([], False),
        (["1.1 other"], False),
        (["1.1 sluicegate-1"], True),
        (["1.1 Sluicegate-1"], True),
        (["1.1 other", "1.0 fred,1.1\tsluicegate-1 (comment)"], True),
        (["HTTP/1.1 sluicegate-1, 1.1 other"], True),
        (["1.1 sluicegate-12"], False),
        (["1.1 sluicegate-1.example.com:80"], False),
        (["sluicegate"], False),
    ],
)
def test_a_request_that_has_been_here_is_known_by_via(lines: list[str], is_known: bool) -> None:
    """RFC 9110 7.6.3: the member that names us may stand in any line, with any protocol and comment."""
    fields = (("X-A", "sluicegate-1"), *(("Via", line) for line in lines))

    assert came_through(fields, "sluicegate-1") is is_known


def test_connection_may_not_list_via() -> None:
    with pytest.raises(BadFields, match=r"^Connection lists via$"):
        check_request_fields((("Connection", "Via"),))

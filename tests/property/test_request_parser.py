"""Properties of the request parser: any bytes are answered or refused, and no reader sees a call that it does not."""

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from proxy import jsontext, replies
from proxy.errors import InvalidRequest, ParseError
from proxy.headers import check_mcp_fields
from proxy.jsonrpc import TOOLS_CALL, Body, Request, Response, parse
from proxy.jsontext import NotJson

Pairs = list[tuple[str, Any]]


@dataclass(frozen=True)
class _Object:
    """An object as it is written: duplicates and order included."""

    pairs: Pairs


@dataclass(frozen=True)
class _Escaped:
    """A string written as escapes only."""

    text: str


def _spelled(value: Any) -> str:
    match value:
        case _Object(pairs):
            return "{" + ", ".join(f"{_spelled(name)}:{_spelled(member)}" for name, member in pairs) + "}"
        case _Escaped(text):
            return '"' + "".join(f"\\u{ord(character):04x}" for character in text) + '"'
        case list():
            return "[" + ",".join(map(_spelled, value)) + " ]"
        case _:
            return json.dumps(value, ensure_ascii=False)


def _strings(*texts: str) -> st.SearchStrategy[Any]:
    return st.one_of(st.sampled_from(texts), st.sampled_from(texts), st.sampled_from(texts).map(_Escaped))


def _object(
    core: list[tuple[str, st.SearchStrategy[Any]]], extra: st.SearchStrategy[Any]
) -> st.SearchStrategy[_Object]:
    """The core members, some missing, with a few more, in any order."""
    members = [st.tuples(st.sampled_from([name] * 9 + [name.upper()]), value) for name, value in core]
    some = st.tuples(*members).map(list) | st.lists(st.one_of(members), max_size=4)
    return (
        st.tuples(some, st.lists(extra, max_size=1))
        .flatmap(lambda parts: st.permutations([*parts[0], *parts[1]]))
        .map(_Object)
    )


MEMBER_NAMES = _strings(
    *("jsonrpc", "id", "method", "Method", "method\0", "params", "PARAMS", "param\u017f", "name", "Name", "_meta"),
    *("result", "error", "arguments", "x"),
)
SCALARS = _strings("2.0", TOOLS_CALL, "tools/list", "danger", "safe") | st.sampled_from(
    [7, 7.0, None, True, [], ["danger"]]
)
META = _object([("io.modelcontextprotocol/protocolVersion", _strings("2026-07-28"))], st.tuples(MEMBER_NAMES, SCALARS))
PARAMS = _object([("name", _strings("danger", "safe")), ("_meta", META)], st.tuples(MEMBER_NAMES, SCALARS | META))
MESSAGES = _object(
    [
        ("jsonrpc", st.just("2.0")),
        ("id", st.integers() | st.text(max_size=3)),
        ("method", _strings(TOOLS_CALL, TOOLS_CALL, "tools/list")),
        ("params", PARAMS),
    ],
    st.tuples(MEMBER_NAMES, SCALARS | PARAMS),
)
BODIES = (MESSAGES | st.lists(MESSAGES | SCALARS | st.lists(MESSAGES, max_size=1), max_size=3)).map(_spelled)


def _last_wins(pairs: Pairs) -> dict[str, Any]:
    return dict(pairs)


def _first_wins(pairs: Pairs) -> dict[str, Any]:
    return dict(reversed(pairs))


def _folded(reader: Callable[[Pairs], dict[str, Any]]) -> Callable[[Pairs], dict[str, Any]]:
    return lambda pairs: reader([(name.casefold(), value) for name, value in pairs])


READERS = (_last_wins, _first_wins, _folded(_last_wins), _folded(_first_wins))


def _calls(value: Any) -> Iterator[Any]:
    """The names of the tools that a lax server would run, whatever else the body is."""
    match value:
        case list():
            for element in value:
                yield from _calls(element)
        case {"method": "tools/call", "params": {"name": name}}:
            yield name
        case _:
            return


def _reported(body: Body) -> list[str]:
    calls = (message for message in body.messages if not isinstance(message, Response) and message.method == TOOLS_CALL)
    return [message.params["name"] for message in calls]


def _parsed(body: bytes) -> Body | None:
    """What the parser reads; None when it refuses. Any other exception breaks the test that asks."""
    try:
        return parse(body)
    except (ParseError, InvalidRequest):
        return None


@given(BODIES)
@example('{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"safe","Name":"danger"}}')
@example('{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"name":"danger"},"METHOD":"tools/call"}')
@example('{"jsonrpc":"2.0","id":7,"METHOD":"tools/call","params":{"name":"danger"},"result":{}}')
@example('[{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"danger"}}]')
@example('{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"danger"},"result":{}}')
def test_no_reader_sees_a_call_that_the_parser_does_not_report(text: str) -> None:
    body = _parsed(text.encode())

    for reader in READERS:
        seen = list(_calls(json.loads(text, object_pairs_hook=reader)))
        assert body is None or _reported(body) == seen


@given(st.binary(max_size=60) | BODIES.map(str.encode))
@example(b"")
@example(b"[" * 5000)
@example(b'{"a":' * 1500 + b"1" + b"}" * 1500)
@example(b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"m"}')
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    parsed = _parsed(body)

    assert parsed is None or parsed.messages


@st.composite
def _damaged(draw: st.DrawFn) -> bytes:
    """A body with a few bytes put in, taken out or replaced."""
    text = bytearray(draw(BODIES).encode())
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(text)))
        piece = draw(
            st.sampled_from([b"", b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"0", b"-", b".", b"e", b"\xff"])
        )
        text[at : at + draw(st.integers(0, 2))] = piece
    return bytes(text)


def _refuse(constant: str) -> None:
    raise ValueError(constant)


@given(_damaged())
@example(b'{"a":01}')
@example(b'{"a":1,}')
@example(b"[[],]")
@example(b"\xef\xbb\xbf{}")
@example(b"[NaN]")
def test_the_reader_accepts_what_a_strict_reader_accepts_and_sees_the_same(body: bytes) -> None:
    try:
        expected = json.loads(body.decode("utf-8"), parse_int=str, parse_float=str, parse_constant=_refuse)
    except ValueError:
        expected = NotJson
    try:
        seen = jsontext.decode(body).value
    except NotJson:
        seen = NotJson

    assert seen == expected


@given(st.integers(-(10**60), 10**60) | st.text(), st.booleans())
def test_an_id_comes_back_as_it_was_sent(value: int | str, ensure_ascii: bool) -> None:
    id_text = json.dumps(value, ensure_ascii=ensure_ascii)

    (message,) = parse(f'{{"jsonrpc":"2.0","id":{id_text},"method":"m"}}'.encode()).messages

    expected = json.dumps(value) if "\\" in id_text else id_text
    assert message == Request(expected, "m", {})
    answer = replies.error(message.id, -32602, "x")
    assert expected.encode() in answer
    back = json.loads(answer)["id"]
    assert (type(back), back) == (type(value), value)


@given(st.text())
def test_a_name_of_any_text_agrees_with_its_coded_mirror(name: str) -> None:
    """MCP 2026-07-28: what is not plain visible ASCII is sent as the base64 of its UTF-8."""
    mirror = f"=?base64?{base64.b64encode(name.encode()).decode()}?="

    check_mcp_fields((("Mcp-Name", mirror),), Body((Request("7", TOOLS_CALL, {"name": name}),), is_batch=False))

"""The exchange over any request and any cut of any answer: as it came, less what is hidden, or not at all."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from hypothesis import event as note
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.errors import DownstreamUnusable
from proxy.exchange import Exchange, RequestHead
from proxy.held import Held
from proxy.ports import DataPlaneSettings, Fields, Forward, Reply
from registry.access import Reason, Refusal
from registry.model import Facts
from tests.build import KEY, facts, policy

HIDDEN = "da\u00f1ger"
WITHOUT_HIDDEN = facts(server=policy(disabled_tools=frozenset({HIDDEN})))
JSON: Fields = (("Content-Type", "application/json"),)
STREAM: Fields = (("Content-Type", "text/event-stream"),)
LIST = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'


def exchange(method: str = "POST") -> Exchange:
    return Exchange(WITHOUT_HIDDEN, RequestHead(method, "", JSON, KEY), DataPlaneSettings())


# The request


@dataclass(frozen=True)
class Sent:
    """A `tools/call` of `tool`, or a `tools/list` when it is None; a notification when `id` (JSON text) is None."""

    id: str | None
    tool: str | None
    is_ascii: bool

    @property
    def text(self) -> str:
        """The message as JSON."""
        id_member = "" if self.id is None else f'"id":{self.id},'
        call = (
            {"method": "tools/list"} if self.tool is None else {"method": "tools/call", "params": {"name": self.tool}}
        )
        return f'{{"jsonrpc":"2.0",{id_member}{json.dumps(call, ensure_ascii=self.is_ascii)[1:]}'


ids = st.sampled_from([None, "7", "-1", "9007199254740993", '"7"', '"\\u0061"', '""'])
sent = st.builds(Sent, ids, st.sampled_from([None, "safe", "danger", HIDDEN]), st.booleans())


@given(st.lists(sent, min_size=1, max_size=4), st.booleans())
def test_a_body_goes_on_whole_as_it_came_or_is_refused_whole(messages: list[Sent], may_stand_alone: bool) -> None:
    is_alone = may_stand_alone and len(messages) == 1
    texts = ",".join(message.text for message in messages)
    body = (texts if is_alone else f"[{texts}]").encode()
    outcome = exchange().receive_request(body)
    if any(message.tool == HIDDEN for message in messages):
        assert_refused(outcome, messages, is_alone=is_alone)
        return
    assert isinstance(outcome, Forward)
    assert outcome.body is body
    assert [permit.tool for permit in outcome.permits] == [message.tool for message in messages]


def assert_refused(outcome: Forward | Reply, messages: Sequence[Sent], *, is_alone: bool) -> None:
    """Every id is answered, by its exact value and type and in order, and nothing else is said."""
    assert isinstance(outcome, Reply)
    assert set(outcome.refusals) == {Refusal(Reason.TOOL_DISABLED, HIDDEN)}
    expected = [
        (json.loads(message.id), -32602 if message.tool == HIDDEN else -32600)
        for message in messages
        if message.id is not None
    ]
    assert outcome.status == (200 if expected else 202)
    said = json.loads(outcome.body or b"[]")
    errors = [said] if is_alone and expected else said
    assert [(error["id"], error["error"]["code"]) for error in errors] == expected


def damaged(whole: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """The bytes with up to two pieces put anywhere, or a member put in front of the others of some object."""
    breaking = (b'"', b",", b"{", b"}", b"]", b"\\", b"\n", b"\r", b"\n\n", b"\ndata: ", b": ", b"\0", b"\xff", b"NaN")
    harmless = (b"", b" ", b"\t", b"\xef\xbb\xbf", b"x")
    members = (b'"tools":[],', b'"result":{},', b'"name":"x",', b'"method":"x",', b'"params":{},', b'"x":1,')

    def broken(data: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
        for place, cut_bytes, piece in changes:
            at = place % (len(data) + 1)
            data = data[:at] + piece + data[at + cut_bytes :]
        return data

    def doubled(data: bytes, place: int, member: bytes) -> bytes:
        inside = [match.end() for match in re.finditer(rb"\{", data)]
        at = inside[place % len(inside)]
        return data[:at] + member + data[at:]

    places = st.integers(0, 999)
    change = st.tuples(places, st.sampled_from([0, 1, 5]), st.sampled_from(breaking + harmless))
    return st.builds(broken, whole, st.lists(change, max_size=2)) | st.builds(
        doubled, whole, places, st.sampled_from(members)
    )


@settings(max_examples=500)
@given(
    st.sampled_from(["POST", "POST", "POST", "GET", "DELETE"]),
    st.binary(max_size=50) | damaged(sent.map(lambda m: m.text.encode())),
)
def test_any_request_goes_on_as_it_came_or_is_answered(method: str, body: bytes) -> None:
    outcome = exchange(method).receive_request(body)
    note(type(outcome).__name__)
    if isinstance(outcome, Reply):
        assert outcome.status in {200, 202, 400}
        return
    assert outcome.body is (body if method == "POST" else None)
    if method == "POST":
        message = json.loads(body)
        assert (message["method"], message.get("params", {}).get("name")) != ("tools/call", HIDDEN)


# The answer: what comes beside what leaves for a caller that may not see HIDDEN

Part = tuple[bytes, bytes]
names = st.lists(st.sampled_from([HIDDEN, "danger", "\u540d\u524d", "\U0001f5d1"]), max_size=4)
cuts = st.lists(st.floats(0, 1), max_size=10)


def list_text(tools: Sequence[str], id_text: str = "1") -> str:
    elements = ",".join(f'{{"name":"{name}","inputSchema":{{"maximum":1E400}}}}' for name in tools)
    return f'{{"jsonrpc":"2.0","id":{id_text},"result":{{"tools":[{elements}]}}}}'


def with_list(opening: str, tools: Sequence[str], closing: str) -> Part:
    shown = [name for name in tools if name != HIDDEN]
    return f"{opening}{list_text(tools)}{closing}".encode(), f"{opening}{list_text(shown)}{closing}".encode()


def same(part: bytes) -> Part:
    return part, part


list_events = st.builds(
    lambda end, tools: with_list(f"id: 7{end}data: ", tools, f"{end}: note{end}{end}"),
    st.sampled_from(["\n", "\r", "\r\n"]),
    names,
)
other_parts = st.sampled_from(
    [
        *(b": ping\n", b"\n", b"\r", b"id: 9\ndata: \n\n", b"retry: 5\r\n\r\n", b"event: x\rdata\r\r", b"data: {\n\n"),
        b'data: {"method":"notifications/tools/list_changed"}\n\n',
        f'data: {{"result":{{"structuredContent":{{"tools":[{{"name":"{HIDDEN}"}}]}}}}}}\n\n'.encode(),
    ]
).map(same)
bodies = st.builds(lambda frame, tools: with_list(frame[0], tools, frame[1]), st.sampled_from(["  ", "[]"]), names)


def chunks(data: bytes, places: Sequence[float]) -> list[bytes]:
    bounds = [0, *sorted(int(place * len(data)) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(bounds)]


def outputs(fields: Fields, parts: Sequence[bytes]) -> Iterator[bytes | Held]:
    """What comes out of an exchange that asked for the tools."""
    made = exchange()
    assert isinstance(made.receive_request(LIST), Forward)
    made.receive_response_head(200, fields)
    for part in parts:
        yield from made.receive_response_data(part)
    yield from made.receive_response_eof()


def left(fields: Fields, parts: Sequence[bytes], fresh: Facts = WITHOUT_HIDDEN) -> tuple[bytes, bool]:
    """The bytes that left, and whether it went well to the end."""
    sent_bytes = b""
    try:
        for output in outputs(fields, parts):
            piece = output.release(fresh) if isinstance(output, Held) else output
            assert isinstance(piece, bytes)
            sent_bytes += piece
    except DownstreamUnusable:
        return sent_bytes, False
    return sent_bytes, True


@given(st.lists(list_events | other_parts, max_size=6), st.sampled_from([b"", b"data: " + LIST, b"id: 1\r\n"]), cuts)
def test_an_event_stream_leaves_less_the_hidden_however_it_is_cut(
    parts: list[Part], unfinished: bytes, places: list[float]
) -> None:
    whole = b"".join(came for came, _ in parts)
    pieces = chunks(whole + unfinished, places)
    assert left(STREAM, pieces) == (b"".join(leaves for _, leaves in parts), True)
    assert left(STREAM, pieces, facts()) == (whole, True)


@given(bodies, cuts)
def test_a_json_answer_leaves_less_the_hidden_however_it_is_cut(body: Part, places: list[float]) -> None:
    came, leaves = body
    assert left(JSON, chunks(came, places)) == (leaves, True)
    assert left(JSON, chunks(came, places), facts()) == (came, True)


def data_of(stream: bytes) -> Iterator[bytes]:
    """The data of each event, as a client that has the whole text reads it (WHATWG HTML 9.2.6)."""
    for block in re.split(rb"(?:^|(?<=\n))\n", re.sub(rb"\r\n?", b"\n", stream.removeprefix(b"\xef\xbb\xbf"))):
        fields = [line.partition(b":") for line in block.split(b"\n")]
        yield b"\n".join(value.removeprefix(b" ") for name, _, value in fields if name == b"data")


def listed(data: bytes) -> set[Any]:
    """The names of the tools in one message; none when it is no list."""
    try:
        return {tool["name"] for tool in json.loads(data)["result"]["tools"]}
    except (ValueError, LookupError, TypeError):
        return set()


@settings(max_examples=500)
@given(damaged(list_events.map(lambda part: part[0] * 2)) | st.binary(max_size=50), cuts)
def test_any_event_stream_fails_at_the_same_byte_or_shows_nothing_hidden(stream: bytes, places: list[float]) -> None:
    outcome = left(STREAM, chunks(stream, places))
    assert outcome == left(STREAM, [stream])
    note("whole" if outcome[1] else "cut off")
    for data in data_of(outcome[0]):
        assert HIDDEN not in listed(data)


@settings(max_examples=500)
@given(damaged(bodies.map(lambda part: part[0])) | st.binary(max_size=50))
def test_any_json_answer_leaves_nothing_or_shows_nothing_hidden(body: bytes) -> None:
    output, is_whole = left(JSON, [body])
    note("whole" if is_whole else "refused")
    assert is_whole or output == b""
    assert HIDDEN not in listed(output)

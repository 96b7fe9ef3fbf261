"""What policy does not touch passes byte for byte, however it is cut into pieces: raw sockets, against a recorder."""

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fake_downstream import FakeDownstream, answer, chunked
from tests.integration.conftest import Plane, running
from tests.raw_client import LIST, Client, post, request

bounded = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
scalars = st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3))


@st.composite
def spelled(draw: st.DrawFn, value: object) -> bytes:
    """One of the many spellings of a JSON value."""
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t:")]))
    text = json.dumps(value, ensure_ascii=draw(st.booleans()), separators=separators)
    return (draw(st.sampled_from(["", " ", "\r\n"])) + text + draw(st.sampled_from(["", "\n"]))).encode()


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """A permitted request, or a batch of them."""
    arguments = draw(values)
    call = {"jsonrpc": "2.0", "id": draw(st.integers() | names), "method": "tools/call"}
    message = {**call, "params": {"name": "a", "arguments": arguments}, draw(names.filter(lambda n: len(n) > 7)): 1}
    return draw(spelled([message] if draw(st.booleans()) else message))


@st.composite
def cut(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """The same bytes in pieces."""
    places = sorted(draw(st.sets(st.integers(0, len(data)), max_size=6)))
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """An event stream without a list, or with one that nothing is cut from."""
    end = draw(st.sampled_from([b"\n", b"\r\n", b"\r"]))
    tools = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "a", "x": draw(values)}]}}
    data = draw(st.sampled_from([b"", json.dumps(tools).encode(), json.dumps(draw(values)).encode()]))
    others = st.lists(st.sampled_from([b": note", b"event: message", b"id: 7", b"retry: 5", b"x: y"]), max_size=2)
    once = draw(st.sampled_from([b"data:" + data, b"data: " + data]))  # twice, a list would be no JSON any more
    event = end.join([*draw(others), once, *draw(others)])
    return b"".join(draw(st.lists(st.just(event + end + end), min_size=1, max_size=4)))


@bounded
@given(data=st.data())
async def test_a_permitted_body_arrives_as_it_was_sent(plane: Plane, data: st.DataObject) -> None:
    body = data.draw(bodies())
    plane.downstream.received.clear()
    async with await Client.connect(plane.port) as client:
        for piece in data.draw(cut(post(body))):
            client.writer.write(piece)
            await client.writer.drain()
        assert (await client.answer()).status == 200

    assert plane.downstream.bodies == [body]


@bounded
@given(data=st.data())
async def test_a_chunked_body_arrives_as_it_was_sent(plane: Plane, data: st.DataObject) -> None:
    body = data.draw(bodies())
    plane.downstream.received.clear()
    async with await Client.connect(plane.port) as client:
        client.writer.write(request("POST", "Content-Type: application/json", "Transfer-Encoding: chunked"))
        for piece in filter(None, data.draw(cut(body))):
            client.writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await client.writer.drain()
        client.writer.write(b"0\r\n\r\n")
        assert (await client.answer()).status == 200

    assert plane.downstream.bodies == [body]


@bounded
@given(data=st.data())
async def test_a_stream_without_a_hidden_tool_arrives_as_it_was_sent(plane: Plane, data: st.DataObject) -> None:
    stream = data.draw(streams())
    plane.downstream.script = chunked(data.draw(cut(stream)))

    reply = await plane.ask(data.draw(st.sampled_from([post(LIST), request("GET")])))

    assert (reply.body, reply.is_whole) == (stream, True)


@bounded
@given(data=st.data())
async def test_a_json_list_with_nothing_to_hide_arrives_as_it_was_sent(plane: Plane, data: st.DataObject) -> None:
    listed = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "a", "x": data.draw(values)}]}}
    body = data.draw(spelled(listed))
    plane.downstream.script = answer(body)

    assert (await plane.ask(post(LIST))).body == body


@bounded
@given(data=st.data())
async def test_an_answer_that_can_hold_no_list_arrives_as_it_was_sent(plane: Plane, data: st.DataObject) -> None:
    """A call's answer is not decoded at all: any bytes pass."""
    body = data.draw(st.binary(max_size=200))
    plane.downstream.script = chunked(data.draw(cut(body)), "application/json")

    reply = await plane.ask(post(b'{"jsonrpc":"2.0","id":1,"method":"x"}'))

    assert (reply.body, reply.is_whole) == (body, True)


async def test_a_body_of_several_megabytes_arrives_as_it_was_sent(downstream: FakeDownstream) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"y":"' + b"z" * 3_900_000 + b'"}}'
    async with running(downstream) as plane:
        assert (await plane.ask(post(body))).status == 200

    assert downstream.bodies == [body]

"""The token that progress is told by, and the stream that tells it."""

import json
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from proxy import jsonrpc
from proxy.gateway import progress
from proxy.gateway.progress import ProgressStream, progress_token
from proxy.jsonrpc import Request
from tests.waiting import until


def token_of(params: str) -> str | None:
    """The token of a request whose params are this JSON text."""
    body = jsonrpc.parse(b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":' + params.encode() + b"}")
    request = body.messages[0]
    assert isinstance(request, Request)
    return progress_token(request)


@pytest.mark.parametrize(
    ("token", "text"),
    [
        ('"abc"', '"abc"'),
        ('""', '""'),
        ('"7"', '"7"'),
        ("7", "7"),
        ("12345678901234567890123", "12345678901234567890123"),
        ('"\\u00e9\\/"', '"\\u00e9/"'),
        ("null", None),
        ("true", None),
        ("[]", None),
        ("{}", None),
    ],
)
def test_a_token_is_a_string_or_a_number(token: str, text: str | None) -> None:
    """MCP basic/utilities/progress: `string | number`; its type and its digits come back."""
    assert token_of(f'{{"_meta":{{"progressToken":{token}}}}}') == text


@pytest.mark.parametrize("params", ["{}", '{"_meta":null}', '{"_meta":5}', '{"_meta":{}}', '{"progressToken":1}'])
def test_without_a_token_no_progress_is_asked_for(params: str) -> None:
    assert token_of(params) is None


class Told:
    """A page that tells its progress, and what a client reads of it."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def handle(self, request: web.Request) -> web.StreamResponse:
        async with ProgressStream(request, self._token) as stream:
            await self.tell(stream)
            return stream.response

    async def tell(self, stream: ProgressStream) -> None:
        await stream.tell(1, None, None)
        await stream.tell(1.5, 2, "half \u00e9\n")
        await stream.end(b'{"answer":1}')

    async def read(self) -> tuple[dict[str, str], str]:
        app = web.Application()
        app.router.add_get("/", self.handle)
        async with TestClient(TestServer(app)) as client, client.get("/") as response:
            return {name.lower(): value for name, value in response.headers.items()}, await response.text()


def notification(token: Any, **told: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": {**told, "progressToken": token}}


@pytest.mark.parametrize(("text", "token"), [('"abc"', "abc"), ("7", 7)])
async def test_progress_comes_before_the_answer_in_events_of_their_own(text: str, token: Any) -> None:
    fields, body = await Told(text).read()

    events = [event.partition("\r\ndata: ") for event in body.split("\r\n\r\n")[:-1]]
    assert {name for name, _, _ in events} == {"event: message"}
    assert [json.loads(data) for _, _, data in events] == [
        notification(token, progress=1),
        notification(token, progress=1.5, total=2, message="half \u00e9\n"),
        {"answer": 1},
    ]
    assert body.endswith("\r\n\r\n")
    assert fields["content-type"] == "text/event-stream"
    assert (fields["cache-control"], fields["x-accel-buffering"]) == ("no-store", "no")


class Silent(Told):
    """Tells nothing until the client must have seen two comments."""

    async def tell(self, stream: ProgressStream) -> None:
        written: list[bytes] = []
        write = stream.response.write

        async def noted(data: Any) -> None:
            written.append(data)
            await write(data)

        stream.response.write = noted  # type: ignore[method-assign]
        await until(lambda: len(written) >= 2)
        await stream.end(b"{}")


async def test_a_silent_call_is_kept_alive_by_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    """MCP 2026-07-28 basic/transports: servers are encouraged to send comments."""
    monkeypatch.setattr(progress, "_KEEP_ALIVE_S", 0)
    _, body = await Silent("1").read()

    events = body.split("\r\n\r\n")[:-1]
    assert len(events) >= 3
    assert set(events[:-1]) == {": still at work"}
    assert events[-1] == "event: message\r\ndata: {}"


class OutOfRange(Told):
    """Tells what the MCP library makes of 1e999."""

    async def tell(self, stream: ProgressStream) -> None:
        await stream.tell(1, float("inf"), None)
        await stream.end(b"{}")


async def test_a_number_out_of_range_leaves_as_json() -> None:
    """RFC 8259 section 6: JSON has no infinity."""
    _, body = await OutOfRange("1").read()

    assert "Infinity" not in body


async def test_a_stream_that_was_not_opened_closes() -> None:
    stream = ProgressStream(None, "1")  # type: ignore[arg-type]  # not looked at before it opens
    await stream.__aexit__(None, None, None)

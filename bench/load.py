"""Asks an MCP server as fast as it answers, and looks at every answer.

Each connection is an MCP session of its own. It runs beside the downstream, on another core than what is measured.
"""

import asyncio
import itertools
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import urlsplit

import httptools

from bench.downstream import CALLED, tool_name

_TIMEOUT_S = 30.0


class WrongAnswer(Exception):
    """An answer that is not the one that was asked for; it voids the row."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a load asks for.

    `method` is `tools/call` or `tools/list`. `listed` tools must be in a list and the first `hidden` after the tool
    that is called must not. It ends after `seconds`, or after `most` answers.
    """

    url: str
    fields: Mapping[str, str] = field(default_factory=dict)
    method: str = "tools/call"
    connections: int = 1
    listed: int = 10
    hidden: int = 0
    seconds: float = 2.0
    most: int = 20_000


@dataclass(slots=True)
class Answers:
    """What came: how long each answer took, and its first byte, in seconds."""

    took_s: list[float] = field(default_factory=list)
    first_byte_s: list[float] = field(default_factory=list)


class Client(asyncio.Protocol):
    """One connection; one request at a time."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._address = urlsplit(asked.url)
        self._answer: asyncio.Future[bytes] | None = None
        self._body = b""
        self.first_byte = 0.0

    async def open(self) -> None:
        """Connect and begin a session. Raises WrongAnswer."""
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self, self._address.hostname or "", self._address.port or 80)
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "load", "version": "1"}}
        if b'"protocolVersion"' not in await self.ask({"id": 0, "method": "initialize", "params": params}):
            raise WrongAnswer("initialize")

    async def ask(self, message: dict[str, object], http_method: str = "POST") -> bytes:
        """Send one message; returns the body of the answer. Raises WrongAnswer."""
        self._answer = asyncio.get_running_loop().create_future()
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._transport.write(self._head(http_method, len(body)) + body)
        async with asyncio.timeout(_TIMEOUT_S):
            return await self._answer

    def _head(self, http_method: str, length: int) -> bytes:
        path = self._address._replace(scheme="", netloc="").geturl() or "/"
        fields = {
            "Host": self._address.netloc,
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": "2025-11-25",
            **self._asked.fields,
            "Content-Length": str(length),
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        return f"{http_method} {path} HTTP/1.1\r\n{lines}\r\n".encode()

    def close(self) -> None:
        """End the connection."""
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Of the protocol."""
        self._transport = cast(asyncio.Transport, transport)
        self._parser = httptools.HttpResponseParser(self)

    def data_received(self, data: bytes) -> None:
        """Of the protocol."""
        self._parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Of the protocol."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or WrongAnswer("the connection was closed"))

    def on_message_begin(self) -> None:
        """Of the parser."""
        self._body, self.first_byte = b"", 0.0

    def on_body(self, body: bytes) -> None:
        """Of the parser."""
        self.first_byte = self.first_byte or time.perf_counter()
        self._body += body

    def on_message_complete(self) -> None:
        """Of the parser."""
        if self._answer is None or self._answer.done():
            return
        if self._parser.get_status_code() == 200:
            self._answer.set_result(self._body)
        else:
            self._answer.set_exception(WrongAnswer(f"{self._parser.get_status_code()} {self._body[:200]!r}"))


async def ask_all(asked: Asked) -> Answers:
    """Ask until the time is up or there are enough answers. Raises WrongAnswer."""
    clients = [Client(asked) for _ in range(asked.connections)]
    answers, numbers = Answers(), itertools.count(1)
    try:
        for client in clients:
            await client.open()
        until = time.perf_counter() + asked.seconds
        async with asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(_ask_on(client, asked, answers, numbers, until))
    finally:
        for client in clients:
            client.close()
    return answers


async def _ask_on(
    client: Client, asked: Asked, answers: Answers, numbers: "itertools.count[int]", until: float
) -> None:
    while (began := time.perf_counter()) < until and (number := next(numbers)) <= asked.most:
        mark = f"m{number:09}"
        arguments = {"name": CALLED, "arguments": {"text": mark, "customer": "c" * 100}}
        params = arguments if asked.method == "tools/call" else {}
        body = await client.ask({"id": number, "method": asked.method, "params": params})
        answers.took_s.append(time.perf_counter() - began)
        answers.first_byte_s.append(client.first_byte - began)
        _check(asked, body, mark)


def _check(asked: Asked, body: bytes, mark: str) -> None:
    if asked.method == "tools/call":
        if mark.encode() not in body or b'"result"' not in body:
            raise WrongAnswer(repr(body[:200]))
        return
    if body.count(b'"inputSchema"') != asked.listed - asked.hidden:
        raise WrongAnswer(f"{body.count(b'inputSchema')} tools")
    if any(f'"{tool_name(number)}"'.encode() in body for number in range(1, asked.hidden + 1)):
        raise WrongAnswer("a hidden tool is listed")

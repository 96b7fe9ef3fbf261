"""A client on a raw socket: what it sends is exact, and what it got is told byte by byte."""

import asyncio
import json
import ssl
from dataclasses import dataclass
from typing import Any

from tests.build import KEY


@dataclass(frozen=True)
class Answer:
    """One response. `is_whole` is False when the connection ended before the framing said so."""

    status: int
    fields: list[tuple[str, str]]
    body: bytes
    is_whole: bool = True

    def values(self, name: str) -> list[str]:
        """All values of one field."""
        return [value for field, value in self.fields if field == name]

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)


def post(body: bytes, *fields: str, path: str = "/proxy/lab", key: str | None = KEY) -> bytes:
    """The bytes of a POST, with the usual fields of an MCP client before `fields`."""
    usual = ["Content-Type: application/json", "Accept: application/json, text/event-stream"]
    return request("POST", *usual, *fields, f"Content-Length: {len(body)}", path=path, key=key) + body


def request(method: str, *fields: str, path: str = "/proxy/lab", key: str | None = KEY) -> bytes:
    """The bytes of a request's head."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    if key is not None:
        lines.append(f"Authorization: Bearer {key}")
    return "\r\n".join([*lines, *fields]).encode("utf-8") + b"\r\n\r\n"


def call(tool: str, request_id: str = "7", **arguments: Any) -> bytes:
    """A `tools/call`; `request_id` is JSON text."""
    params = json.dumps({"name": tool, "arguments": arguments})
    return f'{{"jsonrpc":"2.0","id":{request_id},"method":"tools/call","params":{params}}}'.encode()


LIST = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'


class Client:
    """One connection to a port of 127.0.0.1."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(cls, port: int, tls: ssl.SSLContext | None = None) -> "Client":
        """Open a connection; with `tls` to https."""
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=1 << 24, ssl=tls))

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *_exc: object) -> None:
        self.writer.transport.abort()

    async def ask(self, data: bytes) -> Answer:
        """Send, and read one whole response."""
        self.writer.write(data)
        await self.writer.drain()
        return await self.answer()

    async def head(self) -> tuple[int, list[tuple[str, str]]]:
        """Read a status line and header lines."""
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("utf-8", "surrogateescape").split("\r\n")
        pairs = (line.partition(":") for line in lines[1:] if line)
        return int(lines[0].split()[1]), [(name.lower(), value.strip()) for name, _, value in pairs]

    async def answer(self) -> Answer:
        """Read one response to its end."""
        status, fields = await self.head()
        body = bytearray()
        try:
            async for piece in self._body(dict(fields)):
                body += piece
        except (asyncio.IncompleteReadError, ConnectionError) as exc:
            body += exc.partial if isinstance(exc, asyncio.IncompleteReadError) else b""
            return Answer(status, fields, bytes(body), is_whole=False)
        return Answer(status, fields, bytes(body))

    async def chunk(self) -> bytes:
        """Read one chunk of a chunked body; empty at its end."""
        size = int((await self.reader.readuntil(b"\r\n"))[:-2], 16)
        return (await self.reader.readexactly(size + 2))[:-2]

    async def _body(self, fields: dict[str, str]) -> Any:
        if "chunked" in fields.get("transfer-encoding", ""):
            while data := await self.chunk():
                yield data
        elif "content-length" in fields:
            yield await self.reader.readexactly(int(fields["content-length"]))


async def ask(port: int, data: bytes) -> Answer:
    """Send over a connection of its own, and read one response."""
    async with await Client.connect(port) as client:
        return await client.ask(data)

"""A downstream that costs next to nothing: `python -m bench.downstream PORT`.

Streamable HTTP as most servers of today speak it, with answers made beforehand. `?n=1000` in the address says how many
tools are listed; below `/slow` a call is answered by a stream whose first event comes at once and whose result comes
50 ms later; GET opens a stream on which nothing comes.
"""

import asyncio
import json
import socket
import sys
from functools import cache
from typing import Any, cast

import httptools

CALLED = "echo"
"""The tool that a load calls."""

_SLOW_S = 0.05

_DESCRIPTION = (
    "Looks through the orders of the last two years for those that fit all of the conditions given, and returns them "
    "newest first with their numbers, amounts and states. Give as many conditions as you know; an order number alone "
    "is enough. It changes nothing. For orders older than that ask the archive, which has a tool of its own."
)
_PADDING = "x" * 980


def tool_name(number: int) -> str:
    """The name of one tool of the list, from 0."""
    return CALLED if number == 0 else f"find_orders_{number:04}"


def _tool(number: int) -> dict[str, Any]:
    properties = {
        "text": {"type": "string", "description": "Words that stand in the order, at most 200 characters"},
        "customer": {"type": "string", "description": "Number of the customer, with or without its prefix"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
    }
    schema = {"type": "object", "properties": properties, "required": ["text"]}
    name = tool_name(number)
    return {"name": name, "title": f"Orders {number}", "description": _DESCRIPTION, "inputSchema": schema}


@cache
def listing(tools: int) -> str:
    """The JSON text of a list's result."""
    return json.dumps({"tools": [_tool(number) for number in range(tools)]}, separators=(",", ":"))


def _result(message: dict[str, Any], tools: int) -> str:
    match message["method"]:
        case "tools/call":
            text = f"{message['params']['arguments']['text']}:{_PADDING}"
            return json.dumps({"content": [{"type": "text", "text": text}], "isError": False})
        case "tools/list":
            return listing(tools)
        case "initialize":
            info = {"name": "bench", "version": "1"}
            return json.dumps({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info})
    return "{}"


class Connection(asyncio.Protocol):
    """One connection; requests on it are answered one after the other."""

    def __init__(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Of the protocol."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Of the protocol."""
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        """Of the parser."""
        self._url, self._body = url, b""

    def on_body(self, body: bytes) -> None:
        """Of the parser."""
        self._body += body

    def on_message_complete(self) -> None:
        """Of the parser."""
        if self._parser.get_method() != b"POST":
            self._transport.write(_head("200 OK", "text/event-stream", "Transfer-Encoding: chunked") + _chunk(": \n\n"))
            return
        message = json.loads(self._body)
        if "id" not in message:
            self._transport.write(_head("202 Accepted", "application/json", "Content-Length: 0"))
            return
        path, _, query = self._url.decode().partition("?n=")
        result = _result(message, int(query or 10))
        answer = f'{{"jsonrpc":"2.0","id":{message["id"]},"result":{result}}}'
        if path.endswith("/slow") and message["method"] == "tools/call":
            self._stream(answer)
        else:
            length = f"Content-Length: {len(answer)}"
            self._transport.write(_head("200 OK", "application/json", length) + answer.encode())

    def _stream(self, answer: str) -> None:
        begun = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"begun"}}'
        head = _head("200 OK", "text/event-stream", "Transfer-Encoding: chunked")
        self._transport.write(head + _chunk(f"data: {begun}\n\n"))
        end = _chunk(f"data: {answer}\n\n") + b"0\r\n\r\n"
        asyncio.get_running_loop().call_later(_SLOW_S, self._transport.write, end)


def _head(status: str, media_type: str, framing: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\n{framing}\r\n\r\n".encode()


def _chunk(text: str) -> bytes:
    return f"{len(text):x}\r\n{text}\r\n".encode()


async def _serve(port: int) -> None:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    server = await asyncio.get_running_loop().create_server(Connection, sock=listener, backlog=2_048)
    print("listening", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))

"""A script for the fake downstream that speaks as much MCP as an official client needs."""

import json
from typing import Any

from tests.fake_downstream import Connection, Received, answer


async def speaks_mcp(received: Received, connection: Connection) -> None:
    """A server with the tools a and b, on the revision that its client begins with."""
    message = json.loads(received.body) if received.body else {}
    server = {"capabilities": {"tools": {}}, "serverInfo": {"name": "lab", "version": "1"}}
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in "ab"]
    results: dict[str, Any] = {
        "initialize": {"protocolVersion": "2025-11-25", **server},
        "server/discover": {"supportedVersions": ["2026-07-28"], "resultType": "complete", **server},
        "tools/list": {"tools": tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"},
        "tools/call": {"content": [{"type": "text", "text": "done"}], "resultType": "complete"},
    }
    if received.head.startswith(b"GET"):
        await answer(b"", "", "405 Method Not Allowed")(received, connection)
    elif "id" not in message:
        await answer(b"", "", "202 Accepted")(received, connection)
    else:
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]}
        await answer(json.dumps(reply).encode())(received, connection)

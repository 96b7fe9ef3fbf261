"""A downstream on the official SDK, as a process of its own, that writes down all that reaches it.

Prints its port on one line when it listens. Every HTTP request and every run of a tool is one JSON line of `--journal`.
"""

import argparse
import json
from pathlib import Path

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.listening import tcp_listener


class Journal:
    """Appends facts to a file, one JSON object a line."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, **fact: str) -> None:
        """Write one line and close the file, so that a reader in another process sees it at once."""
        with self._path.open("a") as lines:
            lines.write(json.dumps(fact) + "\n")


def server(journal: Journal) -> MCPServer:
    """Three tools: one to read, one to destroy, one with a name that is not ASCII."""
    mcp = MCPServer("journal", log_level="ERROR")

    @mcp.tool(annotations=ToolAnnotations(read_only_hint=True))
    def safe(nonce: str) -> str:
        """Give the nonce back."""
        journal.note(tool="safe", nonce=nonce)
        return f"safe:{nonce}"

    @mcp.tool(annotations=ToolAnnotations(destructive_hint=True))
    def danger(nonce: str) -> str:
        """Destroy something."""
        journal.note(tool="danger", nonce=nonce)
        return f"danger:{nonce}"

    @mcp.tool(name="da\u00f1ger")
    def accented(nonce: str) -> str:
        """Destroy something, with an accent."""
        journal.note(tool="da\u00f1ger", nonce=nonce)
        return f"accented:{nonce}"

    return mcp


class Recording:
    """ASGI: notes each HTTP request before the application sees it."""

    def __init__(self, app: ASGIApp, journal: Journal) -> None:
        self._app = app
        self._journal = journal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self._journal.note(http=scope["method"], path=scope["path"])
        await self._app(scope, receive, send)


def main() -> None:
    """Serve on a free port of 127.0.0.1 until terminated."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--journal", type=Path, required=True)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--stateless", action="store_true")
    options = parser.parse_args()
    journal = Journal(options.journal)
    app = server(journal).streamable_http_app(json_response=options.json, stateless_http=options.stateless)
    listener = tcp_listener()
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(Recording(app, journal), log_level="error")).run(sockets=[listener])


if __name__ == "__main__":
    main()

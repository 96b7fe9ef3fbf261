"""A small code host as an MCP server, to put behind Sluicegate: eight tools, some of which one regrets.

Run `python -m examples.demo_server --port 8471`; its endpoint is /mcp. Everything is in memory and starts afresh with
the process. Written on the official SDK, the way any server is; it knows nothing of Sluicegate.
"""

import argparse
import itertools
import socket
from dataclasses import dataclass, field

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

READ = ToolAnnotations(read_only_hint=True, open_world_hint=False)
ADD = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
DESTROY = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
SEND = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True)


@dataclass
class Repository:
    """One repository of the code host."""

    files: dict[str, str]
    branches: set[str] = field(default_factory=lambda: {"main"})
    issues: dict[int, str] = field(default_factory=dict)
    open_pull_requests: dict[int, str] = field(default_factory=dict)


class CodeHost:
    """The state behind the tools."""

    def __init__(self) -> None:
        self.numbers = itertools.count(101)
        self.announcements: list[str] = []
        self.repositories = {
            "payments": Repository(
                files={"README.md": "# payments\nTakes money.\n", "ledger.py": "def post(entry):\n    ...\n"},
                branches={"main", "fix-rounding"},
                open_pull_requests={7: "fix-rounding"},
            ),
            "website": Repository(files={"index.html": "<h1>Hello</h1>\n"}, branches={"main", "new-logo"}),
        }

    def repository(self, name: str) -> Repository:
        """The repository of this name; a ToolError is what a model gets to read."""
        if name not in self.repositories:
            raise ToolError(f"no repository {name!r}; there are: {', '.join(sorted(self.repositories)) or 'none'}")
        return self.repositories[name]


def make_server() -> MCPServer:
    """The server with its tools over a fresh code host."""
    server: MCPServer = MCPServer("demo-code-host", version="1.0.0", log_level="ERROR")
    host = CodeHost()
    _add_reading_tools(server, host)
    _add_writing_tools(server, host)
    _add_destructive_tools(server, host)
    return server


def _add_reading_tools(server: MCPServer, host: CodeHost) -> None:
    @server.tool(annotations=READ)
    def list_repositories() -> list[str]:
        """List the names of all repositories."""
        return sorted(host.repositories)

    @server.tool(annotations=READ)
    def get_file(repository: str, path: str) -> str:
        """Get the text of one file."""
        files = host.repository(repository).files
        if path not in files:
            raise ToolError(f"no file {path!r} in {repository}; there are: {', '.join(sorted(files))}")
        return files[path]

    @server.tool(annotations=READ)
    def search_code(text: str) -> list[str]:
        """Search all files for a text; gives repository/path:line."""
        return [
            f"{name}/{path}:{number}"
            for name, repository in sorted(host.repositories.items())
            for path, content in sorted(repository.files.items())
            for number, line in enumerate(content.splitlines(), start=1)
            if text.lower() in line.lower()
        ]


def _add_writing_tools(server: MCPServer, host: CodeHost) -> None:
    @server.tool(annotations=ADD)
    def create_issue(repository: str, title: str) -> str:
        """Open an issue."""
        number = next(host.numbers)
        host.repository(repository).issues[number] = title
        return f"opened issue #{number} in {repository}: {title}"

    @server.tool(annotations=ADD)
    def merge_pull_request(repository: str, number: int) -> str:
        """Merge an open pull request into main."""
        branch = host.repository(repository).open_pull_requests.pop(number, None)
        if branch is None:
            raise ToolError(f"no open pull request #{number} in {repository}")
        return f"merged #{number} ({branch}) into main of {repository}"


def _add_destructive_tools(server: MCPServer, host: CodeHost) -> None:
    @server.tool(annotations=DESTROY)
    def delete_branch(repository: str, branch: str) -> str:
        """Delete a branch. This cannot be undone."""
        branches = host.repository(repository).branches
        if branch == "main" or branch not in branches:
            raise ToolError(f"no branch {branch!r} that can be deleted in {repository}")
        branches.remove(branch)
        return f"deleted branch {branch} of {repository}"

    @server.tool(annotations=DESTROY)
    def delete_repository(repository: str) -> str:
        """Delete a repository with all it holds. This cannot be undone."""
        host.repository(repository)
        del host.repositories[repository]
        return f"deleted repository {repository}"

    @server.tool(annotations=SEND)
    def send_announcement(text: str) -> str:
        """Send a message to everybody in the company."""
        host.announcements.append(text)
        return f"sent to 4,210 people (announcement {len(host.announcements)} today)"


def main() -> None:
    """Serve until told to stop."""
    options = _options()
    listener = _listener(options.host, options.port)
    port = listener.getsockname()[1]
    app = make_server().streamable_http_app(
        json_response=options.json, stateless_http=options.stateless, host=options.host
    )
    print(f"listening on http://{options.host}:{port}/mcp", flush=True)
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


def _listener(host: str, port: int) -> socket.socket:
    # The protocol is named so that asyncio switches Nagle's algorithm off: an answer in two writes would wait 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    listener.listen()
    return listener


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="demo_server", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1", help="IPv4 address to listen on")
    parser.add_argument("--port", type=int, default=8471, help="port to listen on, 0 for a free one")
    parser.add_argument("--json", action="store_true", help="answer with application/json, not an event stream")
    parser.add_argument("--stateless", action="store_true", help="keep no session between requests")
    return parser.parse_args()


if __name__ == "__main__":
    main()

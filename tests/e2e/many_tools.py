"""A downstream on the official SDK with as many tools as one wants, as a process of its own. Prints its port."""

import argparse

import uvicorn
from mcp.server.mcpserver import MCPServer

from tests.listening import tcp_listener


def server(count: int) -> MCPServer:
    """Tools `tool_0000`, `tool_0001`, ..., that do nothing."""
    mcp = MCPServer("many", log_level="ERROR")
    for number in range(count):
        name = f"tool_{number:04}"

        def run(nonce: str = "", name: str = name) -> str:
            return f"{name}:{nonce}"

        mcp.add_tool(run, name=name, description=f"Does the thing number {number}.")
    return mcp


def main() -> None:
    """Serve on a free port of 127.0.0.1 until terminated."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--journal")
    parser.add_argument("--tools", type=int, default=100)
    app = server(parser.parse_args().tools).streamable_http_app(json_response=True, stateless_http=True)
    listener = tcp_listener()
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])


if __name__ == "__main__":
    main()

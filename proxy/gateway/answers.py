"""What the gateway's tools and methods answer, as decoded JSON, in the shapes of the official models.

Source: MCP 2026-07-28 schema, by `mcp_types`. The result of a tool carries `resultType` on every revision: 2026-07-28
demands it, older clients pass over it.
"""

from collections.abc import Mapping
from typing import Any

from mcp_types import CallToolResult, Implementation, InitializeResult, ServerCapabilities, TextContent, ToolsCapability
from pydantic import BaseModel

_INSTRUCTIONS = (
    "Find a tool with discover_servers by saying what you want to do, then run it with execute_tool, giving the server "
    "and tool that were found and arguments that fit its inputSchema."
)

_CAPABILITIES = ServerCapabilities(tools=ToolsCapability(list_changed=False))

Json = Mapping[str, Any]


class Identity:
    """Who we are. `version` is the product's."""

    def __init__(self, version: str) -> None:
        self._info = Implementation(name="sluicegate", title="Sluicegate", version=version)

    def initialized(self, revision: str) -> Json:
        """The result of `initialize`."""
        return dumped(
            InitializeResult(
                protocol_version=revision,
                capabilities=_CAPABILITIES,
                server_info=self._info,
                instructions=_INSTRUCTIONS,
            )
        )

    def discovered(self, versions: tuple[str, ...], ttl_ms: int) -> Json:
        """The result of `server/discover`."""
        return {
            "supportedVersions": list(versions),
            "capabilities": dumped(_CAPABILITIES),
            "instructions": _INSTRUCTIONS,
            "ttlMs": ttl_ms,
            "cacheScope": "private",
            "resultType": "complete",
            "_meta": {"io.modelcontextprotocol/serverInfo": dumped(self._info)},
        }


def text_result(text: str, *, structured: Json | None = None) -> Json:
    """A result that a model reads, and perhaps its structured form for a program."""
    result = CallToolResult(content=[TextContent(type="text", text=text)])
    return {**dumped(result), **({} if structured is None else {"structuredContent": structured})}


def error_result(text: str) -> Json:
    """A failure that a model may read and act upon."""
    return dumped(CallToolResult(content=[TextContent(type="text", text=text)], is_error=True))


def dumped(model: BaseModel) -> dict[str, Any]:
    """The model as it goes on the wire."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)

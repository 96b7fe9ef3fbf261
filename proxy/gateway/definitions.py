"""The gateway's own tools as a client lists them, and their arguments as models.

Source: DESIGN 6. The schema that a client sees is the one that arguments are checked by.
"""

from typing import Annotated, Any, TypeVar

from mcp_types import Tool, ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proxy.gateway.answers import dumped

DISCOVER = "discover_servers"
EXECUTE = "execute_tool"
OWN = frozenset({DISCOVER, EXECUTE, "admin_list_tools", "admin_set_tool"})
"""Names that no downstream's tool can be run by through `execute_tool`: nothing runs itself."""


class BadArguments(Exception):
    """The arguments do not fit; one sentence that names the member, for a model to mend."""


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)


ArgumentsT = TypeVar("ArgumentsT", bound=_Arguments)


class DiscoverArguments(_Arguments):
    """Of `discover_servers`."""

    query: Annotated[str, Field(description="What you want to do, in plain words.", min_length=1, max_length=1000)]
    limit: Annotated[int, Field(description="The most tools to return.", ge=1, le=100)] = 10
    server: Annotated[str | None, Field(description="Only tools of this server: its id or path.", max_length=200)] = (
        None
    )
    include_disabled: Annotated[
        bool, Field(description="Also show tools that cannot be used, with the reason; for owners and admins.")
    ] = False


class ExecuteArguments(_Arguments):
    """Of `execute_tool`."""

    server: Annotated[str, Field(description="The server, as discover_servers gives it.", min_length=1, max_length=200)]
    tool: Annotated[str, Field(description="The exact name of the tool.", min_length=1, max_length=1000)]
    arguments: Annotated[dict[str, Any], Field(description="Arguments that fit the tool's inputSchema.")] = {}


_FOUND = {
    "type": "object",
    "properties": {
        "tools": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "server": {"type": "string"},
                    "serverId": {"type": "string"},
                    "serverName": {"type": "string"},
                    "tool": {"type": "string"},
                    "description": {"type": "string"},
                    "inputSchema": {"type": ["object", "null"]},
                    "score": {"type": "number"},
                    "proxyUrl": {"type": "string"},
                    "enabled": {"type": "boolean"},
                    "reason": {"type": "string"},
                    "cut": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["server", "serverId", "serverName", "tool", "description", "score", "proxyUrl", "enabled"],
            },
        },
        "degraded": {"type": "boolean"},
        "truncated": {"type": "boolean"},
    },
    "required": ["tools", "degraded", "truncated"],
}

TOOLS: tuple[dict[str, Any], ...] = tuple(
    map(
        dumped,
        (
            Tool(
                name=DISCOVER,
                title="Discover tools",
                description=(
                    "Search all servers for tools by what they do. Returns the best matches with their input schemas; "
                    "every one of them can be run with execute_tool."
                ),
                input_schema=DiscoverArguments.model_json_schema(),
                output_schema=_FOUND,
                annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
            ),
            Tool(
                name=EXECUTE,
                title="Run a tool",
                description="Run a tool that discover_servers found, on its server, with these arguments.",
                input_schema=ExecuteArguments.model_json_schema(),
                annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True),
            ),
        ),
    )
)
"""In the order in which they are listed."""


def discover_arguments(given: Any) -> DiscoverArguments:
    """Raises BadArguments."""
    return _read(DiscoverArguments, given)


def execute_arguments(given: Any) -> ExecuteArguments:
    """Raises BadArguments."""
    return _read(ExecuteArguments, given)


def _read(model: type[ArgumentsT], given: Any) -> ArgumentsT:
    if not isinstance(given, dict):
        raise BadArguments("arguments: must be an object")
    try:
        return model.model_validate(given)
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "arguments"
        raise BadArguments(f"{where}: {first['msg']}") from None  # the cause would carry the input

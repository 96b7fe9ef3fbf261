"""The registry's values as the API shows them."""

from dataclasses import asdict
from typing import Any, Literal

from registry.api.faults import camel
from registry.api.models import (
    ActivityRow,
    Function,
    KeyDetail,
    KeyGrant,
    MadeKeyDetail,
    ServerDetail,
    ServerSummary,
    ToolFunction,
)
from registry.keys import MadeKey
from registry.model import ALL_TOOLS, Activity, ApiKey, Server, Tool


def summary(server: Server, public_url: str) -> ServerSummary:
    """A server in a list."""
    return ServerSummary(**_shared(server, public_url))


def detail(server: Server, public_url: str, ignored: frozenset[str] | None = None) -> ServerDetail:
    """A server whole; `ignored` only where a PATCH is answered."""
    return ServerDetail(
        **_shared(server, public_url),
        tool_functions=dict(_tool_function(tool, server.name) for tool in server.tools),
        disabled_tools=sorted(server.policy.disabled_tools),
        retired_disabled_tools=sorted(server.policy.retired_disabled_tools),
        read_only_tools=sorted(server.policy.read_only_tools),
        ignored_tools=None if ignored is None else sorted(ignored),
    )


def _shared(server: Server, public_url: str) -> dict[str, Any]:
    return {
        "id": server.id,
        "server_name": server.name,
        "path": server.path,
        "url": server.url,
        "type": server.type,
        "title": server.title,
        "description": server.description,
        "enabled": server.policy.enabled,
        "revision": server.policy.revision,
        "refreshed_at": server.refreshed_at,
        "refresh_error": server.refresh_error,
        "proxy_url": f"{public_url.rstrip('/')}/proxy{server.path}",
        "fault": server.policy.fault,
    }


def _tool_function(tool: Tool, server_name: str) -> tuple[str, ToolFunction]:
    name = f"{tool.name}_mcp_{server_name}"
    function = Function(name=name, description=tool.description, parameters=dict(tool.input_schema))
    return name, ToolFunction(function=function, mcp_tool_name=tool.name)


def key(shown: ApiKey) -> KeyDetail:
    """A key without its text."""
    return KeyDetail(**_key_fields(shown))


def made_key(made: MadeKey) -> MadeKeyDetail:
    """A new key, with its text."""
    return MadeKeyDetail(**_key_fields(made.key), key=made.secret)


def _key_fields(shown: ApiKey) -> dict[str, Any]:
    return {
        "id": shown.id,
        "name": shown.name,
        "user": shown.user,
        "groups": sorted(shown.groups),
        "roles": sorted(shown.roles),
        "scopes": sorted(shown.scopes),
        "tools": _grants(shown),
        "enabled": shown.enabled,
        "created_at": shown.created_at,
        "created_by": shown.created_by,
        "expires_at": shown.expires_at,
    }


def _grants(shown: ApiKey) -> Literal["*"] | list[KeyGrant]:
    if shown.tools == ALL_TOOLS:
        return ALL_TOOLS
    return [
        KeyGrant(server=grant.server_id, tools=ALL_TOOLS if grant.tools == ALL_TOOLS else sorted(grant.tools))
        for grant in shown.tools
    ]


def activity(row: Activity) -> ActivityRow:
    """One row; what changed is spelled as everywhere on the API."""
    return ActivityRow(**asdict(row) | {"before": _camel(row.before), "after": _camel(row.after)})


def _camel(value: Any) -> Any:
    return {camel(name): item for name, item in value.items()} if isinstance(value, dict) else value

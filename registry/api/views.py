"""The registry's values as the API shows them."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal

from registry import budget
from registry.api.faults import camel
from registry.api.models import (
    ActivityRow,
    FoundTool,
    Function,
    KeyDetail,
    KeyGrant,
    MadeKeyDetail,
    MirrorAnswer,
    MirrorDetail,
    ObservedTool,
    PermissionDetail,
    PermissionList,
    RegistrySettingsDetail,
    SearchAnswer,
    ServerDetail,
    ServerSummary,
    ToolFunction,
)
from registry.discovery import Answer, Found
from registry.entries import Server, Tool
from registry.keys import MadeKey
from registry.mirroring import MirrorStatus
from registry.mirrors import MirrorReport
from registry.model import ALL_TOOLS, AccessEntry, ApiKey, ServerPolicy
from registry.permissions import ROLES
from registry.rows import Activity
from registry.sightings import Sighting


def summary(server: Server, public_url: str) -> ServerSummary:
    """A server in a list."""
    return ServerSummary(**_shared(server, public_url))


def detail(
    server: Server,
    public_url: str,
    ignored: frozenset[str] | None = None,
    observed: Sequence[Sighting] | None = None,
) -> ServerDetail:
    """A server whole; `ignored` only where a PATCH is answered, `observed` only where it was asked for."""
    return ServerDetail(
        **_shared(server, public_url),
        tags=list(server.tags),
        registry_settings=_settings(server.policy),
        tool_functions=dict(_tool_function(tool, server.name) for tool in server.tools),
        disabled_tools=sorted(server.policy.disabled_tools),
        retired_disabled_tools=sorted(server.policy.retired_disabled_tools),
        read_only_tools=sorted(server.policy.read_only_tools),
        ignored_tools=None if ignored is None else sorted(ignored),
        observed_tools=None if observed is None else [ObservedTool(**asdict(one)) for one in observed],
    )


def _settings(policy: ServerPolicy) -> RegistrySettingsDetail:
    return RegistrySettingsDetail(
        trusted=policy.trusted,
        list_ttl_ms=policy.passing.list_ttl_ms,
        downstream_timeout_s=policy.passing.downstream_timeout_s,
        pass_cookies=policy.passing.passes_cookies,
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
        "proxy_url": proxy_url(public_url, server.path),
        "credentials": dict(server.policy.credentials),
        "fault": server.policy.fault,
    }


def _tool_function(tool: Tool, server_name: str) -> tuple[str, ToolFunction]:
    name = f"{tool.name}_mcp_{server_name}"
    function = Function(name=name, description=tool.description, parameters=dict(tool.input_schema))
    return name, ToolFunction(function=function, mcp_tool_name=tool.name)


_ROLES = {bits: role for role, bits in ROLES.items()}


def permissions(entries: Sequence[AccessEntry]) -> PermissionList:
    """The access entries of a server."""
    return PermissionList(permissions=[_permission(entry) for entry in entries])


def _permission(entry: AccessEntry) -> PermissionDetail:
    return PermissionDetail(
        principal_type=entry.principal_type.value,
        principal_id=entry.principal_id or None,
        perm_bits=int(entry.permissions),
        role=_ROLES.get(entry.permissions),
        expired_at=entry.expires_at,
    )


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
    """The names of what was recorded, those of listed entries too; within anything else, names are its own."""
    if isinstance(value, list):
        return [_camel(item) for item in value]
    if isinstance(value, dict):
        return {camel(name): _camel(item) if isinstance(item, list) else item for name, item in value.items()}
    return value


def search_answer(answer: Answer, public_url: str) -> SearchAnswer:
    """What was found, within the size of an answer."""
    shapes = tuple(budget.shown(found.tool for found in answer.found))
    tools = [_found(found, shape, public_url) for found, shape in zip(answer.found, shapes, strict=True)]
    return SearchAnswer(tools=tools, degraded=answer.degraded, truncated=any(shape.cut for shape in shapes))


def _found(found: Found, shape: budget.Shown, public_url: str) -> FoundTool:
    return FoundTool(
        server=found.server.path,
        server_id=found.server.id,
        server_name=found.server.name,
        tool=found.tool.name,
        description=shape.description,
        input_schema=None if shape.input_schema is None else dict(shape.input_schema),
        score=round(found.score, 6),
        proxy_url=proxy_url(public_url, found.server.path),
        enabled=found.reason is None,
        reason=found.reason,
        cut=list(shape.cut),
    )


def mirrors(report: MirrorReport) -> MirrorAnswer:
    """How the mirrors are."""
    return MirrorAnswer(
        holder=report.lease.holder or None,
        mirrors=[_mirror(status) for status in report.lease.statuses],
        local=_mirror(report.local),
    )


def _mirror(status: MirrorStatus) -> MirrorDetail:
    return MirrorDetail(**asdict(status))


def proxy_url(public_url: str, path: str) -> str:
    """Where clients reach a server straight through the proxy."""
    return f"{public_url.rstrip('/')}/proxy{path}"

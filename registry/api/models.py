"""The shapes of what the API answers; `bodies` has those of what it is asked.

Source: DESIGN 5 (ServerDetailResponse, keys). Members are camelCase on the wire; an unknown member is refused.
"""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from registry.api.faults import camel


class Outgoing(BaseModel):
    """A response body."""

    model_config = ConfigDict(alias_generator=camel, populate_by_name=True, frozen=True)


class Function(Outgoing):
    """A tool for a model, as existing registries describe it."""

    name: str
    description: str
    parameters: dict[str, Any]


class ToolFunction(Outgoing):
    """One entry of `toolFunctions`."""

    type: Literal["function"] = "function"
    function: Function
    mcp_tool_name: str


class ServerSummary(Outgoing):
    """A server in a list. `fault` is there only when its stored policy cannot be read: it is refused then."""

    id: str
    server_name: str
    path: str
    url: str
    type: str
    title: str
    description: str
    enabled: bool
    revision: int
    refreshed_at: datetime | None
    refresh_error: str | None
    proxy_url: str
    credentials: dict[str, str] = Field(default={}, exclude_if=lambda templates: not templates)
    fault: str | None = Field(default=None, exclude_if=lambda fault: fault is None)


class RegistrySettingsDetail(Outgoing):
    """How a server is treated; null: as the settings of Sluicegate say."""

    trusted: bool
    list_ttl_ms: int | None
    downstream_timeout_s: float | None
    pass_cookies: bool


class ObservedTool(Outgoing):
    """A tool that the downstream listed to some caller and not to the registry."""

    name: str
    first_seen_at: datetime


class ServerDetail(ServerSummary):
    """A server whole. `ignoredTools` is there only in the answer to a PATCH.

    `observedTools` only in the answer to a GET of its tools, for who may switch them.
    """

    tags: list[str]
    registry_settings: RegistrySettingsDetail
    tool_functions: dict[str, ToolFunction]
    disabled_tools: list[str]
    retired_disabled_tools: list[str]
    read_only_tools: list[str]
    ignored_tools: list[str] | None = Field(default=None, exclude_if=lambda names: names is None)
    observed_tools: list[ObservedTool] | None = Field(default=None, exclude_if=lambda tools: tools is None)


class ServerList(Outgoing):
    """GET /servers."""

    servers: list[ServerSummary]


class PermissionDetail(Outgoing):
    """One access entry. `role` is the name of its bits, null for a mixture that has none."""

    principal_type: str
    principal_id: str | None
    perm_bits: int
    role: str | None
    expired_at: datetime | None


class PermissionList(Outgoing):
    """GET and PUT /servers/{server}/permissions."""

    permissions: list[PermissionDetail]


class KeyGrant(Outgoing):
    """Tools of one server that a key may use."""

    server: str
    tools: Literal["*"] | list[str]


class KeyDetail(Outgoing):
    """A key without its text."""

    id: str
    name: str
    user: str
    groups: list[str]
    roles: list[str]
    scopes: list[str]
    tools: Literal["*"] | list[KeyGrant]
    enabled: bool
    created_at: datetime
    created_by: str
    expires_at: datetime | None


class MadeKeyDetail(KeyDetail):
    """POST /keys: the one time that a key's text is shown."""

    key: str


class KeyList(Outgoing):
    """GET /keys."""

    keys: list[KeyDetail]


class ActivityRow(Outgoing):
    """One change."""

    at: datetime
    actor: str
    action: str
    server_id: str | None
    subject: str | None
    before: Any
    after: Any
    reason: str | None
    revision: int | None
    request_id: str | None


class ActivityList(Outgoing):
    """GET /activity, newest first."""

    activity: list[ActivityRow]


class FoundTool(Outgoing):
    """One tool that was found. `server` is its path. `reason` is there only for a tool that cannot be used now.

    `inputSchema` is null, and `cut` names it, where the answer would have been too large.
    """

    server: str
    server_id: str
    server_name: str
    tool: str
    description: str
    input_schema: dict[str, Any] | None
    score: float
    proxy_url: str
    enabled: bool
    reason: str | None = Field(default=None, exclude_if=lambda reason: reason is None)
    cut: list[str] = Field(default=[], exclude_if=lambda names: not names)


class SearchAnswer(Outgoing):
    """GET /discovery/search, best first. `degraded`: the fallback answered. `truncated`: something was cut."""

    tools: list[FoundTool]
    degraded: bool
    truncated: bool


class MirrorDetail(Outgoing):
    """One mirror as its replica last told."""

    name: str
    state: str
    error: str | None
    objects: int
    drift: int
    pending: int
    lag_s: float
    last_lag_s: float
    missing: int
    reconciled_at: datetime | None


class MirrorAnswer(Outgoing):
    """GET /mirror. `holder` is the replica that mirrors, null when none does; `local` is the answering one's index."""

    holder: str | None
    mirrors: list[MirrorDetail]
    local: MirrorDetail

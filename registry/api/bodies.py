"""The shapes of what the API is asked; `models` has those of its answers.

Source: DESIGN 5. Members are camelCase on the wire; an unknown member is refused.
"""

from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from registry.api.faults import camel
from registry.entries import ServerType
from registry.model import PrincipalType

Text = Annotated[str, Field(min_length=1, max_length=200)]
LongText = Annotated[str, Field(max_length=10_000)]


class Incoming(BaseModel):
    """A request body."""

    model_config = ConfigDict(alias_generator=camel, extra="forbid", frozen=True, hide_input_in_errors=True)


class NewServerBody(Incoming):
    """POST /servers."""

    server_name: Text
    path: Text
    type: ServerType
    url: Annotated[str, Field(min_length=1, max_length=8000)]
    title: LongText = ""
    description: LongText = ""
    tags: list[Text] = []
    credentials: dict[str, str] = {}
    allow_duplicate: bool = False


class RegistrySettingsBody(Incoming):
    """How a server is treated. What is left out stays; null takes the setting of Sluicegate again."""

    trusted: bool = False
    list_ttl_ms: Annotated[int, Field(ge=0, le=86_400_000)] | None = None
    downstream_timeout_s: Annotated[float, Field(gt=0, le=86_400)] | None = None
    pass_cookies: bool = False


class ServerPatchBody(Incoming):
    """PATCH /servers/{server}: at least one member; what is left out stays as it is.

    `credentials` replaces all static credentials, header field by template.
    """

    title: LongText = ""
    description: LongText = ""
    tags: list[Text] = []
    url: Annotated[str, Field(min_length=1, max_length=8000)] = ""
    path: Text = ""
    enabled: bool = True
    registry_settings: RegistrySettingsBody = RegistrySettingsBody()
    credentials: dict[str, str] = {}
    reason: LongText | None = None


class ToolsBody(Incoming):
    """PATCH /servers/{server}/tools: at least one list; a member that is left out leaves its list as it is."""

    disabled_tools: list[str] = []
    read_only_tools: list[str] = []
    reason: LongText | None = None


class SwitchBody(Incoming):
    """PUT /servers/{server}/tools/{tool}."""

    enabled: bool
    reason: LongText | None = None


class ToolsOfBody(Incoming):
    """Tools of one server, by id or path, that a key may use."""

    server: Text
    tools: Literal["*"] | list[str]


class PermissionBody(Incoming):
    """One access entry. `permBits` adds up VIEW 1, EDIT 2, DELETE 4, SHARE 8; `principalId` is left out for public.

    `role` can stand for the bits, or beside them when it says the same, as in what GET answers.
    """

    principal_type: PrincipalType
    principal_id: Text | None = None
    perm_bits: Annotated[int, Field(ge=1, le=15)] | None = None
    role: Literal["viewer", "editor", "owner"] | None = None
    expired_at: AwareDatetime | None = None


class PermissionsBody(Incoming):
    """PUT /servers/{server}/permissions: all entries of the server."""

    permissions: list[PermissionBody]
    reason: LongText | None = None


class NewKeyBody(Incoming):
    """POST /keys."""

    name: Text
    scopes: list[str] = []
    user: Text | None = None
    groups: list[Text] | None = None
    roles: list[Text] | None = None
    expires_at: AwareDatetime | None = None
    tools: Literal["*"] | list[ToolsOfBody] = "*"


class KeyPatchBody(Incoming):
    """PATCH /keys/{id}."""

    enabled: bool
    reason: LongText | None = None

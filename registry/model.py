"""The registry's nouns as values.

Source: DESIGN 2 (scopes, bits), DESIGN 5 (documents). Every value is immutable. Ids are strings here, whatever
their type in a store. Times are aware datetimes in UTC, by the store's clock.
"""

import enum
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

ALL_TOOLS: Literal["*"] = "*"
"""A key's tool list that names every tool of every server."""


class Scope(enum.StrEnum):
    """What a key may be used for at all; a permission says on which server."""

    MCP = "mcp"
    READ = "read"
    WRITE = "write"
    MANAGE = "manage"
    ADMIN = "admin"


DEFAULT_SCOPES = frozenset({Scope.MCP, Scope.READ, Scope.WRITE})
"""What an agent needs. `manage` is not among them: an agent's key must not undo its owner's switch."""


class Permission(enum.IntFlag):
    """Bits of one access entry on one server, as existing registries store them."""

    NONE = 0
    VIEW = 1
    EDIT = 2
    DELETE = 4
    SHARE = 8


VIEWER = Permission.VIEW
EDITOR = Permission.VIEW | Permission.EDIT
OWNER = Permission.VIEW | Permission.EDIT | Permission.DELETE | Permission.SHARE


class PrincipalType(enum.StrEnum):
    """Whom an access entry names."""

    USER = "user"
    GROUP = "group"
    ROLE = "role"
    PUBLIC = "public"


@dataclass(frozen=True, slots=True)
class Grant:
    """Tools of one server that a key may use; `tools` is `"*"` or exact names."""

    server_id: str
    tools: frozenset[str] | Literal["*"]


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as stored: never the secret, only who holds it and what it may do.

    `hash` is the lower-case hex SHA-256 of the whole key text. `expires_at` None means never.
    `tools` is `"*"` or the grants; an empty tuple means no tool.
    """

    id: str
    hash: str
    name: str
    user: str
    groups: frozenset[str]
    roles: frozenset[str]
    scopes: frozenset[Scope]
    enabled: bool
    created_at: datetime
    created_by: str
    expires_at: datetime | None = None
    tools: tuple[Grant, ...] | Literal["*"] = ALL_TOOLS

    @property
    def is_anonymous(self) -> bool:
        """True for what stands for the key of a caller who has none."""
        return not self.hash

    @property
    def actor(self) -> str:
        """Who is named in an activity row: the user, else `key:<id>`."""
        return self.user or f"key:{self.id}"


@dataclass(frozen=True, slots=True)
class AccessEntry:
    """One row of `aclentries`: these bits on this server for this principal.

    `principal_id` is the empty string for `public`. `expires_at` None means never.
    """

    server_id: str
    principal_type: PrincipalType
    principal_id: str
    permissions: Permission
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Passing:
    """How exchanges with one server pass, where that differs from our settings; None: as the settings say.

    `passes_cookies`: `Cookie` and `Set-Cookie` pass, with paths below the server's own.
    """

    list_ttl_ms: int | None = None
    downstream_timeout_s: float | None = None
    passes_cookies: bool = False


@dataclass(frozen=True, slots=True)
class ServerPolicy:
    """The fields of a server that decide, and where its requests go.

    `fault` is a sentence when the stored policy cannot be read (DESIGN 5): such a server is refused.
    `declared_read_only` are the tools whose own annotation says `readOnlyHint: true`; it counts only when `trusted`.
    `credentials` are header fields with templates that name variables (`registry.references`), never a secret.
    `revision` counts changes made through Sluicegate; writers of another program do not bump it.
    """

    server_id: str
    path: str
    url: str
    enabled: bool = True
    disabled_tools: frozenset[str] = frozenset()
    retired_disabled_tools: frozenset[str] = frozenset()
    read_only_tools: frozenset[str] = frozenset()
    declared_read_only: frozenset[str] = frozenset()
    trusted: bool = False
    credentials: tuple[tuple[str, str], ...] = ()
    passing: Passing = Passing()
    revision: int = 0
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Switch:
    """A global switch of an operator: this tool is off, on one server or (None) on all."""

    server_id: str | None
    tool: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What one read of the authority says about one key and one server.

    `now` is the store's clock in the same read. `entries` are those of `server` that name the key's user, groups,
    roles, or the public. None means: not there.
    """

    now: datetime
    key: ApiKey | None = None
    server: ServerPolicy | None = None
    entries: tuple[AccessEntry, ...] = ()
    switches: tuple[Switch, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """Which facts are wanted.

    `key_hash` is the lower-case hex SHA-256 of the presented key, None for a caller without one. `server` is an id,
    or a path when it starts with `/`; None when no server is concerned.
    """

    key_hash: str | None
    server: str | None = None

"""What the registry stores of a server for people and for search: its texts, its tools, how they were last fetched.

Source: DESIGN 5. What decides is in `registry.model`.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from registry.model import ServerPolicy


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of a snapshot, as the downstream described it.

    `definition` is the whole decoded `Tool` object, unknown members included.
    """

    name: str
    definition: Mapping[str, Any] = field(default_factory=dict)

    @property
    def description(self) -> str:
        """The text for a model, empty when there is none."""
        text = self.definition.get("description")
        return text if isinstance(text, str) else ""

    @property
    def input_schema(self) -> Mapping[str, Any]:
        """The JSON schema of the arguments, `{}` when the downstream gave none."""
        schema = self.definition.get("inputSchema")
        return schema if isinstance(schema, Mapping) else {}

    @property
    def declares_read_only(self) -> bool:
        """True when the tool's own annotation says `readOnlyHint: true`."""
        annotations = self.definition.get("annotations")
        return isinstance(annotations, Mapping) and annotations.get("readOnlyHint") is True


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The outcome of one complete refresh: all pages of `tools/list`, and the declared capabilities."""

    tools: tuple[Tool, ...]
    capabilities: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        """The exact names of the tools."""
        return frozenset(tool.name for tool in self.tools)


class ServerType(enum.StrEnum):
    """The transport that a downstream speaks."""

    STREAMABLE_HTTP = "streamable-http"
    SSE = "sse"


@dataclass(frozen=True, slots=True)
class Server:
    """A registered server, whole.

    `tools` are those of the last good snapshot, in its order. `snapshot_good` is True when the last refresh succeeded
    and was complete: only then may an unknown name be dropped. `refreshed_at` None: never refreshed with success.
    """

    id: str
    name: str
    path: str
    url: str
    type: str
    policy: ServerPolicy
    title: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    snapshot_good: bool = False
    refreshed_at: datetime | None = None
    refresh_error: str | None = None

    @property
    def tool_names(self) -> frozenset[str]:
        """The exact names of the current tools."""
        return frozenset(tool.name for tool in self.tools)


@dataclass(frozen=True, slots=True)
class NewServer:
    """What a registrant gives. `allows_duplicate`: also when another server has the same downstream."""

    name: str
    path: str
    url: str
    type: ServerType
    title: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    credentials: tuple[tuple[str, str], ...] = ()
    allows_duplicate: bool = False


@dataclass(frozen=True, slots=True)
class ServerEdit:
    """What shall become of a server; None leaves a field as it is.

    `passing` has those fields of `registry.model.Passing` that shall change, by name. `credentials` are header fields
    and templates.
    """

    title: str | None = None
    description: str | None = None
    tags: tuple[str, ...] | None = None
    url: str | None = None
    path: str | None = None
    enabled: bool | None = None
    trusted: bool | None = None
    passing: Mapping[str, Any] | None = None
    credentials: tuple[tuple[str, str], ...] | None = None

    def given(self) -> dict[str, Any]:
        """The fields that shall change, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

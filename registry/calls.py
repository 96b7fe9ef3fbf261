"""One call of a tool through the gateway, as values.

Source: MCP 2026-07-28 server/tools; DESIGN 6 (execute_tool).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


class Progress(Protocol):
    """Hears of `notifications/progress`."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """`total` and `message` are None when the downstream tells none."""
        ...


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What is sent, beside the permit that says where and which tool.

    `retry` holds `inputResponses` and `requestState` as the client sent them (multi round-trip requests), else
    nothing. `meta` are members of `_meta` that pass on, such as trace context. `session` names whose downstream session
    may be used: two callers that must not share one have two names. `authorization` is the caller's own credential for
    that server, None without one.
    """

    arguments: Mapping[str, Any]
    session: str
    authorization: str | None = field(default=None, repr=False)
    retry: Mapping[str, Any] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallResult:
    """The decoded `result` as it came: a CallToolResult, or one whose `resultType` asks for more."""

    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallError:
    """The downstream's JSON-RPC error."""

    code: int
    message: str
    data: Any = None

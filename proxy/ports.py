"""What the data plane needs from the outside, and the values that cross.

`Fields` are header lines in their order, names as they came; comparing them ignores case.
"""

import enum
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from registry.access import Permit, Refusal
from registry.calls import CallError, CallResult, Progress, ToolCall
from registry.model import Asked, Facts, ServerPolicy

Fields = tuple[tuple[str, str], ...]


class RefusalStyle(enum.StrEnum):
    """How a refused `tools/call` is answered."""

    UNKNOWN = "unknown"
    """As a server without that tool would."""
    EXPLAIN = "explain"
    """With a result that says in words why, for the model."""
    LEGACY = "legacy"
    """With the error -32003 of older gateways."""


@dataclass(frozen=True, slots=True)
class DataPlaneSettings:
    """Limits of the data plane; defaults as DESIGN says."""

    max_body_bytes: int = 4 * 1024 * 1024
    """Of one request; the official SDKs' own cap, so that nothing they accept is refused here."""
    body_timeout_s: float = 30.0
    max_event_bytes: int = 16 * 1024 * 1024
    """Of one event, or of one JSON answer that may hold a tool list: what we are ready to hold. A security limit."""
    connect_timeout_s: float = 5.0
    downstream_timeout_s: float = 300.0
    """To the first byte of an answer; a running stream has no limit."""
    public_path: str = ""
    """What stands before our paths as clients see them, without a slash at its end."""
    refusal_style: RefusalStyle = RefusalStyle.UNKNOWN
    list_ttl_ms: int = 0
    """The most that `ttlMs` of a tool list may say; 0: stale at once, so that a switch shows in the next list."""
    max_streams_per_key: int = 1_000
    """Streams that nobody waits for the end of: GET, and `subscriptions/listen`."""
    pseudonym: str = "sluicegate"
    """How all replicas of a deployment call themselves in `Via`, and no other deployment does; lower case."""


@dataclass(frozen=True, slots=True)
class Forward:
    """A request that may go downstream: made of permits, by an exchange alone.

    `query` is the client's raw query without `?`, empty when there is none; it is appended to the configured one.
    `fields` are already those for the downstream, `Host` and framing excepted. `body` None: no body is sent.
    """

    permits: tuple[Permit, ...]
    method: str
    query: str
    fields: Fields
    body: bytes | None

    def __post_init__(self) -> None:
        if not self.permits:
            raise TypeError("a forwarded request is made of permits")

    @property
    def server(self) -> ServerPolicy:
        """Where it goes; all permits of one exchange are for one server."""
        return self.permits[0].server


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that we author. `refusals` are those it tells of, for the log."""

    status: int
    fields: Fields
    body: bytes = b""
    refusals: tuple[Refusal, ...] = ()


class Policies(Protocol):
    """The facts behind a decision."""

    async def facts(self, asked: Asked) -> Facts:
        """Facts from a read that began after this call, or `max_staleness_s` before it. Raises PolicyUnknown."""
        ...


class Meter(Protocol):
    """Counts what happens. No method waits or raises."""

    def decided(self, server: ServerPolicy | None, permitted: int, refusals: Sequence[Refusal]) -> None:
        """The messages of one body were decided on."""
        ...

    def relayed(self, added_s: float, waited_s: float) -> None:
        """The head of an answer has left.

        Args:
            added_s: our share: from the last byte of the body to the sending, and from the downstream's head to ours.
            waited_s: from the sending to the downstream's head.
        """
        ...

    def streams(self, step: int) -> None:
        """So many streams more are open, or fewer."""
        ...


class NoMeter:
    """Counts nothing."""

    def decided(self, server: ServerPolicy | None, permitted: int, refusals: Sequence[Refusal]) -> None:
        """As Meter.decided."""

    def relayed(self, added_s: float, waited_s: float) -> None:
        """As Meter.relayed."""

    def streams(self, step: int) -> None:
        """As Meter.streams."""


class Observer(Protocol):
    """Hears which tools downstreams list."""

    def listed(self, server_id: str, names: frozenset[str]) -> None:
        """A list with these names has passed, hidden ones included. Returns at once and never raises."""
        ...


class NoObserver:
    """Hears nothing."""

    def listed(self, server_id: str, names: frozenset[str]) -> None:
        """As Observer.listed."""


Credentials = Callable[[ServerPolicy], Fields]
"""The static header fields of a server, sent to its origin alone. Raises DownstreamUnusable when one is not set."""


def no_credentials(server: ServerPolicy) -> Fields:
    """For servers that ask for none."""
    del server
    return ()


Addresses = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a downstream's host (and port) that may be connected to, at least one, the preferred first.

Raises OSError when its name cannot be resolved, DownstreamUnreachable with its cause when a rule refuses it.
"""


class DownstreamAnswer(Protocol):
    """The head of a downstream's answer, and its body as it arrives."""

    @property
    def status(self) -> int:
        """The HTTP status code."""
        ...

    @property
    def fields(self) -> Fields:
        """All header lines, in order."""
        ...

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it arrives, never decoded. Raises DownstreamUnusable when it ends before its framing says."""
        ...


class Downstream(Protocol):
    """The only way to a downstream."""

    def send(self, forward: Forward) -> AbstractAsyncContextManager[DownstreamAnswer]:
        """Send it once, never again, follow no redirect, and wait for the head.

        Leaving the context ends the connection unless the body was read to its end.

        Raises:
            DownstreamUnreachable: no connection, or none that may be made.
            DownstreamTimeout: no connection or no head in time.
            DownstreamUnusable: the answer breaks HTTP.
        """
        ...


class ToolCaller(Protocol):
    """Calls a tool of a downstream for the gateway."""

    async def call(self, permit: Permit, call: ToolCall, on_progress: Progress | None = None) -> CallResult | CallError:
        """Call the tool that the permit names, once; cancelling it cancels the call. Raises OwnFailure."""
        ...


class FindRefused(Exception):
    """A search that is not carried out; one sentence for a model."""


class Finder(Protocol):
    """Finds tools that a caller may use."""

    async def find(
        self, key_hash: str | None, query: str, limit: int, server: str | None, *, include_disabled: bool
    ) -> Mapping[str, Any]:
        """The answer as the API gives it: `{tools, degraded, truncated}`. Raises FindRefused and PolicyUnknown."""
        ...

"""What is asked of the servers behind us."""

from typing import Protocol

from registry.access import Permit
from registry.calls import CallError, CallResult, Progress, ToolCall
from registry.entries import Snapshot
from registry.model import ServerPolicy


class CatalogueSource(Protocol):
    """Asks a downstream for its tools."""

    async def snapshot(self, policy: ServerPolicy) -> Snapshot:
        """All pages of `tools/list` and the declared capabilities, asked for with the server's static credentials.

        Raises DownstreamFailed.
        """
        ...


class ToolCaller(Protocol):
    """Calls a tool of a downstream. The only way to one that does not relay a client's own bytes."""

    async def call(self, permit: Permit, call: ToolCall, on_progress: Progress | None = None) -> CallResult | CallError:
        """Call the tool that the permit names, once. Cancelling it cancels the call downstream.

        Raises DownstreamFailed when there is no answer, or none in time.
        """
        ...

"""The three lists of a server's policy, and how one change moves them. Pure.

Source: DESIGN 5 (PATCH, PUT, refresh, tombstones).

Invariant: a name that was refused stays refused unless the change named it: `switched` on, or left out of the list
that `replaced` was given. Nobody's silence enables a tool.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from registry.entries import Server, Snapshot
from registry.model import ServerPolicy


@dataclass(frozen=True, slots=True)
class Lists:
    """Disabled tools, tombstones (refused, though no current tool has the name) and read-only marks."""

    disabled: frozenset[str]
    retired: frozenset[str]
    read_only: frozenset[str]

    @classmethod
    def of(cls, policy: ServerPolicy) -> "Lists":
        """As they are stored."""
        return cls(policy.disabled_tools, policy.retired_disabled_tools, policy.read_only_tools)

    @property
    def refused(self) -> frozenset[str]:
        """Every name that may not be called."""
        return self.disabled | self.retired

    def as_row(self) -> dict[str, Any]:
        """For an activity row: sorted, so that equal lists make equal rows."""
        return {
            "disabled_tools": sorted(self.disabled),
            "retired_disabled_tools": sorted(self.retired),
            "read_only_tools": sorted(self.read_only),
        }


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """The lists before and after; `ignored` are the names that were given and dropped."""

    before: Lists
    after: Lists
    ignored: frozenset[str] = frozenset()

    @property
    def changes(self) -> bool:
        """False when everything asked for is set already."""
        return self.before != self.after

    @property
    def retired(self) -> frozenset[str]:
        """Names that this change made tombstones."""
        return self.after.retired - self.before.retired

    @property
    def returned(self) -> frozenset[str]:
        """Tombstones that this change made disabled tools again."""
        return (self.before.retired - self.after.retired) & self.after.disabled


def replaced(
    server: Server, disabled: Iterable[str] | None = None, read_only: Iterable[str] | None = None
) -> PolicyChange:
    """Replace the disabled list, the read-only list or both; None leaves a list as it is.

    A name that is no current tool is dropped and reported. Three are not: a tombstone stays one; a name in the
    stored list becomes one; and before a complete snapshot any name becomes one, since it may yet turn up.
    """
    before = Lists.of(server.policy)
    after, ignored = before, frozenset[str]()
    if disabled is not None:
        after, ignored = _with_disabled(server, before, frozenset(disabled))
    if read_only is not None:
        marks = frozenset(read_only)
        kept = marks & _markable(server)
        after, ignored = replace(after, read_only=kept), ignored | (marks - kept)
    return PolicyChange(before, after, ignored)


def _with_disabled(server: Server, before: Lists, named: frozenset[str]) -> tuple[Lists, frozenset[str]]:
    current = named & server.tool_names
    unknown = named - server.tool_names - before.retired
    lasting = unknown & before.disabled if server.snapshot_good else unknown
    after = replace(before, disabled=current, retired=before.retired | lasting)
    return after, unknown - lasting


def _markable(server: Server) -> frozenset[str]:
    if server.snapshot_good:
        return server.tool_names
    # A mark lets keys without `write` in, so an unseen name gets none; one that is set may be of a tool yet to turn up.
    return server.tool_names | server.policy.read_only_tools


def switched(server: Server, tool: str, *, enabled: bool) -> PolicyChange:
    """Switch one tool and touch no other. Off for a name that is no current tool makes a tombstone."""
    before = Lists.of(server.policy)
    return PolicyChange(before, _switched_on(before, tool) if enabled else _switched_off(server, before, tool))


def _switched_on(before: Lists, tool: str) -> Lists:
    return replace(before, disabled=before.disabled - {tool}, retired=before.retired - {tool})


def _switched_off(server: Server, before: Lists, tool: str) -> Lists:
    if tool in before.refused:
        return before
    if tool in server.tool_names:
        return replace(before, disabled=before.disabled | {tool})
    return replace(before, retired=before.retired | {tool})


def pruned(server: Server, snapshot: Snapshot) -> PolicyChange:
    """What a complete snapshot does: a disabled name that is gone retires, a tombstone that is back is disabled.

    Lists that could not be read are left alone.
    """
    before = Lists.of(server.policy)
    if server.policy.fault is not None:
        return PolicyChange(before, before)
    disabled = before.refused & snapshot.names
    return PolicyChange(before, replace(before, disabled=disabled, retired=before.refused - snapshot.names))

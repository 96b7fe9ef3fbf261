"""The one decision: may this principal use this tool of this server now, with these arguments?

Source: DESIGN 2. Every surface asks here and none has a check of its own. Pure: facts in, a value out.

Invariant: a `Permit` is made in this module alone, after every row of the table held; whoever holds one may act.
"""

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from registry.model import ALL_TOOLS, AccessEntry, ApiKey, Facts, Permission, PrincipalType, Scope, ServerPolicy

_SEAL = object()


class Reason(enum.StrEnum):
    """Why not; the rows of DESIGN 2 in their order."""

    KEY_INVALID = "key_invalid"
    SCOPE_MCP = "scope_mcp"
    NOT_VISIBLE = "not_visible"
    POLICY_UNREADABLE = "policy_unreadable"
    TOOL_DISABLED = "tool_disabled"
    TOOL_SWITCHED_OFF = "tool_switched_off"
    NOT_IN_KEY_TOOLS = "not_in_key_tools"
    SCOPE_WRITE = "scope_write"
    ARGUMENT_REFUSED = "argument_refused"


@dataclass(frozen=True, slots=True)
class Permit:
    """Power to reach one server and, when `tool` is not None, to have that tool used.

    `revision` is the policy revision that was decided on. Only this module makes one.
    """

    server: ServerPolicy
    tool: str | None
    revision: int
    _seal: object = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self._seal is not _SEAL:
            raise TypeError("only registry.access makes a permit")


@dataclass(frozen=True, slots=True)
class Refusal:
    """An expected "no". `tool` is None when the server, not a tool, was refused."""

    reason: Reason
    tool: str | None = None


def enter(facts: Facts) -> Refusal | None:
    """May this principal use tools at all? Rows 1 and 2; None when it may."""
    reason = next(_key_reasons(facts), None)
    return None if reason is None else Refusal(reason)


def use_server(facts: Facts) -> Permit | Refusal:
    """May messages that name no tool reach this server? Rows 1 to 3, and a readable policy."""
    reason = next(_server_reasons(facts), None)
    if reason is not None or facts.server is None:
        return Refusal(reason or Reason.NOT_VISIBLE)
    return Permit(facts.server, None, facts.server.revision, _SEAL)


def usable(facts: Facts) -> Callable[[str], bool]:
    """Says of each tool whether `use_tool` would permit it, for lists: what is the same for all is asked once."""
    entered = use_server(facts)
    if isinstance(entered, Refusal):
        return lambda tool: False  # noqa: ARG005  none of them
    server = entered.server
    return lambda tool: next(_tool_reasons(facts, server, tool), None) is None


def use_tool(facts: Facts, tool: str, arguments: Any = None) -> Permit | Refusal:  # noqa: ARG001  row 8 will read it
    """May this tool be used? All rows, in their order; the first that fails is the reason.

    Args:
        facts: one read of the authority, begun after the request was complete.
        tool: the exact name; compared code point by code point.
        arguments: decoded JSON, for row 8; None when only a listing is asked for.
    """
    entered = use_server(facts)
    if isinstance(entered, Refusal):
        return Refusal(entered.reason, tool)
    reason = next(_tool_reasons(facts, entered.server, tool), None)
    if reason is not None:
        return Refusal(reason, tool)
    return Permit(entered.server, tool, entered.revision, _SEAL)


def _key_reasons(facts: Facts) -> Iterator[Reason]:
    key = valid_key(facts)
    if key is None:
        yield Reason.KEY_INVALID
    elif Scope.MCP not in key.scopes:
        yield Reason.SCOPE_MCP


def _server_reasons(facts: Facts) -> Iterator[Reason]:
    yield from _key_reasons(facts)
    if facts.server is None or not facts.server.enabled or not may_view(facts):
        yield Reason.NOT_VISIBLE
    if facts.server is not None and facts.server.fault is not None:
        yield Reason.POLICY_UNREADABLE


def _tool_reasons(facts: Facts, server: ServerPolicy, tool: str) -> Iterator[Reason]:
    if tool in server.disabled_tools or tool in server.retired_disabled_tools:
        yield Reason.TOOL_DISABLED
    if any(s.tool == tool and s.server_id in (None, server.server_id) for s in facts.switches):
        yield Reason.TOOL_SWITCHED_OFF
    if facts.key is not None and not _in_key_tools(facts.key, server.server_id, tool):
        yield Reason.NOT_IN_KEY_TOOLS
    if facts.key is not None and Scope.WRITE not in facts.key.scopes and not is_read_only(server, tool):
        yield Reason.SCOPE_WRITE


def _in_key_tools(key: ApiKey, server_id: str, tool: str) -> bool:
    if key.tools == ALL_TOOLS:
        return True
    grants = (grant.tools for grant in key.tools if grant.server_id == server_id)
    return any(tools == ALL_TOOLS or tool in tools for tools in grants)


def is_read_only(server: ServerPolicy, tool: str) -> bool:
    """The owner marked it so, or the server is trusted and the tool's own annotation says it."""
    return tool in server.read_only_tools or (server.trusted and tool in server.declared_read_only)


def valid_key(facts: Facts) -> ApiKey | None:
    """The key when it exists, is enabled and has not expired by the store's clock; else None."""
    key = facts.key
    if key is None or not key.enabled or has_ended(key.expires_at, facts.now):
        return None
    return key


def has_ended(expires_at: datetime | None, now: datetime) -> bool:
    """True from the moment on at which a key or an entry expires; None is never."""
    return expires_at is not None and expires_at <= now


def permissions(facts: Facts) -> Permission:
    """The bits that this principal holds on this server, of all live entries together."""
    bits = Permission.NONE
    if facts.key is None:
        return bits
    for entry in facts.entries:
        if _names(entry, facts.key) and not has_ended(entry.expires_at, facts.now):
            bits |= entry.permissions
    return bits


def _names(entry: AccessEntry, key: ApiKey) -> bool:
    if entry.principal_type is PrincipalType.PUBLIC:
        return True
    named = {PrincipalType.USER: {key.user} - {""}, PrincipalType.GROUP: key.groups, PrincipalType.ROLE: key.roles}
    return entry.principal_id in named[entry.principal_type]


def has_scope(facts: Facts, *scopes: Scope) -> bool:
    """True when a valid key holds at least one of these scopes."""
    key = valid_key(facts)
    return key is not None and not key.scopes.isdisjoint(scopes)


def may_view(facts: Facts) -> bool:
    """May this principal know that the server exists? `admin` sees every server."""
    return has_scope(facts, Scope.ADMIN) or _holds(facts, Permission.VIEW)


def may_read(facts: Facts) -> bool:
    """May it read the server and its tools on the API?"""
    return has_scope(facts, Scope.READ, Scope.MANAGE, Scope.ADMIN) and may_view(facts)


def may_edit(facts: Facts) -> bool:
    """May it edit the server's texts and refresh it?"""
    return _may(facts, Permission.EDIT)


def may_delete(facts: Facts) -> bool:
    """May it delete the server?"""
    return _may(facts, Permission.DELETE)


def may_share(facts: Facts) -> bool:
    """May it change disabled tools, read-only marks, trust, permissions and tombstones?"""
    return _may(facts, Permission.SHARE)


def may_set_permissions(facts: Facts) -> bool:
    """May it see and change who holds which rights on the server?"""
    return may_administer(facts) or may_share(facts)


def may_register(facts: Facts, registration_scope: Scope = Scope.ADMIN) -> bool:
    """May it register a server? `registration_scope` is `admin`, or `manage` where the setting says so."""
    return has_scope(facts, Scope.ADMIN, registration_scope)


def may_move(facts: Facts, registration_scope: Scope = Scope.ADMIN) -> bool:
    """May it change the server's address? That takes what registering takes, and EDIT."""
    return may_register(facts, registration_scope) and _holds(facts, Permission.EDIT)


def may_administer(facts: Facts) -> bool:
    """May it see all keys and all activity, and flip global switches?"""
    return has_scope(facts, Scope.ADMIN)


def _may(facts: Facts, bit: Permission) -> bool:
    return has_scope(facts, Scope.MANAGE) and _holds(facts, bit)


def _holds(facts: Facts, bit: Permission) -> bool:
    return valid_key(facts) is not None and bool(permissions(facts) & bit)

"""The one decision, row by row (DESIGN 2)."""

from datetime import timedelta
from typing import Any

import pytest

from registry import access
from registry.access import Permit, Reason, Refusal
from registry.model import EDITOR, OWNER, VIEWER, Facts, Grant, Permission, PrincipalType, Scope, Switch
from tests import build
from tests.build import NOW, entry, facts, key, policy

MCP_READ = frozenset({Scope.MCP, Scope.READ})
PAST, FUTURE = NOW - timedelta(seconds=1), NOW + timedelta(seconds=1)


def with_key(**changes: Any) -> Facts:
    return facts(key=key(**changes))


def with_policy(**changes: Any) -> Facts:
    return facts(server=policy(**changes))


def with_entry(**changes: Any) -> Facts:
    return facts(entries=(entry(**changes),))


REFUSED = [
    ("1: no key", facts(key=None), Reason.KEY_INVALID),
    ("1: a disabled key", with_key(enabled=False), Reason.KEY_INVALID),
    ("1: a key that expires now", with_key(expires_at=NOW), Reason.KEY_INVALID),
    ("1: an expired key", with_key(expires_at=PAST), Reason.KEY_INVALID),
    ("2: no mcp scope", with_key(scopes=frozenset({Scope.READ, Scope.WRITE, Scope.ADMIN})), Reason.SCOPE_MCP),
    ("3: no such server", facts(server=None), Reason.NOT_VISIBLE),
    ("3: no such server, for an admin", facts(server=None, key=key(scopes=frozenset(Scope))), Reason.NOT_VISIBLE),
    ("3: a disabled server", with_policy(enabled=False), Reason.NOT_VISIBLE),
    ("3: no entry", facts(entries=()), Reason.NOT_VISIBLE),
    ("3: an entry without VIEW", with_entry(permissions=Permission.EDIT), Reason.NOT_VISIBLE),
    ("3: an expired entry", with_entry(expires_at=NOW), Reason.NOT_VISIBLE),
    ("3: another user's entry", with_entry(principal_id="bob"), Reason.NOT_VISIBLE),
    ("3: a key without a user", facts(key=key(user=""), entries=(entry(principal_id=""),)), Reason.NOT_VISIBLE),
    ("a policy that cannot be read", with_policy(fault="unreadable"), Reason.POLICY_UNREADABLE),
    ("4: on the owner's list", with_policy(disabled_tools=frozenset({"t"})), Reason.TOOL_DISABLED),
    ("4: a tombstone", with_policy(retired_disabled_tools=frozenset({"t"})), Reason.TOOL_DISABLED),
    ("5: switched off here", facts(switches=(Switch("srv-1", "t"),)), Reason.TOOL_SWITCHED_OFF),
    ("5: switched off everywhere", facts(switches=(Switch(None, "t"),)), Reason.TOOL_SWITCHED_OFF),
    ("6: a key for no tool", with_key(tools=()), Reason.NOT_IN_KEY_TOOLS),
    ("6: a key for another tool", with_key(tools=(Grant("srv-1", frozenset({"u"})),)), Reason.NOT_IN_KEY_TOOLS),
    ("6: a key for another server", with_key(tools=(Grant("srv-2", "*"),)), Reason.NOT_IN_KEY_TOOLS),
    ("7: no write scope", with_key(scopes=MCP_READ), Reason.SCOPE_WRITE),
    (
        "7: read-only by its own word, not trusted",
        facts(key=key(scopes=MCP_READ), server=policy(declared_read_only=frozenset({"t"}))),
        Reason.SCOPE_WRITE,
    ),
]


@pytest.mark.parametrize(("known", "reason"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_row_that_fails_is_the_reason(known: Facts, reason: Reason) -> None:
    assert access.use_tool(known, "t", {}) == Refusal(reason, "t")


PERMITTED = [
    ("nothing is against it", facts()),
    ("a tool that nobody has heard of", with_policy(disabled_tools=frozenset({"u"}))),
    ("names differ in case", with_policy(disabled_tools=frozenset({"T"}), retired_disabled_tools=frozenset({"t "}))),
    ("another tool is switched off", facts(switches=(Switch("srv-1", "u"), Switch(None, "v")))),
    ("it is switched off on another server", facts(switches=(Switch("srv-2", "t"),))),
    (
        "a key and an entry that have yet to expire",
        facts(key=key(expires_at=FUTURE), entries=(entry(expires_at=FUTURE),)),
    ),
    ("a key for it", with_key(tools=(Grant("srv-2", frozenset()), Grant("srv-1", frozenset({"t"}))))),
    ("a key for its server", with_key(tools=(Grant("srv-1", "*"),))),
    ("the owner marked it", facts(key=key(scopes=MCP_READ), server=policy(read_only_tools=frozenset({"t"})))),
    (
        "it is read-only by its own word, and trusted",
        facts(key=key(scopes=MCP_READ), server=policy(declared_read_only=frozenset({"t"}), trusted=True)),
    ),
    ("VIEW is enough", with_entry(permissions=VIEWER)),
    ("an admin sees every server", facts(key=key(scopes=frozenset(Scope)), entries=())),
]


@pytest.mark.parametrize("known", [row[1] for row in PERMITTED], ids=[row[0] for row in PERMITTED])
def test_when_every_row_holds_there_is_a_permit(known: Facts) -> None:
    permit = access.use_tool(known, "t", {})

    assert isinstance(permit, Permit)
    assert (permit.server, permit.tool) == (known.server, "t")


@pytest.mark.parametrize(
    "known", [row[1] for row in REFUSED] + [facts()], ids=[*(row[0] for row in REFUSED), "permitted"]
)
def test_a_list_shows_what_a_call_would_be_permitted(known: Facts) -> None:
    shows = access.usable(known)
    for tool in ("t", "u"):
        assert shows(tool) is isinstance(access.use_tool(known, tool), Permit)


def test_the_first_row_that_fails_is_the_reason() -> None:
    """Each step mends one row, and the next one shows."""
    worst = facts(
        key=key(enabled=False, scopes=frozenset({Scope.READ}), tools=()),
        server=policy(enabled=False, disabled_tools=frozenset({"t"})),
        switches=(Switch(None, "t"),),
    )
    steps = [
        worst,
        facts(key=key(scopes=frozenset({Scope.READ}), tools=()), server=worst.server, switches=worst.switches),
        facts(key=key(scopes=MCP_READ, tools=()), server=worst.server, switches=worst.switches),
        facts(
            key=key(scopes=MCP_READ, tools=()),
            server=policy(disabled_tools=frozenset({"t"})),
            switches=worst.switches,
        ),
        facts(key=key(scopes=MCP_READ, tools=()), switches=worst.switches),
        facts(key=key(scopes=MCP_READ, tools=())),
        facts(key=key(scopes=MCP_READ)),
    ]

    reasons = [verdict.reason for step in steps if isinstance(verdict := access.use_tool(step, "t"), Refusal)]

    rows = [row for row in Reason if row not in (Reason.POLICY_UNREADABLE, Reason.ARGUMENT_REFUSED)]
    assert reasons == rows


def test_a_message_that_names_no_tool_needs_rows_one_to_three() -> None:
    known = facts(
        key=key(scopes=frozenset({Scope.MCP}), tools=()), server=policy(disabled_tools=frozenset({"t"}), revision=4)
    )

    permit = access.use_server(known)

    assert isinstance(permit, Permit)
    assert (permit.tool, permit.revision) == (None, 4)
    assert access.use_server(facts(server=None)) == Refusal(Reason.NOT_VISIBLE)


def test_nobody_else_makes_a_permit() -> None:
    with pytest.raises(TypeError):
        Permit(policy(), "t", 1)


@pytest.mark.parametrize(
    ("changes", "bits"),
    [
        ({"principal_type": PrincipalType.GROUP, "principal_id": "staff"}, OWNER),
        ({"principal_type": PrincipalType.ROLE, "principal_id": "ops"}, OWNER),
        ({"principal_type": PrincipalType.PUBLIC, "principal_id": ""}, OWNER),
        ({"principal_type": PrincipalType.GROUP, "principal_id": "ann"}, Permission.NONE),
        ({"principal_type": PrincipalType.ROLE, "principal_id": "staff"}, Permission.NONE),
        ({"expires_at": PAST}, Permission.NONE),
    ],
)
def test_an_entry_counts_for_whom_it_names(changes: dict[str, Any], bits: Permission) -> None:
    known = facts(key=key(groups=frozenset({"staff"}), roles=frozenset({"ops"})), entries=(entry(**changes),))

    assert access.permissions(known) == bits


def test_the_bits_of_all_entries_add_up() -> None:
    edit = entry(principal_type=PrincipalType.PUBLIC, permissions=Permission.EDIT)

    assert access.permissions(facts(entries=(entry(permissions=VIEWER), edit))) == EDITOR


def test_without_a_key_there_are_no_rights() -> None:
    public = entry(principal_type=PrincipalType.PUBLIC)

    assert access.permissions(facts(key=None, entries=(public,))) == Permission.NONE


RIGHTS = [
    # right, scopes that give it with its bit, bit
    (access.may_read, {Scope.READ, Scope.MANAGE, Scope.ADMIN}, Permission.VIEW),
    (access.may_edit, {Scope.MANAGE}, Permission.EDIT),
    (access.may_delete, {Scope.MANAGE}, Permission.DELETE),
    (access.may_share, {Scope.MANAGE}, Permission.SHARE),
]


@pytest.mark.parametrize(("right", "scopes", "bit"), RIGHTS, ids=[row[0].__name__ for row in RIGHTS])
def test_a_right_takes_a_scope_and_a_bit(right: Any, scopes: set[Scope], bit: Permission) -> None:
    for scope in Scope:
        known = facts(key=key(scopes=frozenset({scope})), entries=(entry(permissions=bit),))
        assert right(known) == (scope in scopes), scope
        without = facts(key=key(scopes=frozenset({scope})), entries=(entry(permissions=OWNER & ~bit),))
        assert right(without) == (scope is Scope.ADMIN and right is access.may_read), scope


def test_an_agents_ordinary_key_cannot_undo_its_owners_switch() -> None:
    assert not access.may_share(facts())


@pytest.mark.parametrize("scope", Scope)
def test_registering_takes_admin_or_what_the_operator_says(scope: Scope) -> None:
    known = facts(key=key(scopes=frozenset({scope})))

    assert access.may_register(known) == (scope is Scope.ADMIN)
    assert access.may_register(known, Scope.MANAGE) == (scope in (Scope.ADMIN, Scope.MANAGE))
    assert access.may_administer(known) == (scope is Scope.ADMIN)


@pytest.mark.parametrize("known", [with_key(enabled=False), with_key(expires_at=PAST), facts(key=None)])
def test_a_key_that_is_not_valid_has_no_right_at_all(known: Facts) -> None:
    rights = (
        *(row[0] for row in RIGHTS),
        access.may_view,
        access.may_register,
        access.may_administer,
    )

    assert not any(right(known) for right in rights)
    assert access.valid_key(known) is None
    assert access.valid_key(facts()) == build.key()


def test_entering_takes_a_valid_key_with_mcp_and_nothing_of_a_server() -> None:
    assert access.enter(facts(server=None, entries=())) is None
    for known, reason in (
        (facts(key=None), Reason.KEY_INVALID),
        (facts(key=key(enabled=False)), Reason.KEY_INVALID),
        (facts(key=key(scopes=frozenset({Scope.ADMIN}))), Reason.SCOPE_MCP),
    ):
        assert access.enter(known) == Refusal(reason)

"""Callers without a key, where the operator lets them in (DESIGN 2 and 3)."""

from dataclasses import replace

import pytest

from registry import access
from registry.access import Permit, Reason, Refusal
from registry.anonymous import WithAnonymous
from registry.model import OWNER, Asked, Facts, Permission, PrincipalType, Scope, Switch
from tests import build
from tests.build import entry, policy

READ, WRITE = (Scope.READ,), (Scope.READ, Scope.WRITE)
PUBLIC = entry(principal_type=PrincipalType.PUBLIC, principal_id="")


class Known:
    """What the authority says."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    async def facts(self, asked: Asked) -> Facts:
        return self._facts


def keyless(**changes: object) -> Facts:
    return build.facts(**{"key": None, "entries": (PUBLIC,), **changes})


async def verdict(facts: Facts, scopes: tuple[Scope, ...], key_hash: str | None = None) -> Permit | Refusal:
    return access.use_tool(await WithAnonymous(Known(facts), scopes).facts(Asked(key_hash, "/x")), "t")


@pytest.mark.parametrize(
    ("scopes", "facts", "reason"),
    [
        (WRITE, keyless(), None),
        (READ, keyless(), Reason.SCOPE_WRITE),
        (READ, keyless(server=policy(read_only_tools=frozenset({"t"}))), None),
        (READ, keyless(server=policy(trusted=True, declared_read_only=frozenset({"t"}))), None),
        (READ, keyless(server=policy(declared_read_only=frozenset({"t"}))), Reason.SCOPE_WRITE),
        (WRITE, keyless(entries=()), Reason.NOT_VISIBLE),
        (WRITE, keyless(entries=(replace(PUBLIC, permissions=Permission.EDIT),)), Reason.NOT_VISIBLE),
        (WRITE, keyless(entries=(entry(),)), Reason.NOT_VISIBLE),
        (WRITE, keyless(entries=(entry(principal_id=""),)), Reason.NOT_VISIBLE),
        (
            WRITE,
            keyless(entries=(entry(principal_type=PrincipalType.PUBLIC, principal_id="", expires_at=build.NOW),)),
            Reason.NOT_VISIBLE,
        ),
        (WRITE, keyless(server=policy(enabled=False)), Reason.NOT_VISIBLE),
        (WRITE, keyless(server=None), Reason.NOT_VISIBLE),
        (WRITE, keyless(server=policy(fault="x")), Reason.POLICY_UNREADABLE),
        (WRITE, keyless(server=policy(disabled_tools=frozenset({"t"}))), Reason.TOOL_DISABLED),
        (WRITE, keyless(server=policy(retired_disabled_tools=frozenset({"t"}))), Reason.TOOL_DISABLED),
        (WRITE, keyless(switches=(Switch(None, "t"),)), Reason.TOOL_SWITCHED_OFF),
        (WRITE, keyless(switches=(Switch("srv-1", "t"),)), Reason.TOOL_SWITCHED_OFF),
        (WRITE, keyless(switches=(Switch("srv-2", "t"),)), None),
    ],
)
async def test_a_caller_without_a_key_is_bound_by_what_public_may(
    scopes: tuple[Scope, ...], facts: Facts, reason: Reason | None
) -> None:
    found = await verdict(facts, scopes)
    assert (found.reason if isinstance(found, Refusal) else None) is reason


async def test_a_key_that_is_not_known_is_never_taken_for_none() -> None:
    assert await verdict(keyless(), WRITE, "a stranger's") == Refusal(Reason.KEY_INVALID, "t")


async def test_a_key_that_is_known_is_judged_by_its_own() -> None:
    facts = build.facts(key=build.key(enabled=False), entries=(PUBLIC,))
    assert await verdict(facts, WRITE, "hash") == Refusal(Reason.KEY_INVALID, "t")


async def test_no_caller_without_a_key_has_a_right_to_change_anything() -> None:
    everything = entry(principal_type=PrincipalType.PUBLIC, principal_id="", permissions=OWNER)
    facts = await WithAnonymous(Known(keyless(entries=(everything,))), WRITE).facts(Asked(None, "/x"))
    rights = (access.may_edit, access.may_delete, access.may_share, access.may_register, access.may_administer)
    assert [right(facts) for right in rights] == [False] * 5
    assert facts.key is not None
    assert facts.key.is_anonymous

"""A tool list that waits for its facts, without an exchange."""

import pytest

from proxy.edits import apply
from proxy.held import Held
from proxy.tools import find_lists
from registry.access import Reason, Refusal
from registry.anonymous import public_key
from registry.model import Facts, PrincipalType, Scope
from tests.build import entry, facts, policy

LISTED = b'{"result":{"tools":[{"name":"t"},{"name":"u"}],"ttlMs":9,"cacheScope":"public"}}'
PUBLIC = facts(key=public_key({Scope.WRITE}), entries=(entry(principal_type=PrincipalType.PUBLIC, principal_id=""),))
SHARED = b'{"result":{"tools":[{"name":"t"},{"name":"u"}],"ttlMs":5,"cacheScope":"public"}}'
PRIVATE = SHARED.replace(b"public", b"private")


def held(*, may_tell_who: bool = False) -> Held:
    lists = find_lists(LISTED)
    assert lists is not None
    return Held(lists, lambda edits: apply(LISTED, edits), 5, may_tell_who)


@pytest.mark.parametrize(
    ("known", "may_tell_who", "expected"),
    [(facts(), False, PRIVATE), (facts(), True, PRIVATE), (PUBLIC, False, SHARED), (PUBLIC, True, PRIVATE)],
)
def test_only_a_list_for_nobody_in_particular_may_be_shared(known: Facts, may_tell_who: bool, expected: bytes) -> None:
    assert held(may_tell_who=may_tell_who).release(known) == expected


def test_the_names_are_those_that_came_whatever_is_shown() -> None:
    assert held().names == {"t", "u"}


def test_it_leaves_for_nobody_who_may_not_enter() -> None:
    assert held().release(facts(entries=())) == Refusal(Reason.NOT_VISIBLE)
    assert held().release(facts(key=None)) == Refusal(Reason.KEY_INVALID)


def test_it_shows_what_the_facts_of_its_release_permit() -> None:
    shown = held().release(facts(server=policy(disabled_tools=frozenset({"u"}))))
    assert shown == b'{"result":{"tools":[{"name":"t"}],"ttlMs":5,"cacheScope":"private"}}'

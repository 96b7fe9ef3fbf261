"""Equal texts, equal policies (DESIGN 4 and 5)."""

import dataclasses
from typing import Any

import pytest

from registry.fingerprint import fingerprint
from registry.model import Passing, ServerPolicy
from tests.build import policy

OTHERS: dict[str, Any] = {
    "server_id": "other",
    "path": "/other",
    "url": "http://other/",
    "enabled": False,
    "disabled_tools": frozenset({"a"}),
    "retired_disabled_tools": frozenset({"a"}),
    "read_only_tools": frozenset({"a"}),
    "declared_read_only": frozenset({"a"}),
    "trusted": True,
    "credentials": (("X-A", "${B}"),),
    "passing": Passing(list_ttl_ms=1),
    "fault": "unreadable",
}


def test_every_field_is_here_but_the_revision() -> None:
    assert {field.name for field in dataclasses.fields(ServerPolicy)} - {"revision"} == set(OTHERS)


@pytest.mark.parametrize(("field", "value"), OTHERS.items(), ids=OTHERS)
def test_another_value_of_any_field_is_another_fingerprint(field: str, value: Any) -> None:
    assert fingerprint(policy(**{field: value})) != fingerprint(policy())


def test_the_revision_counts_for_nothing_and_order_neither() -> None:
    names = [f"tool {number}" for number in range(50)]
    one = policy(revision=1, disabled_tools=frozenset(names))
    other = policy(revision=2, disabled_tools=frozenset(reversed(names)))
    assert fingerprint(one) == fingerprint(other)
    assert len(fingerprint(one)) == 64


def test_lists_are_not_taken_for_one_another() -> None:
    assert fingerprint(policy(disabled_tools=frozenset({"a", "b"}))) != fingerprint(
        policy(disabled_tools=frozenset({"a"}), retired_disabled_tools=frozenset({"b"}))
    )

"""Is one key wider than another (DESIGN 2, 5)?"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from registry.model import ApiKey, Grant, Scope
from registry.widths import excess

NOW = datetime(2026, 12, 1, tzinfo=UTC)
OWN = ApiKey(
    id="k1",
    hash="0" * 64,
    name="own",
    user="ann",
    groups=frozenset(),
    roles=frozenset(),
    scopes=frozenset({Scope.MCP, Scope.MANAGE}),
    enabled=True,
    created_at=NOW,
    created_by="admin",
    expires_at=NOW + timedelta(days=1),
    tools=(Grant("s1", frozenset("ab")), Grant("s1", frozenset("c")), Grant("s2", "*")),
)
FREE = replace(OWN, expires_at=None, tools="*")


@pytest.mark.parametrize(
    ("own", "change"),
    [
        (OWN, {}),
        (OWN, {"scopes": frozenset({Scope.MCP})}),
        (OWN, {"expires_at": NOW}),
        (OWN, {"tools": ()}),
        (OWN, {"tools": (Grant("s1", frozenset("ac")), Grant("s2", frozenset("z")))}),
        (OWN, {"tools": (Grant("s2", "*"), Grant("s9", frozenset()))}),
        (FREE, {"tools": "*", "expires_at": None}),
        (FREE, {"tools": (Grant("s9", "*"),), "expires_at": NOW}),
    ],
)
def test_a_key_that_is_no_wider_has_no_excess(own: ApiKey, change: dict[str, Any]) -> None:
    assert excess(replace(own, **change), own) is None


@pytest.mark.parametrize(
    "change",
    [
        {"scopes": frozenset({Scope.MCP, Scope.ADMIN})},
        {"expires_at": None},
        {"expires_at": NOW + timedelta(days=2)},
        {"tools": "*"},
        {"tools": (Grant("s1", "*"),)},
        {"tools": (Grant("s1", frozenset("ad")),)},
        {"tools": (Grant("s9", frozenset("a")),)},
    ],
)
def test_each_way_to_be_wider_is_an_excess(change: dict[str, Any]) -> None:
    assert excess(replace(OWN, **change), OWN) is not None

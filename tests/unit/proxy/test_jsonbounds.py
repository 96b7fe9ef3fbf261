"""How deep and how many, told from brackets and commas (PROTOCOL 10.4 rule 3)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.jsonbounds import has_too_many_values, is_too_deep


def depth(value: Any) -> int:
    """Restated: the levels of a decoded value."""
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth, value), default=0)
    return 0


values = st.recursive(
    st.none() | st.text('[]{}",\\a', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('[{"\\', max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(values, st.integers(0, 6))
def test_the_depth_is_that_of_the_value(value: Any, most: int) -> None:
    text = json.dumps(value)
    assert is_too_deep(f"]]{text}[[", 2, 2 + len(text), most) is (depth(value) > most)


def test_an_open_string_costs_no_more_than_its_length() -> None:
    assert is_too_deep("[[" + '"' + '\\"' * 1_000_000, 0, 2_000_003, 1)


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [("[1,2,3]", 3, False), ("[1,2,3]", 2, True), ('["[[{,,,"]', 1, False), ('{"a":[]}', 2, False), ("7", 0, False)],
)
def test_values_are_counted_outside_of_strings(text: str, most: int, expected: bool) -> None:
    assert has_too_many_values(text, most) is expected

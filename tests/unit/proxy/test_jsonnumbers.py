"""Decoded JSON with Python's own numbers."""

import pytest

from proxy.jsonnumbers import plain
from proxy.jsontext import Number, decode


def test_a_decoded_value_gets_pythons_numbers() -> None:
    value = decode(b'{"a":[1,-2,3.5,1e2,"4",true,null,{"b":123456789012345678901234567890}]}').value
    assert plain(value) == {"a": [1, -2, 3.5, 100.0, "4", True, None, {"b": 123456789012345678901234567890}]}
    assert [type(item) for item in plain(value)["a"][:4]] == [int, int, float, float]


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9" * 5_000, "1" + "0" * 5_000 + ".5"])
def test_a_number_that_python_cannot_hold_is_out_of_range(number: str) -> None:
    with pytest.raises(ValueError, match=r"^a number is out of range$"):
        plain([Number(number)])

"""Changes to a text in place."""

import pytest

from proxy.edits import Edit, apply


@pytest.mark.parametrize(
    ("edits", "result"),
    [
        ([], b"abcdef"),
        ([Edit(0, 0, b"x")], b"xabcdef"),
        ([Edit(6, 6, b"x")], b"abcdefx"),
        ([Edit(1, 3)], b"adef"),
        ([Edit(0, 2, b"12"), Edit(2, 4), Edit(5, 6, b"xyz")], b"12exyz"),
        ([Edit(0, 6)], b""),
    ],
)
def test_what_no_edit_names_stays(edits: list[Edit], result: bytes) -> None:
    assert apply(b"abcdef", edits) == result


def test_without_edits_it_is_the_very_same_object() -> None:
    data = bytes(range(10))

    assert apply(data, []) is data

"""An answer to a search stays within what a model can read, and says what it lacks."""

import json
from typing import Any

import pytest

from registry.budget import ANSWER_BYTES, DESCRIPTION_CHARS, Shown, shown
from registry.entries import Tool


def a_schema(size: int) -> dict[str, Any]:
    """One that takes exactly `size` bytes as JSON."""
    padding = size - len(json.dumps({"title": ""}))
    return {"title": "x" * padding}


def a_tool(size: int, description: str = "short") -> Tool:
    return Tool("t", {"description": description, "inputSchema": a_schema(size)})


def whole(size: int) -> Shown:
    return Shown("short", a_schema(size))


LACKING = Shown("short", None, ("inputSchema",))


def test_what_fits_is_shown_whole_and_in_order() -> None:
    assert list(shown([a_tool(40), a_tool(60)], 100)) == [whole(40), whole(60)]


def test_a_schema_that_does_not_fit_any_more_is_left_out_and_named() -> None:
    assert list(shown([a_tool(60), a_tool(41)], 100)) == [whole(60), LACKING]


def test_what_is_left_out_takes_nothing_from_those_that_follow() -> None:
    assert list(shown([a_tool(60), a_tool(500), a_tool(40)], 100)) == [whole(60), LACKING, whole(40)]


def test_a_long_description_is_cut_and_named() -> None:
    long = "d" * (DESCRIPTION_CHARS + 1)

    assert list(shown([a_tool(40, long)], 40)) == [Shown(long[:-1], a_schema(40), ("description",))]
    assert list(shown([a_tool(40, long[:-1])], 40)) == [Shown(long[:-1], a_schema(40))]


def test_both_members_can_be_cut() -> None:
    (cut,) = shown([a_tool(40, "d" * (DESCRIPTION_CHARS + 1))], 39)

    assert (cut.input_schema, cut.cut) == (None, ("description", "inputSchema"))


def test_a_tool_without_a_schema_is_shown_with_the_empty_one() -> None:
    assert list(shown([Tool("t")], 2)) == [Shown("", {})]


@pytest.mark.parametrize(("size", "cut"), [(ANSWER_BYTES, ()), (ANSWER_BYTES + 1, ("inputSchema",))])
def test_unless_told_otherwise_an_answer_has_its_64_kib(size: int, cut: tuple[str, ...]) -> None:
    assert [one.cut for one in shown([a_tool(size)])] == [cut]
    assert ANSWER_BYTES == 65_536

"""What is kept of the names in passing lists."""

from registry.sightings import MOST_CHARS, MOST_NAMES, News, Sighting, news, unlisted
from tests.build import NOW


def kept(*names: str) -> list[Sighting]:
    return [Sighting(name, NOW) for name in names]


def test_only_names_that_neither_the_snapshot_nor_the_store_has_are_added_in_order() -> None:
    assert news(["z", "b", "a", "b", "current", "kept"], kept("kept"), frozenset({"current"})) == News(
        ("a", "b", "z"), frozenset()
    )


def test_names_are_compared_code_point_by_code_point() -> None:
    assert news(["A", "a ", "\u00e9"], kept("e\u0301"), frozenset({"a"})).added == ("A", "a ", "\u00e9")


def test_what_the_snapshot_has_got_since_is_gone_whether_it_is_listed_or_not() -> None:
    assert news(["a"], kept("a", "b", "c"), frozenset({"a", "b"})) == News((), frozenset({"a", "b"}))


def test_a_name_that_is_not_listed_any_more_stays() -> None:
    assert news([], kept("a"), frozenset()) == News((), frozenset())


def test_a_name_that_is_too_long_is_not_kept() -> None:
    long = "\U0001f600" * MOST_CHARS
    assert news([long, long + "x"], (), frozenset()).added == (long,)


def test_no_more_are_kept_than_may_be_and_room_that_is_made_counts() -> None:
    full = kept(*(f"k{i}" for i in range(MOST_NAMES - 1)))
    assert news(["a", "b", "c"], full, frozenset()).added == ("a",)
    assert news(["a", "b", "c"], full, frozenset({"k1"})).added == ("a", "b")
    assert news(["a"], [*full, *kept("x", "y")], frozenset()).added == ()


def test_shown_is_what_the_snapshot_does_not_have_by_name() -> None:
    assert unlisted(kept("\U0001f600", "b", "\uffff", "a"), frozenset({"b"})) == kept("a", "\uffff", "\U0001f600")

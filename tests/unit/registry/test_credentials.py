"""Our keys on the wire."""

import hashlib

import pytest

from registry.credentials import (
    AmbiguousCredentials,
    holds_key,
    is_well_formed,
    key_hash,
    new_key,
    presented_key,
)

A, B = "sg_" + "a" * 43, "sg_" + "b" * 43


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ([], None),
        ([("Authorization", f"Bearer {A}")], A),
        ([("authorization", f"bearer   {A} ")], A),
        ([("X-Sluicegate-Key", f" {A} ")], A),
        ([("X-Sluicegate-Key", A), ("Authorization", f"Bearer {A}")], A),
        ([("X-Sluicegate-Key", A), ("Authorization", "Bearer theirs")], A),
        ([("X-Sluicegate-Key", A), ("Authorization", "Basic sg_x")], A),
        ([("Authorization", "Bearer theirs")], None),
        ([("Authorization", f"Basic {A}")], None),
        ([("Authorization", "Bearer sg_short")], "sg_short"),
        ([("X-Other", A)], None),
    ],
)
def test_a_key_is_found_where_ours_may_stand(fields: list[tuple[str, str]], found: str | None) -> None:
    assert presented_key(fields) == found


@pytest.mark.parametrize(
    "fields",
    [
        [("X-Sluicegate-Key", A), ("X-Sluicegate-Key", B)],
        [("X-Sluicegate-Key", A), ("Authorization", f"Bearer {B}")],
        [("Authorization", f"Bearer {A}"), ("Authorization", f"Bearer {B}")],
        [("X-Sluicegate-Key", ""), ("Authorization", f"Bearer {A}")],
    ],
)
def test_two_keys_that_differ_are_refused(fields: list[tuple[str, str]]) -> None:
    with pytest.raises(AmbiguousCredentials):
        presented_key(fields)


def test_a_new_key_is_well_formed_and_like_no_other() -> None:
    keys = {new_key() for _ in range(100)}

    assert len(keys) == 100
    assert all(is_well_formed(key) for key in keys)


@pytest.mark.parametrize(
    "text", ["", "sg_", "sg_" + "a" * 42, "sg_" + "a" * 44, "SG_" + "a" * 43, A + "\n", "sg_" + "." * 43]
)
def test_other_texts_are_not(text: str) -> None:
    assert not is_well_formed(text)


def test_a_key_is_seen_anywhere_in_a_text() -> None:
    assert holds_key(f"x=1&key={A}&y")
    assert not holds_key("x=sg_1&y=" + "a" * 43)


def test_what_is_stored_is_its_hash() -> None:
    assert key_hash(A) == hashlib.sha256(A.encode()).hexdigest()
    assert key_hash("\udcff") != key_hash("\udcfe")

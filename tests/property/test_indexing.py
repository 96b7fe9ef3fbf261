"""Whatever an index held before, the difference written makes it hold what it should."""

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from registry.indexing import Changes, ToolEntry, difference, written

Stored = dict[str, ToolEntry]

FEW = st.sampled_from(["a", "b", "c"])
ENTRIES = st.lists(
    st.builds(
        ToolEntry,
        server_id=st.sampled_from(["s1", "s2"]),
        server_path=st.sampled_from(["/s", "/t"]),
        server_name=st.sampled_from(["s", "t"]),
        tool=FEW,
        text=FEW,
        tool_enabled=st.booleans(),
        server_enabled=st.booleans(),
        revision=st.integers(0, 3),
        vector_source=st.sampled_from(["", "toy-1", "toy-2"]),
    ),
    max_size=8,
).map(lambda entries: {entry.id: entry for entry in entries})


def applied(changes: Changes, stored: Mapping[str, ToolEntry]) -> Stored:
    """What an index holds afterwards that does no more than it is told: a flip touches nothing but the flags."""
    after = {key: entry for key, entry in stored.items() if key not in changes.removals}
    after |= {entry.id: entry for entry in changes.upserts}
    for entry in changes.flips:
        after[entry.id] = replace(
            stored[entry.id], tool_enabled=entry.tool_enabled, server_enabled=entry.server_enabled
        )
    return after


def bare(entries: Mapping[str, ToolEntry]) -> Stored:
    """Without what is told but never compared, and without vectors."""
    return {key: replace(entry, revision=0, vector_source="") for key, entry in entries.items()}


@given(ENTRIES, ENTRIES)
def test_the_difference_applied_gives_what_was_wanted(wanted: Stored, stored: Stored) -> None:
    after = applied(difference(wanted.values(), stored), stored)

    assert bare(after) == bare(wanted)


@given(ENTRIES, ENTRIES)
def test_the_difference_applied_leaves_no_difference(wanted: Stored, stored: Stored) -> None:
    after = applied(difference(wanted.values(), stored), stored)

    assert difference(wanted.values(), after) == Changes()


@given(ENTRIES, ENTRIES)
def test_written_tells_which_vectors_are_there_afterwards(wanted: Stored, stored: Stored) -> None:
    after = applied(difference(wanted.values(), stored), stored)
    told = written(wanted.values(), stored)

    assert {key: entry.vector_source for key, entry in told.items()} == {
        key: entry.vector_source for key, entry in after.items()
    }


@given(ENTRIES, ENTRIES)
def test_nothing_is_written_twice_or_without_need(wanted: Stored, stored: Stored) -> None:
    changes = difference(wanted.values(), stored)
    touched = [entry.id for entry in (*changes.flips, *changes.upserts)] + sorted(changes.removals)

    assert len(touched) == len(set(touched)) == len(changes)
    assert not any(wanted.get(key) == stored.get(key) for key in touched)

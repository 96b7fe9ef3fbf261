"""What an index should hold of a server, and how little has to be written for it (DESIGN 6)."""

from array import array
from dataclasses import replace
from typing import Any

import pytest

from registry.entries import Server, Tool
from registry.indexing import (
    DESCRIPTION_CHARS,
    Changes,
    ToolEntry,
    difference,
    entries_of,
    entry_id,
    is_on,
    searched_terms,
    searched_text,
    with_vectors,
    written,
)
from registry.model import ServerPolicy, Switch
from tests import build

VECTOR = array("f", [1.0])


def an_entry(tool: str = "read", **changes: Any) -> ToolEntry:
    made = ToolEntry("s1", "/lab", "lab", tool, f"lab {tool}: does things", tool_enabled=True, server_enabled=True)
    return replace(made, **changes)


def by_id(*entries: ToolEntry) -> dict[str, ToolEntry]:
    return {entry.id: entry for entry in entries}


def a_server(*tools: str, policy: ServerPolicy | None = None) -> Server:
    described = tuple(Tool(name, {"description": f"does {name}"}) for name in tools)
    return Server("srv-1", "lab", "/lab", "http://127.0.0.1:9/mcp", "sse", policy or build.policy(), tools=described)


def enabled(server: Server, *switches: Switch) -> list[str]:
    return [entry.tool for entry in entries_of(server, switches) if entry.tool_enabled]


def test_an_entry_says_what_its_tool_is_and_whether_it_is_on() -> None:
    policy = build.policy(disabled_tools=frozenset({"drop"}), revision=7)

    assert entries_of(a_server("read", "drop", policy=policy)) == (
        ToolEntry("srv-1", "/lab", "lab", "read", "lab read: does read", True, True, 7),
        ToolEntry("srv-1", "/lab", "lab", "drop", "lab drop: does drop", False, True, 7),
    )


def test_a_server_without_tools_has_no_entries() -> None:
    assert entries_of(a_server()) == ()


def test_lists_tombstones_and_switches_put_a_tool_off() -> None:
    policy = build.policy(disabled_tools=frozenset("a"), retired_disabled_tools=frozenset("b"))
    switches = Switch(None, "c"), Switch("srv-1", "d"), Switch("srv-2", "e")

    assert enabled(a_server(*"abcde", policy=policy), *switches) == ["e"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({}, True), ({"enabled": False}, False), ({"fault": "no list"}, False), ({"enabled": False, "fault": "x"}, False)],
)
def test_a_server_is_on_when_it_is_enabled_and_can_be_read(changes: dict[str, Any], expected: bool) -> None:
    policy = build.policy(**changes)

    assert is_on(policy) is expected
    assert [entry.server_enabled for entry in entries_of(a_server("a", policy=policy))] == [expected]


def test_the_searched_text_cuts_the_description_short() -> None:
    long = "x" * (DESCRIPTION_CHARS + 1)

    assert searched_text("hub", "readFile", long) == "hub readFile: " + "x" * DESCRIPTION_CHARS


def test_the_words_of_a_tools_name_count_twice_and_are_split() -> None:
    entry = an_entry("readFile", text="lab readFile: reads")

    assert searched_terms(entry) == ["lab", "readfil", "read", "read", "file"]


def test_an_id_is_the_same_on_every_replica_and_for_no_other_tool() -> None:
    assert an_entry("read").id == entry_id("s1", "read") == "ffd267d4-5b37-5b02-975c-ad9d1e9d2d3d"
    assert len({entry_id("s1", "read"), entry_id("s1r", "ead"), entry_id("s2", "read"), entry_id("s1", "Read")}) == 4


def test_the_source_is_set_where_there_is_a_vector() -> None:
    first, second = an_entry("a"), an_entry("b")

    assert with_vectors((first, second), "toy", {first.text: VECTOR}) == (replace(first, vector_source="toy"), second)


def test_nothing_is_written_when_nothing_differs() -> None:
    changes = difference([an_entry()], by_id(an_entry(revision=5)))

    assert changes == Changes()
    assert len(changes) == 0


def test_what_is_new_is_upserted_and_what_is_gone_removed() -> None:
    new, gone = an_entry("new"), an_entry("gone")

    changes = difference([new], by_id(gone))

    assert changes == Changes(upserts=(new,), removals=frozenset({gone.id}))
    assert len(changes) == 2


@pytest.mark.parametrize("flags", [{"tool_enabled": False}, {"server_enabled": False}])
def test_a_change_of_flags_alone_is_a_flip_that_keeps_the_vector(flags: dict[str, Any]) -> None:
    stored = an_entry(vector_source="toy")

    assert difference([an_entry(**flags)], by_id(stored)) == Changes(flips=(replace(stored, **flags),))


@pytest.mark.parametrize("changed", [{"text": "other"}, {"server_path": "/new"}, {"server_name": "new"}])
def test_a_change_of_more_is_an_upsert(changed: dict[str, str]) -> None:
    wanted = an_entry(tool_enabled=False, **changed)

    assert difference([wanted], by_id(an_entry(vector_source="toy"))) == Changes(upserts=(wanted,))


@pytest.mark.parametrize("before", ["", "old"])
def test_a_vector_that_is_new_is_written(before: str) -> None:
    wanted = an_entry(vector_source="toy")

    assert difference([wanted], by_id(an_entry(vector_source=before))) == Changes(upserts=(wanted,))


def test_a_vector_is_kept_until_there_is_another() -> None:
    stored = an_entry(vector_source="toy")

    assert not difference([an_entry()], by_id(stored))
    assert written([an_entry()], by_id(stored)) == by_id(stored)


def test_what_is_written_is_what_was_wanted() -> None:
    stored = an_entry("changed", vector_source="toy"), an_entry("embedded"), an_entry("gone")
    wanted = an_entry("changed", text="other"), an_entry("embedded", vector_source="toy"), an_entry("new")

    assert written(wanted, by_id(*stored)) == by_id(*wanted)

"""How one change moves the three lists of a policy (DESIGN 5)."""

from collections.abc import Iterable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.entries import Server, Snapshot, Tool
from registry.lists import Lists, PolicyChange, pruned, replaced, switched
from registry.model import ServerPolicy


def a_server(
    tools: str = "",
    disabled: str = "",
    retired: str = "",
    read_only: str = "",
    *,
    good: bool = True,
    fault: str | None = None,
) -> Server:
    """Every letter is a tool's name."""
    policy = ServerPolicy(
        server_id="s1",
        path="/demo",
        url="http://127.0.0.1:1/mcp",
        disabled_tools=frozenset(disabled),
        retired_disabled_tools=frozenset(retired),
        read_only_tools=frozenset(read_only),
        fault=fault,
    )
    return Server(
        id="s1",
        name="demo",
        path="/demo",
        url="http://127.0.0.1:1/mcp",
        type="streamable-http",
        policy=policy,
        tools=tuple(Tool(name) for name in tools),
        snapshot_good=good,
    )


def lists(disabled: str = "", retired: str = "", read_only: str = "") -> Lists:
    return Lists(frozenset(disabled), frozenset(retired), frozenset(read_only))


@dataclass(frozen=True)
class Replace:
    server: Server
    named: Iterable[str]
    after: Lists
    ignored: str = ""


@pytest.mark.parametrize(
    "case",
    [
        Replace(a_server("abc"), "ab", lists("ab")),
        Replace(a_server("abc", "a"), "b", lists("b")),
        Replace(a_server("abc", "ab"), "", lists()),
        Replace(a_server("abc"), ["a", "a"], lists("a")),
        Replace(a_server("abc"), "ax", lists("a"), ignored="x"),
        Replace(a_server("abc", retired="x"), "ax", lists("a", "x")),
        Replace(a_server("abc", retired="x"), "a", lists("a", "x")),
        Replace(a_server("abc", "x"), "ax", lists("a", "x")),
        Replace(a_server("abc", "x"), "a", lists("a")),
        Replace(a_server("abc", good=False), "ax", lists("a", "x")),
        Replace(a_server("", good=False), "xy", lists("", "xy")),
        Replace(a_server("abc", read_only="c"), "a", lists("a", read_only="c")),
    ],
)
def test_patch_replaces_the_list_and_loses_no_name_silently(case: Replace) -> None:
    change = replaced(case.server, case.named)
    assert change == PolicyChange(Lists.of(case.server.policy), case.after, frozenset(case.ignored))


@pytest.mark.parametrize(
    ("server", "marks", "after", "ignored"),
    [
        (a_server("abc", "a"), "bc", lists("a", read_only="bc"), ""),
        (a_server("abc", read_only="a"), "", lists(), ""),
        (a_server("abc"), "ax", lists(read_only="a"), "x"),
        (a_server("abc", read_only="x"), "x", lists(), "x"),
        (a_server("abc", read_only="x", good=False), "xy", lists(read_only="x"), "y"),
    ],
)
def test_read_only_marks_are_only_for_tools_that_are_known(
    server: Server, marks: str, after: Lists, ignored: str
) -> None:
    change = replaced(server, read_only=marks)
    assert (change.after, change.ignored) == (after, frozenset(ignored))


def test_both_lists_are_replaced_at_once_and_report_together() -> None:
    change = replaced(a_server("abc"), "ax", "by")
    assert (change.after, change.ignored) == (lists("a", read_only="b"), frozenset("xy"))


@pytest.mark.parametrize(
    ("server", "enabled", "after"),
    [
        (a_server("ab"), False, lists("a")),
        (a_server("ab", "a"), False, lists("a")),
        (a_server("b"), False, lists("", "a")),
        (a_server("b", retired="a"), False, lists("", "a")),
        (a_server("b", "a"), False, lists("a")),
        (a_server("ab", "ab"), True, lists("b")),
        (a_server("b", "b", "a"), True, lists("b")),
        (a_server("ab", "a", "a"), True, lists()),
        (a_server("ab", "b"), True, lists("b")),
    ],
)
def test_put_switches_one_tool_and_touches_no_other(server: Server, enabled: bool, after: Lists) -> None:
    change = switched(server, "a", enabled=enabled)
    assert change.after == after
    assert change.changes is (after != Lists.of(server.policy))


@pytest.mark.parametrize(
    ("server", "names", "after", "retired", "returned"),
    [
        (a_server("ab", "a"), "ab", lists("a"), "", ""),
        (a_server("ab", "ab"), "b", lists("b", "a"), "a", ""),
        (a_server("b", retired="a"), "ab", lists("a"), "", "a"),
        (a_server("ab", "ab", "c"), "", lists("", "abc"), "ab", ""),
        (a_server("ab", "a", "a", read_only="b"), "a", lists("a", read_only="b"), "", "a"),
        (a_server("ab", "a", fault="unreadable"), "b", lists("a"), "", ""),
    ],
)
def test_refresh_retires_what_is_gone_and_disables_what_is_back(
    server: Server, names: str, after: Lists, retired: str, returned: str
) -> None:
    change = pruned(server, Snapshot(tuple(map(Tool, names))))
    assert change.after == after
    assert (change.retired, change.returned) == (frozenset(retired), frozenset(returned))


def test_rows_of_equal_lists_are_equal() -> None:
    row = lists("ba", "dc", "fe").as_row()
    assert row == {
        "disabled_tools": ["a", "b"],
        "retired_disabled_tools": ["c", "d"],
        "read_only_tools": ["e", "f"],
    }


names = st.text("abcdef", max_size=6)
servers = st.builds(a_server, names, names, names, names, good=st.booleans())


@given(servers, names, st.none() | names)
def test_patch_enables_only_what_its_caller_left_out(server: Server, named: str, marks: str | None) -> None:
    change = replaced(server, named, marks)
    enabled = change.before.refused - change.after.refused
    assert enabled <= change.before.disabled - frozenset(named)


@given(servers, names)
def test_patch_refuses_or_reports_every_name_it_was_given(server: Server, named: str) -> None:
    change = replaced(server, named)
    assert frozenset(named) == frozenset(named) & (change.after.refused | change.ignored)
    assert change.after.refused.isdisjoint(change.ignored)


@given(servers, names)
def test_read_only_marks_move_no_refusal(server: Server, marks: str) -> None:
    change = replaced(server, read_only=marks)
    assert change.after.refused == change.before.refused


@given(servers, st.sampled_from("abcdef"), st.booleans())
def test_put_changes_the_refusal_of_its_own_tool_only(server: Server, tool: str, enabled: bool) -> None:
    change = switched(server, tool, enabled=enabled)
    assert change.after.refused - {tool} == change.before.refused - {tool}
    assert (tool in change.after.refused) is not enabled


@given(servers, names)
def test_refresh_moves_names_between_the_lists_and_loses_none(server: Server, listed: str) -> None:
    change = pruned(server, Snapshot(tuple(map(Tool, sorted(set(listed))))))
    assert change.after.refused == change.before.refused
    assert change.after.disabled <= frozenset(listed)
    assert change.after.retired.isdisjoint(listed)
    assert change.after.read_only == change.before.read_only

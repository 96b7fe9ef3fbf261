"""The filter against readers of every kind: none sees a hidden name, and what is not hidden stays to the byte."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from hypothesis import event as note
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.edits import apply
from proxy.sse import Decoder
from proxy.tools import UnreadableList, find_lists

HIDDEN = "da\u00f1ger"
NAMES = (HIDDEN, "danger", "DA\u00d1GER", "dan\u0303ger", "safe", "\u540d\u524d", "\U0001f5d1", "")
Pairs = list[tuple[str, Any]]


def filtered(data: bytes) -> bytes:
    """What a caller gets that may not see HIDDEN. Raises UnreadableList."""
    lists = find_lists(data)
    return data if lists is None else apply(data, lists.edits(lambda name: name != HIDDEN, ttl_ms=0, is_private=True))


# Texts that mean to be misread: members doubled, in other spellings, escaped; values of any type.


def quoted(text: str) -> st.SearchStrategy[str]:
    escaped = '"' + "".join(f"\\u{ord(character):04x}" for character in text if ord(character) < 0x10000) + '"'
    return st.sampled_from([json.dumps(text, ensure_ascii=False), json.dumps(text, ensure_ascii=False), escaped])


def member(name: str, value: st.SearchStrategy[str], *others: str) -> st.SearchStrategy[str]:
    spellings = st.sampled_from([name] * 16 + [name.upper(), *others]).flatmap(quoted)
    return st.builds("{}:{}".format, spellings, value)


def composed(
    brackets: str, parts: st.SearchStrategy[str], rest: st.SearchStrategy[str], max_size: int
) -> st.SearchStrategy[str]:
    """Some parts and, in every second text, one of the rest, in any order."""
    items = st.builds(list.__add__, st.lists(parts, max_size=max_size), st.just([]) | st.lists(rest, max_size=1))
    separators = st.sampled_from([",", " ,", ",\n", ", "])
    ordered = items.flatmap(st.permutations)
    return st.builds(lambda between, found: brackets[0] + between.join(found) + brackets[1], separators, ordered)


scalars = st.sampled_from(["null", "1", "1E400", "NaN", '"x"', '"\\ud800"', "[]", "{}", '{"a":1,"a":2}'])
names = st.sampled_from(NAMES).flatmap(quoted)
named = st.builds('{{"name":{}}}'.format, names)
odd_tools = scalars | composed("{}", member("name", names), member("title", scalars), 2)
tool_lists = composed("[]", named, odd_tools, 4)
hints = member("ttlMs", scalars) | member("cacheScope", scalars)
results = composed("{}", member("tools", tool_lists, "tool\u017f"), hints | member("tools", scalars), 1)
messages = composed(
    "{}", member("result", results, "re\u017fult"), member("id", scalars) | member("result", results), 1
)
texts = messages | messages | composed("[]", messages, scalars, 2)


def _first(pairs: Pairs) -> dict[str, Any]:
    return dict(reversed(pairs))


def _folded(pairs: Pairs) -> dict[str, Any]:
    return {name.casefold(): value for name, value in pairs}


def _folded_first(pairs: Pairs) -> dict[str, Any]:
    return _folded(list(reversed(pairs)))


READERS: Sequence[Callable[[Pairs], dict[str, Any]]] = (dict, _first, _folded, _folded_first)


def names_seen(data: bytes) -> Iterator[str]:
    """Every name of a tool that some reader finds in it."""
    for reader in READERS:
        try:
            root = json.loads(data, object_pairs_hook=reader)
        except ValueError:
            continue
        for message in root if isinstance(root, list) else [root]:
            yield from names_in(message)


def names_in(message: Any) -> Iterator[str]:
    result = message.get("result") if isinstance(message, dict) else None
    tools = result.get("tools") if isinstance(result, dict) else None
    for tool in tools if isinstance(tools, list) else []:
        if isinstance(tool, dict) and isinstance(tool.get("name"), str):
            yield tool["name"]


@settings(max_examples=500)
@given(texts, st.sampled_from(["utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-32-be"]))
def test_no_reader_finds_a_hidden_name_in_what_is_let_through(text: str, encoding: str) -> None:
    data = text.encode(encoding)
    try:
        output = filtered(data)
    except UnreadableList:
        note("refused")
        return
    note("edited" if output != data else "as it came")
    assert HIDDEN not in names_seen(output)
    if HIDDEN not in names_seen(data) and b"ttlMs" not in data and b"cacheScope" not in data and b"\\u" not in data:
        assert output == data


@given(st.binary(max_size=200) | texts.map(str.encode), st.binary(max_size=3), st.integers(0, 200))
def test_any_bytes_are_let_through_or_refused(data: bytes, noise: bytes, place: int) -> None:
    for damaged in (data, data[:place] + noise + data[place:], b'"tools"' + data):
        try:
            output = filtered(damaged)
        except UnreadableList:
            continue
        assert len(output) <= len(damaged) + len(b'"private"')


# Lists as they should be.

blanks = st.sampled_from(["", "", " ", "\n", "\r\n  ", "\t"])
values = st.recursive(
    st.sampled_from(["1", "1E2", "0.1000", "-0", "9" * 30, "true", "null", '"\\u00e9"', '"\u540d"', '"}, ]"', '"\\""']),
    lambda inner: st.lists(inner, max_size=3).map(lambda items: "[" + ", ".join(items) + "]"),
    max_leaves=5,
)
well_formed_tools = st.builds(
    '{{{}"inputSchema":{},"name" :{}{}}}'.format, blanks, values, st.sampled_from(NAMES).flatmap(quoted), blanks
)
frames = st.sampled_from(
    [
        ('{"jsonrpc":"2.0","id":1,"result":{"tools":[', '],"nextCursor":""}}'),
        ('{ "result" : {"_meta":{"\u00fc":1E2,"a":1,"a":2}, "tools" :\n[', '] }, \n"id":null }'),
        ('[{"method":"a","params":{"tools":[{"name":"da\u00f1ger"}]}},{"result":{"tools":[', "]}}]"),
    ]
)
listed = st.lists(st.tuples(blanks, well_formed_tools, blanks), max_size=6)


def is_hidden(tool: str) -> bool:
    return bool(json.loads(tool)["name"] == HIDDEN)


@given(frames, listed)
def test_a_filtered_list_is_the_list_less_the_hidden_and_all_else_stays(
    frame: tuple[str, str], tools: list[tuple[str, str, str]]
) -> None:
    opening, closing = frame
    output = filtered((opening + ",".join(map("".join, tools)) + closing).encode()).decode()
    kept = [tool for _, tool, _ in tools if not is_hidden(tool)]
    assert output.startswith(opening)
    assert output.endswith(closing)
    assert json.loads(output) == json.loads(opening + ",".join(kept) + closing)
    between = r"\s*,\s*".join(map(re.escape, kept))
    assert re.fullmatch(rf"\s*{between}\s*", output[len(opening) : len(output) - len(closing)])
    if len(kept) == len(tools):
        assert output == opening + ",".join(map("".join, tools)) + closing


@given(frames, listed, st.sampled_from(["\n", "\r", "\r\n"]), st.lists(st.integers(0, 300), max_size=8))
def test_a_list_in_an_event_of_several_lines_is_filtered_line_by_line(
    frame: tuple[str, str], tools: list[tuple[str, str, str]], end: str, cuts: list[int]
) -> None:
    text = frame[0] + ",".join(map("".join, tools)) + frame[1]
    lines = ["id: 7", *(f"data: {line}" for line in re.split(r"\r\n|\r|\n", text)), ": note", "retry: 5"]
    stream = "".join(line + end for line in [*lines, ""]).encode()
    bounds = [0, *sorted(cuts), len(stream)]
    decoder = Decoder(1 << 20)
    chunks = [stream[start:stop] for start, stop in pairwise(bounds)]
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    [event] = [event for event in events if event.spans]
    lists = find_lists(event.data)
    assert lists is not None
    output = event.edited(lists.edits(lambda name: name != HIDDEN, ttl_ms=0, is_private=True))
    [again] = [found for found in Decoder(1 << 20).feed(output + b"\n") if found.spans]
    assert json.loads(again.data) == json.loads(filtered(text.encode()))
    assert len(output.splitlines()) == len(event.raw.splitlines())
    assert output.startswith(f"id: 7{end}".encode())
    assert output.endswith(event.raw[event.raw.rindex(b": note") :])

"""A tool list in a JSON text, and what to cut from it (DESIGN 3, PROTOCOL 3)."""

import json
import time
import tracemalloc
from typing import Any

import pytest

from proxy.edits import apply
from proxy.tools import UnreadableList, find_lists, may_hold_list


def text(*tools: str, more: str = "") -> str:
    return f'{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{",".join(tools)}]{more}}}}}'


def tool(name: str) -> str:
    return json.dumps({"name": name, "inputSchema": {"type": "object"}}, ensure_ascii=False)


def filtered(data: str, *hidden: str, ttl_ms: int = 0, is_private: bool = False) -> str:
    found = find_lists(data.encode())
    assert found is not None
    edits = found.edits(lambda name: name not in hidden, ttl_ms=ttl_ms, is_private=is_private)
    return apply(data.encode(), edits).decode()


@pytest.mark.parametrize(
    "data",
    [
        b'{"tools":',
        b'{"Tools":',
        b'{"TOOLS":',
        '{"tool\u017f":'.encode(),
        b'{"too\\u006cs":',
        '{"tools":'.encode("utf-16"),
        '{"tools":'.encode("utf-32-be"),
    ],
)
def test_whatever_a_reader_could_take_for_tools_may_be_a_list(data: bytes) -> None:
    assert may_hold_list(data)


@pytest.mark.parametrize("data", [b"", b"not-json", b'{"tool":"tools/list"}', b'{"a":"tools "}', b"tools", b"\\n\\tu"])
def test_a_text_without_the_marker_is_no_list(data: bytes) -> None:
    assert not may_hold_list(data)
    assert find_lists(data) is None


@pytest.mark.parametrize(
    "data",
    [
        '{"jsonrpc":"2.0","id":1,"result":{"content":["tools"]}}',
        '{"jsonrpc":"2.0","id":1,"result":{"structuredContent":{"tools":[{"name":"a"}]}}}',
        '{"jsonrpc":"2.0","id":1,"result":{"capabilities":{"tools":{"listChanged":true}}}}',
        '{"jsonrpc":"2.0","id":1,"result":"tools"}',
        '{"jsonrpc":"2.0","id":1,"result":[{"tools":[{"name":"a"}]}]}',
        '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"","data":{"tools":[]}}}',
        '{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"tools":[{"name":"a"}]}}',
        '{"tools":[{"name":"a"}]}',
        '[[{"result":{"tools":[{"name":"a"}]}}],"tools",1]',
        '"tools"',
        '["\\u0020"]',
    ],
)
def test_another_shape_is_no_list(data: str) -> None:
    assert find_lists(data.encode()) is None


@pytest.mark.parametrize("id_member", ['"id":1,', '"id":"1",', '"id":null,', '"id":1.0,', ""])
def test_a_list_is_known_by_its_shape_whatever_its_id(id_member: str) -> None:
    data = f'{{{id_member}"result":{{"tools":[{{"name":"a"}}]}}}}'
    assert filtered(data, "a") == data.replace('{"name":"a"}', "")


def test_names_are_all_names_of_all_messages() -> None:
    found = find_lists(f"[{text(tool('a'), tool('b'))},{text(tool('b'))},{text(tool('ä'))}]".encode())
    assert found is not None
    assert found.names == {"a", "b", "ä"}


@pytest.mark.parametrize(
    ("hidden", "left"),
    [
        ("", " a , b\n,\tc ,d  "),
        ("a", " b\n,\tc ,d  "),
        ("b", " a , c ,d  "),
        ("d", " a , b\n,\tc  "),
        ("ab", " c ,d  "),
        ("bc", " a , d  "),
        ("cd", " a , b  "),
        ("ad", " b\n,\tc  "),
        ("abcd", "   "),
    ],
)
def test_a_hidden_tool_goes_with_one_comma_and_all_else_stays(hidden: str, left: str) -> None:
    def spelled(pattern: str) -> str:
        return text("".join(tool(c) if c.isalpha() else c for c in pattern), more=' , "nextCursor" : ""')

    assert filtered(spelled(" a , b\n,\tc ,d  "), *hidden) == spelled(left)


def test_an_empty_list_and_an_emptied_page_keep_their_cursor() -> None:
    """PROTOCOL 3: pages are not merged; only an absent cursor means the end."""
    page = ',"nextCursor":"p2"'
    assert filtered(text(more=page), "a") == text(more=page)
    assert filtered(text(tool("a"), more=page), "a") == text(more=page)


def test_number_spellings_and_escapes_of_what_stays_are_kept() -> None:
    odd = '{"name":"caf\\u00e9", "inputSchema":{"maximum":1E400,"x":-0,"y":0.1000,"n":' + "9" * 5000 + "}}"
    assert filtered(text(odd, tool("b")), "b") == text(odd)


def test_names_are_compared_code_point_by_code_point() -> None:
    names = ["café", "cafe\u0301", "Café", " café", "データ削除", "🗑", "x"]
    for name in names:
        rest = [tool(other) for other in names if other != name]
        assert filtered(text(*map(tool, names), more=',"ttlMs":0'), name) == text(*rest, more=',"ttlMs":0')


def test_an_escaped_name_is_known_by_what_it_spells() -> None:
    assert filtered(text('{"n\\u0061me":"\\u0062"}', tool("c")), "b") == text(tool("c"))


def test_each_message_of_a_batch_is_filtered() -> None:
    other = '{"method":"x","params":{"tools":[{"name":"a"}]}}'
    batch = f"[{text(tool('a'), tool('ö'))}, {other} ,{text(tool('ö'), tool('a'))}]"
    assert filtered(batch, "a") == f"[{text(tool('ö'))}, {other} ,{text(tool('ö'))}]"


@pytest.mark.parametrize(
    ("said", "limit", "left"),
    [
        ("0", 0, "0"),
        ("1", 0, "0"),
        ("600000", 5000, "5000"),
        ("5000", 5000, "5000"),
        ("5001", 5000, "5000"),
        ("4", 5000, "4"),
        ("9" * 5000, 5000, "5000"),
        ("-5", 5000, "0"),
        ("1e3", 5000, "0"),
        ("10.0", 5000, "0"),
        ("null", 5000, "0"),
        ('"7"', 5000, "0"),
        ('{"a":[1]}', 5000, "0"),
    ],
)
def test_a_lifetime_is_clamped_and_never_raised(said: str, limit: int, left: str) -> None:
    assert filtered(text(more=f', "ttlMs" :{said} ,"x":1'), ttl_ms=limit) == text(more=f', "ttlMs" :{left} ,"x":1')


@pytest.mark.parametrize("said", ['"public"', '"Private"', "null", "7", '{"private":true}'])
def test_a_scope_becomes_private_for_a_known_caller_alone(said: str) -> None:
    data = text(more=f',"cacheScope":{said}')
    assert filtered(data, is_private=False) == data
    assert filtered(data, is_private=True) == text(more=',"cacheScope":"private"')


def test_hints_are_never_added() -> None:
    """PROTOCOL 3: a revision without hints gets none."""
    assert filtered(text(tool("a")), ttl_ms=0, is_private=True) == text(tool("a"))


def test_nothing_is_edited_when_nothing_changes() -> None:
    found = find_lists(text(tool("ä"), more=',"ttlMs":3,"cacheScope":"private"').encode())
    assert found is not None
    assert found.edits(lambda _: True, ttl_ms=3, is_private=True) == []


def test_hints_before_the_list_are_edited_too() -> None:
    data = '{"result":{"ü":1,"cacheScope":"public","ttlMs":9,"tools":[{"name":"a"},{"name":"b"}]}}'
    wanted = '{"result":{"ü":1,"cacheScope":"private","ttlMs":0,"tools":[{"name":"b"}]}}'
    assert filtered(data, "a", is_private=True) == wanted


A_LIST = '"tools":[{"name":"a"}]'


@pytest.mark.parametrize(
    "data",
    [
        f'{{"result":{{{A_LIST}}}',
        f'{{"result":{{{A_LIST}}}}} x',
        f'{{"result":{{{A_LIST},"n":NaN}}}}',
        f'\ufeff{{"result":{{{A_LIST}}}}}',
        f"not json: {A_LIST}",
        "not json: \\u0074",
        f'{{"result":{{{A_LIST}}},"result":{{}}}}',
        f'{{"result":{{}},"result":{{{A_LIST}}}}}',
        f'{{"result":{{}},"Result":{{{A_LIST}}}}}',
        f'{{"RESULT":{{{A_LIST}}}}}',
        f'{{"re\u017fult":{{{A_LIST}}}}}',
        f'{{"result":{{{A_LIST},{A_LIST}}}}}',
        f'{{"result":{{{A_LIST},"Tools":[]}}}}',
        '{"result":{"tool\u017f":[{"name":"a"}]}}',
        '{"result":{"TOOLS":[{"name":"a"}]}}',
        f'{{"result":{{{A_LIST},"ttlMs":0,"ttlMs":9}}}}',
        f'{{"result":{{{A_LIST},"TTLms":9}}}}',
        f'{{"result":{{{A_LIST},"cachescope":"public"}}}}',
        '{"result":{"tools":[{"name":"a","name":"b"}]}}',
        '{"result":{"tools":[{"name":"b","Name":"a"}]}}',
        '{"result":{"tools":[{"NAME":"a"}]}}',
        '{"result":{"tools":[{"name":"b","n\\u0061me":"a"}]}}',
        '{"result":{"tools":null}}',
        '{"result":{"tools":{"a":{"name":"a"}}}}',
        '{"result":{"tools":"a"}}',
        '{"result":{"tools":["a"]}}',
        '{"result":{"tools":[null]}}',
        '{"result":{"tools":[[{"name":"a"}]]}}',
        '{"result":{"tools":[{"title":"a"}]}}',
        '{"result":{"tools":[{"name":5}]}}',
        '{"result":{"tools":[{"name":null}]}}',
        '{"result":{"tools":[{"name":{"a":1}}]}}',
        '{"result":{"tools":[{"name":"\\ud800"}]}}',
        '{"result":{"tools":[{"name":"b\\udc00"}]}}',
        f'[{{"result":{{}}}},{{"result":{{{A_LIST}}},"Result":1}}]',
        f'{{"result":{{{A_LIST},"deep":{"[" * 200}{"]" * 200}}}}}',
    ],
)
def test_a_list_that_two_readers_could_take_differently_is_refused(data: str) -> None:
    """DESIGN 3: what cannot be read without doubt fails closed."""
    with pytest.raises(UnreadableList):
        find_lists(data.encode())


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32-be", "latin-1"])
def test_a_list_that_is_not_utf_8_is_refused(encoding: str) -> None:
    with pytest.raises(UnreadableList):
        find_lists(text(tool("ä")).encode(encoding))


def test_an_error_does_not_quote_what_it_is_about() -> None:
    with pytest.raises(UnreadableList) as refused:
        find_lists(b'{"result":{"tools":[{"secret":"secret"}]}}')
    assert "secret" not in str(refused.value)


def big(tools: int) -> bytes:
    properties: dict[str, Any] = {f"p{i}": {"type": "string", "description": "a parameter"} for i in range(6)}
    schema = {"type": "object", "properties": properties, "required": ["p1"]}
    listed = [{"name": f"t{i}", "description": "does a thing " * 20, "inputSchema": schema} for i in range(tools)]
    return json.dumps({"id": 1, "result": {"tools": listed, "ttlMs": 60000}}).encode()


def test_a_held_list_takes_less_memory_than_its_text() -> None:
    data = big(1_000)
    tracemalloc.start()
    try:
        found = find_lists(data)
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found is not None
    assert len(found.names) == 1_000
    assert held_bytes < len(data)


@pytest.mark.parametrize("prefix", ["", "ä"], ids=["ASCII", "not ASCII"])
def test_the_cost_of_filtering_is_linear(prefix: str) -> None:
    def cpu_s(tools: int) -> float:
        data = big(tools).decode().replace("does", prefix + "does")
        started = time.process_time()
        filtered(data, *(f"t{i}" for i in range(0, tools, 2)))
        return time.process_time() - started

    assert min(cpu_s(2_000) for _ in range(3)) / min(cpu_s(250) for _ in range(3)) < 24  # 8 when linear

"""JSON text is read strictly, and every value that decides has its place (RFC 8259; PROTOCOL 10.4 rules 3 and 4)."""

import json
from typing import Any

import pytest

from proxy.jsonplaces import Array, Document, Listed, Member, Node, Object, Opaque, Shape
from proxy.jsonplaces import read as read_places
from proxy.jsontext import MAX_DEPTH, MAX_VALUES, NotJson, Number
from tests.not_json import NOT_JSON

FLAT = Shape()
PAIR = Shape({"in": Shape()}, elements=Shape({"in": Shape()}))


def read(body: bytes, shape: Shape, *, max_walked: int = 20_000) -> Document:
    return read_places(body, shape, max_walked=max_walked)


def decoded(node: Node) -> Any:
    """The value of a node, of duplicates the last."""
    match node:
        case Object(members):
            return {member.name: decoded(member.node) for member in members}
        case Array(elements):
            return [decoded(element) for element in elements]
        case Opaque(value):
            return value
    raise AssertionError("the values of a listed object are not kept")


def _nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def test_a_walked_object_knows_the_place_of_each_member() -> None:
    document = read(b' {"a": 1, "in": {"b":[2]} }\n', PAIR)

    inner = Object((Member("b", Opaque([Number("2")], 21, 24)),), 16, 25)
    assert document.root == Object((Member("a", Opaque(Number("1"), 7, 8)), Member("in", inner)), 1, 27)
    assert document.text[16:25] == '{"b":[2]}'


def test_positions_count_characters_not_bytes() -> None:
    document = read('{"ñ":"ü"}'.encode(), FLAT)

    assert document.root == Object((Member("ñ", Opaque("ü", 5, 8)),), 0, 9)


def test_every_element_of_a_walked_array_is_walked() -> None:
    root = read(b'[ {"in":{}} , 1 ]', PAIR).root

    inner = Object((Member("in", Object((), 8, 10)),), 2, 11)
    assert root == Array((inner, Opaque(Number("1"), 14, 15)), 0, 17)


def test_an_array_below_an_element_is_not_walked() -> None:
    assert read(b"[[{}]]", PAIR).root == Array((Opaque([{}], 1, 5),), 0, 6)


def test_a_member_outside_the_shape_is_opaque_and_its_duplicates_are_not_looked_for() -> None:
    root = read(b'{"x":{"a":1,"a":2}}', PAIR).root

    assert root == Object((Member("x", Opaque({"a": Number("2")}, 5, 18)),), 0, 19)


@pytest.mark.parametrize("text", [b"{}", b"[]", b" \t\r\n[ ] ", b"{ }"])
def test_empty_containers_are_read(text: bytes) -> None:
    assert decoded(read(text, PAIR).root) == json.loads(text)


def test_duplicates_are_kept_in_their_order_and_get_finds_the_first() -> None:
    root = read(b'{"a":1,"a":2}', FLAT).root

    assert isinstance(root, Object)
    assert [member.name for member in root.members] == ["a", "a"]
    assert root.get("a") == Opaque(Number("1"), 5, 6)
    assert root.get("b") is None


def test_names_are_decoded() -> None:
    root = read(rb'{"n\u0061me":"\/\ud83d\ude00"}', FLAT).root

    assert decoded(root) == {"name": "/\U0001f600"}


@pytest.mark.parametrize("spelling", ["7", "-0", "1E2", "7.0", "1e400", "9" * 5000])
def test_a_number_keeps_its_spelling(spelling: str) -> None:
    value = decoded(read(spelling.encode(), FLAT).root)

    assert type(value) is Number
    assert value == spelling


def test_decoded_is_what_a_last_wins_reader_sees() -> None:
    text = b'[{"in":{"a":null},"b":true,"b":false},"s"]'

    assert decoded(read(text, PAIR).root) == json.loads(text)


@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON.keys())
@pytest.mark.parametrize("shape", [FLAT, PAIR], ids=["flat", "walked"])
def test_what_is_not_one_document_of_rfc_8259_is_refused(shape: Shape, body: bytes) -> None:
    with pytest.raises(NotJson):
        read(body, shape)


@pytest.mark.parametrize("shape", [FLAT, PAIR], ids=["flat", "walked"])
def test_the_deepest_allowed_nesting_is_read(shape: Shape) -> None:
    assert read(_nested(MAX_DEPTH), shape).root.end == 2 * MAX_DEPTH


@pytest.mark.parametrize(
    "body",
    [
        _nested(MAX_DEPTH + 1),
        _nested(100_000),
        b'{"a":' * 2000 + b"1" + b"}" * 2000,
        b"[" * 400_000,
        b"[" + b"[]," * MAX_DEPTH + _nested(MAX_DEPTH) + b"]",
        b'["' + b'\\"]' * 500 + b'",' + _nested(MAX_DEPTH) + b"]",
    ],
    ids=["one more", "very deep", "objects", "never closed", "after shallow ones", "past brackets in a string"],
)
def test_deeper_nesting_is_refused(body: bytes) -> None:
    with pytest.raises(NotJson, match="nested too deeply"):
        read(body, FLAT)


@pytest.mark.parametrize(
    "text", [b"[" + b"[]," * 500 + b"[]]", b'["' + b"[" * 500 + b'"]', rb'["\"' + b"[" * 500 + rb'\\",[]]']
)
def test_many_brackets_are_not_depth(text: bytes) -> None:
    assert decoded(read(text, FLAT).root) == json.loads(text)


def test_more_closings_than_openings_are_refused() -> None:
    with pytest.raises(NotJson):
        read(b"]" * 500 + b"[" * 500, FLAT)


def test_what_is_walked_is_bounded_and_what_is_not_is_free() -> None:
    """Each member that is looked at costs everybody's time, so one request may not have a million."""
    walked, opaque = b'{"a":1,"b":[1,2,3,4]}', b'{"a":[1,2,3,4,5,6,7,8]}'

    assert decoded(read(walked, Shape(), max_walked=2).root) == {"a": "1", "b": ["1", "2", "3", "4"]}
    read(opaque, Shape(), max_walked=1)
    with pytest.raises(NotJson, match="too many"):
        read(walked, Shape(), max_walked=1)
    with pytest.raises(NotJson, match="too many"):
        read(b"[" + b"{}," * 20_000 + b"{}]", Shape(elements=Shape()))


def test_millions_of_values_are_refused_and_millions_of_commas_in_a_text_are_not() -> None:
    with pytest.raises(NotJson, match="too many values"):
        read(b'{"a":[' + b"1," * MAX_VALUES + b"1]}", FLAT)
    text = b'{"a":"' + b',[{\\"' * MAX_VALUES + b'"}'
    assert len(decoded(read(text, FLAT).root)["a"]) == 4 * MAX_VALUES
    assert len(decoded(read(b"[" + b"1," * (MAX_VALUES - 2) + b"1]", FLAT).root)) == MAX_VALUES - 1


LISTED = Shape(elements=Shape(kept="name"))


def test_a_listed_object_tells_its_members_and_the_value_of_one() -> None:
    text = b'[{"name":"x","a":{"b":[1,{"c":2}]},"name":"y"} , {}, {"a":1} ,7]'

    assert read(text, LISTED).root == Array(
        (
            Listed(("name", "a", "name"), "y", 1, 46),
            Listed((), None, 49, 51),
            Listed(("a",), None, 53, 60),
            Opaque(Number("7"), 62, 63),
        ),
        0,
        64,
    )


@pytest.mark.parametrize("text", NOT_JSON.values(), ids=NOT_JSON)
def test_a_listed_object_is_read_as_strictly(text: bytes) -> None:
    with pytest.raises(NotJson):
        read(b'[{"name":' + text + b"}]", LISTED)


def test_a_listed_object_may_not_be_deeper_than_any_other() -> None:
    read(b'[{"a":' + _nested(MAX_DEPTH - 2) + b"}]", LISTED)
    for depth in (MAX_DEPTH - 1, 5_000):
        with pytest.raises(NotJson, match="deeply"):
            read(b'[{"a":' + _nested(depth) + b"}]", LISTED)


def test_the_members_of_listed_objects_count() -> None:
    read(b'[{"a":1,"b":2}]', LISTED, max_walked=3)
    with pytest.raises(NotJson, match="too many"):
        read(b'[{"a":1,"b":2}]', LISTED, max_walked=2)


def test_thousands_of_digits_in_a_listed_object_are_not_read() -> None:
    assert read(b'[{"a":' + b"9" * 100_000 + b"}]", LISTED).root == Array(
        (Listed(("a",), None, 1, 100_007),), 0, 100_008
    )

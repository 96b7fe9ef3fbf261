"""JSON text is read strictly, duplicates and numbers as they stand (RFC 8259; PROTOCOL 10.4 rules 3 and 4)."""

from typing import Any

import pytest

from proxy.jsontext import MAX_DEPTH, MAX_VALUES, NotJson, Number, ambiguity, decode, has_lone_surrogate, string
from tests.not_json import NOT_JSON

DECIDING = {"params": "params", "_meta": "_meta", "taskid": "taskId"}


def test_a_value_and_its_pairs_are_the_same_text() -> None:
    decoded = decode(b' {"a":[{"b":1E2,"c":{}}],"a":[{"b":7,"b":"x"},[]]} ')

    assert decoded.value == {"a": [{"b": "x"}, []]}
    assert decoded.pairs == (
        ("a", [(("b", 3), ("c", ()))]),
        ("a", [(("b", 1), ("b", "x")), []]),
    )
    assert decoded.text == ' {"a":[{"b":1E2,"c":{}}],"a":[{"b":7,"b":"x"},[]]} '


@pytest.mark.parametrize("spelling", ["7", "-0", "1E2", "7.0", "1e400", "9" * 5000])
def test_a_number_keeps_its_spelling(spelling: str) -> None:
    value = decode(spelling.encode()).value

    assert (type(value), value) == (Number, spelling)


@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON)
def test_what_is_not_one_document_of_rfc_8259_is_refused(body: bytes) -> None:
    with pytest.raises(NotJson):
        decode(body)


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 5_000, 200_000])
def test_deeper_nesting_is_refused(depth: int) -> None:
    decode(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    with pytest.raises(NotJson, match="nested too deeply"):
        decode(b"[" * depth + b"]" * depth)


def test_millions_of_values_are_refused() -> None:
    with pytest.raises(NotJson, match="too many values"):
        decode(b'{"a":[' + b"1," * MAX_VALUES + b"1]}")


@pytest.mark.parametrize(
    ("value", "expected"), [("7", "7"), ("", ""), (Number("7"), None), (None, None), (True, None), ({}, None)]
)
def test_only_a_json_string_is_a_string(value: Any, expected: str | None) -> None:
    assert string(value) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], None),
        (["params", "_meta", "taskId", "Other"], None),
        (["params", "params"], "params"),
        (["other", "Other"], "Other"),
        (["stra\u00dfe", "STRASSE"], "STRASSE"),
        (["Params"], "Params"),
        (["param\u017f"], "param\u017f"),
        (["ta\u017f\u212aId"], "ta\u017f\u212aId"),
        (["taskid"], "taskid"),
        (["params ", "params\x00", "\ufeffparams", "params"], None),
    ],
)
def test_a_name_is_ambiguous_when_a_reader_that_folds_case_takes_it_for_another(
    names: list[str], expected: str | None
) -> None:
    assert ambiguity(names, DECIDING) == expected


def test_a_lone_surrogate_is_seen() -> None:
    assert [has_lone_surrogate(text) for text in ("a", "\U0001f600", "a\ud800", "\udc00")] == [False, False, True, True]

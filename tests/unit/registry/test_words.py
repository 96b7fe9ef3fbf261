"""A name, a title and a sentence meet in the same stems."""

import pytest

from registry.words import FORM, name_stems, stems


@pytest.mark.parametrize("text", ["delete repository", "Deleting repositories", "DELETED_repository!"])
def test_forms_of_a_word_have_one_stem(text: str) -> None:
    assert stems(text) == ["delet", "repositori"]


def test_stems_keep_their_order_and_are_repeated_as_they_are() -> None:
    assert stems("file, issue; file") == ["file", "issu", "file"]


@pytest.mark.parametrize("text", ["", " ", "?!", "___", "\u2014 \U0001f600", "\ud800"])
def test_a_text_without_words_has_no_stems(text: str) -> None:
    assert stems(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("snake_case", ["snake", "case"]),
        ("kebab-case", ["kebab", "case"]),
        ("dotted.name/path", ["dot", "name", "path"]),
        ("s3 2fa", ["s3", "2fa"]),
        ("STRASSE Stra\u00dfe", ["strass", "strass"]),
        ("\u540d\u524d", ["\u540d\u524d"]),
    ],
)
def test_a_word_is_a_run_of_letters_and_digits_in_any_case(text: str, expected: list[str]) -> None:
    assert stems(text) == expected


def test_a_sentence_is_not_split_where_the_case_changes() -> None:
    assert stems("on GitHub") == ["on", "github"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("deleteRepository", ["delet", "repositori"]),
        ("delete_repository", ["delet", "repositori"]),
        ("HTTPServer", ["http", "server"]),
        ("getURL", ["get", "url"]),
        ("s3Bucket", ["s3", "bucket"]),
        ("", []),
    ],
)
def test_a_name_is_split_where_people_read_a_boundary(name: str, expected: list[str]) -> None:
    assert name_stems(name) == expected


def test_the_form_is_raised_with_the_stems_that_this_file_pins() -> None:
    assert FORM == 1

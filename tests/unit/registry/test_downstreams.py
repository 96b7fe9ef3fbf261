"""Two spellings of one downstream have one form (DESIGN 2; RFC 3986 6.2)."""

import pytest

from registry.downstreams import normal_form, origin

SAME = [
    (
        "http://lab.example:80/a/mcp?x=1",
        [
            "http://lab.example/a/mcp?x=1",
            "HTTP://LAB.Example/a/mcp?x=1",
            "http://lab.example./a/mcp?x=1",
            "http://lab.example/a/./b/../mcp?x=1",
            "http://lab.example/%61/mcp?x=%31",
        ],
    ),
    ("https://lab.example:443/", ["https://lab.example", "https://lab.example/", "https://lab.example/a/.."]),
    (
        "http://127.0.0.1:9/mcp",
        ["http://127.0.0.1:9/mcp", "http://127.1:9/mcp", "http://0x7f.1:9/mcp", "http://2130706433:9/mcp"],
    ),
    ("http://::1:9/mcp", ["http://[::1]:9/mcp", "http://[0:0:0:0:0:0:0:1]:9/mcp", "http://[::0001]:9/mcp"]),
    ("http://lab:80/a%2Fb%3F", ["http://lab/a%2fb%3f", "http://lab/a%2Fb%3F"]),
]


@pytest.mark.parametrize(("form", "url"), [(form, url) for form, urls in SAME for url in urls])
def test_every_spelling_has_the_one_form(form: str, url: str) -> None:
    assert normal_form(url) == form


@pytest.mark.parametrize(
    "other",
    [
        "https://lab.example/a/mcp?x=1",
        "http://lab.example:81/a/mcp?x=1",
        "http://lab2.example/a/mcp?x=1",
        "http://lab.example/A/mcp?x=1",
        "http://lab.example/a/mcp/?x=1",
        "http://lab.example/a%2Fmcp?x=1",
        "http://lab.example/a/mcp?x=2",
        "http://lab.example/a/mcp",
        "http://lab.example/a//mcp?x=1",
    ],
)
def test_another_downstream_has_another_form(other: str) -> None:
    assert normal_form(other) != normal_form("http://lab.example/a/mcp?x=1")


def test_where_a_url_leads_to() -> None:
    assert [origin("https://Lab./x"), origin("http://0x7f.1:9/")] == [("lab", 443), ("127.0.0.1", 9)]

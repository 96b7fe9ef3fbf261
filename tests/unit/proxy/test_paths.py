"""An address means one server or none, and nothing is decoded to find it (DESIGN 1; RFC 9112 section 3.2)."""

import pytest

from proxy.paths import Target, server_path, split_target


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("/proxy/github", Target("/proxy/github", "")),
        ("/proxy/github?", Target("/proxy/github", "")),
        ("/proxy/a?x=1", Target("/proxy/a", "x=1")),
        ("/a?x=1?y=/&%zz=%", Target("/a", "x=1?y=/&%zz=%")),
        ("/a?sig=a%27b%28c%29&x=%2B+%20&flag", Target("/a", "sig=a%27b%28c%29&x=%2B+%20&flag")),
        ("/%6dcp;a=b/..//", Target("/%6dcp;a=b/..//", "")),
        ("//a", Target("//a", "")),
    ],
)
def test_a_target_is_split_at_its_first_question_mark_and_otherwise_kept(raw: str, expected: Target) -> None:
    assert split_target(raw) == expected


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "*",
        "a",
        "http://127.0.0.1/a",
        "127.0.0.1:80",
        "?x=1",
        "/a#f",
        "/a?x#f",
        "/a b",
        "/a?x y",
        "/a\n",
        "/a\r\nX: y",
        "/a?\x00",
        "/a\x7f",
        "/ñ",
        "/a?ñ",
    ],
)
def test_a_target_that_readers_take_differently_is_none(raw: str) -> None:
    assert split_target(raw) is None


@pytest.mark.parametrize("path", ["/github", "/a/b", "/0", "/a.b_c-d", "/mcp/a", "/sse/a", "/mcpx", "/a/ssex", "/a..b"])
@pytest.mark.parametrize("alias", ["", "/", "/mcp"])
def test_a_server_is_reached_at_its_path_and_at_the_aliases_of_it(path: str, alias: str) -> None:
    assert server_path(path + alias) == path


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "/",
        "//",
        "/mcp",
        "/sse",
        "/mcp/",
        "/mcp/mcp",
        "github",
        "//github",
        "/github//",
        "/github/mcp/",
        "/github/mcp/mcp",
        "/github//mcp",
        "/github/sse",
        "/github/MCP",
        "/GitHub",
        "/github%2f",
        "/%67ithub",
        "/github/.",
        "/github/..",
        "/./github",
        "/x/../github",
        "/.hidden",
        "/-a",
        "/a;b=c",
        "/a\n",
        "/a\x00",
        "/ñ",
        "/a?x",
    ],
)
def test_any_other_address_is_no_servers(raw: str) -> None:
    assert server_path(raw) is None

"""Where a reference leads, in our own addresses (DESIGN 3; RFC 3986 5.2)."""

from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.locations import Place, Unmappable, mapped

PLAIN = Place("http://lab:8000/a/mcp", "", "/proxy/lab")
ASKED = Place("http://lab:8000/a/mcp", "page=1", "/gw/proxy/lab")
QUERIED = Place("https://lab/mcp?tenant=7", "", "/proxy/lab")


@pytest.mark.parametrize(
    ("place", "reference", "ours"),
    [
        (PLAIN, "http://lab:8000/a/mcp?page=2", "/proxy/lab?page=2"),
        (PLAIN, "HTTP://LAB:8000/a/mcp?page=2#x", "/proxy/lab?page=2#x"),
        (PLAIN, "//lab:8000/a/mcp?page=2", "/proxy/lab?page=2"),
        (PLAIN, "/a/mcp?page=2", "/proxy/lab?page=2"),
        (PLAIN, "/a/b/.././mcp?page=2", "/proxy/lab?page=2"),
        (PLAIN, "mcp?page=2", "/proxy/lab?page=2"),
        (PLAIN, "../a/mcp?page=2", "/proxy/lab?page=2"),
        (PLAIN, "?page=2", "/proxy/lab?page=2"),
        (ASKED, "?page=2", "/gw/proxy/lab?page=2"),
        (ASKED, "/a/mcp", "/gw/proxy/lab"),
        (QUERIED, "/mcp?tenant=7&page=2", "/proxy/lab?page=2"),
        (QUERIED, "https://lab:443/mcp?tenant=7&page=2", "/proxy/lab?page=2"),
        (Place("http://[::1]:80/mcp", "", "/proxy/six"), "http://[::1]/mcp?a", "/proxy/six?a"),
        (Place("http://lab", "", "/proxy/root"), "/?a=1", "/proxy/root?a=1"),
    ],
)
def test_a_reference_to_the_same_endpoint_leads_to_ours(place: Place, reference: str, ours: str) -> None:
    assert mapped(reference, place) == ours


@pytest.mark.parametrize(
    ("place", "reference", "cause"),
    [
        (PLAIN, "http://lab:8000/a/mcp", "to itself"),
        (PLAIN, "#x", "to itself"),
        (PLAIN, ".", "to a path that is not served"),
        (ASKED, "?page=1", "to itself"),
        (ASKED, "#x", "to itself"),
        (QUERIED, "?tenant=7", "to itself"),
        (QUERIED, "?tenant=8&page=2", "to a path that is not served"),
        (QUERIED, "/mcp", "to a path that is not served"),
        (PLAIN, "/a/mcp/", "to another spelling of its own address"),
        (PLAIN, "/a/mcp/?page=2", "to another spelling of its own address"),
        (PLAIN, "/a/other", "to a path that is not served"),
        (PLAIN, "/a/mcp/..", "to a path that is not served"),
        (PLAIN, "https://lab:8000/a/mcp?page=2", "to another origin"),
        (PLAIN, "http://lab:8001/a/mcp?page=2", "to another origin"),
        (PLAIN, "http://lab/a/mcp?page=2", "to another origin"),
        (PLAIN, "http://evil.example/a/mcp?page=2", "to another origin"),
        (PLAIN, "//evil.example/a/mcp?page=2", "to another origin"),
        (PLAIN, "http://lab:8000@evil.example/a/mcp?page=2", "to another origin"),
        (PLAIN, "http://user@lab:8000/a/mcp?page=2", "to another origin"),
        (PLAIN, "http:/a/mcp?page=2", "to another origin"),
        (PLAIN, "javascript:alert(1)", "to another origin"),
        (PLAIN, "data:text/html,x", "to another origin"),
        (PLAIN, "", "to what is no address"),
        (PLAIN, "/a/mcp?x y", "to what is no address"),
        (PLAIN, "\\\\evil.example/a/mcp", "to what is no address"),
        (PLAIN, "/a/mcp?\u00e9", "to what is no address"),
    ],
)
def test_a_reference_that_leads_nowhere_here_says_where(place: Place, reference: str, cause: str) -> None:
    with pytest.raises(Unmappable, match=f"^{cause}$"):
        mapped(reference, place)


pieces = st.sampled_from(
    [
        *("http:", "https:", "//", "/", "..", ".", "a", "mcp", "lab"),
        *(":8000", "@", "?", "page=2", "&", "#", "%2e", "\\"),
    ]
)


@given(st.lists(pieces, max_size=10).map("".join))
def test_no_reference_is_told_as_ours_that_leads_elsewhere(reference: str) -> None:
    """Against the standard library's reading of the same reference."""
    try:
        ours = mapped(reference, PLAIN)
    except Unmappable:
        return
    assert ours.startswith("/proxy/lab?")
    meant = urlsplit(urljoin(PLAIN.url, reference))
    assert (meant.scheme, meant.netloc.lower(), meant.path) == ("http", "lab:8000", "/a/mcp")
    assert urlsplit(ours).query == meant.query

"""The head of an answer as it goes back (DESIGN 3; RFC 9110 7.6.1, 10.2.2, 15.4)."""

import pytest

from proxy.errors import DownstreamUnusable
from proxy.locations import Place
from proxy.ports import Fields
from proxy.returned import check_redirect, returned_fields

PLACE = Place("http://lab:8000/mcp", "", "/proxy/lab")
SANDBOX = (("X-Content-Type-Options", "nosniff"), ("Content-Security-Policy", "sandbox"))


def _typed(value: str) -> Fields:
    return (("Content-Type", value),)


def test_what_is_meant_for_the_client_is_returned_in_order_as_it_came() -> None:
    fields = (
        ("mcp-session-id", "s"),
        ("Content-Type", "text/event-stream"),
        ("Cache-Control", "no-store"),
        ("WWW-Authenticate", "Bearer"),
        ("Retry-After", "1"),
        ("X-Accel-Buffering", "no"),
        ("Server", "s"),
        ("ETag", '"x"'),
        ("Link", "<a>"),
        ("Link", "<b>"),
    )

    assert returned_fields(fields, PLACE, may_be_edited=False) == (*fields, *SANDBOX)


@pytest.mark.parametrize("may_be_edited", [True, False])
@pytest.mark.parametrize(
    "name",
    [
        "Connection",
        "Keep-Alive",
        "Proxy-Authenticate",
        "Trailer",
        "Transfer-Encoding",
        "Upgrade",
        "Content-Length",
        "Set-Cookie",
        "Set-Cookie2",
        "Content-Location",
        "Refresh",
        "Service-Worker-Allowed",
        "Clear-Site-Data",
        "Alt-Svc",
        "Access-Control-Allow-Origin",
        "Access-Control-Expose-Headers",
        "X-Content-Type-Options",
        "Content-Security-Policy",
    ],
)
def test_what_would_bind_our_origin_or_this_connection_is_not_returned(name: str, may_be_edited: bool) -> None:
    assert returned_fields(((name, "x"), (name.lower(), "y")), PLACE, may_be_edited=may_be_edited) == SANDBOX


def test_what_connection_lists_is_not_returned() -> None:
    fields = (("Connection", "X-Internal, keep-alive"), ("X-Internal", "secret"), ("X-Keep", "1"))

    assert returned_fields(fields, PLACE, may_be_edited=False) == (("X-Keep", "1"), *SANDBOX)


@pytest.mark.parametrize("name", ["ETag", "Content-MD5", "Digest", "Repr-Digest", "Content-Digest"])
def test_nothing_vouches_for_the_bytes_of_a_body_that_may_be_edited(name: str) -> None:
    assert returned_fields(((name, "x"),), PLACE, may_be_edited=True) == SANDBOX
    assert returned_fields(((name, "x"),), PLACE, may_be_edited=False) == ((name, "x"), *SANDBOX)


@pytest.mark.parametrize("value", ["application/json", "text/event-stream", "Application/JSON; charset=utf-8"])
def test_json_and_event_streams_keep_their_type(value: str) -> None:
    assert returned_fields(_typed(value), PLACE, may_be_edited=False) == (*_typed(value), *SANDBOX)


@pytest.mark.parametrize(
    "fields", [_typed("text/html"), _typed("image/svg+xml"), _typed(""), _typed("application/json") * 2]
)
def test_any_other_type_goes_out_as_text(fields: Fields) -> None:
    returned = returned_fields((*fields, ("X-A", "1")), PLACE, may_be_edited=False)

    assert returned == (("X-A", "1"), ("Content-Type", "text/plain"), *SANDBOX)


def test_no_type_is_made_up_for_a_body_without_one() -> None:
    assert returned_fields((("X-A", "1"),), PLACE, may_be_edited=False) == (("X-A", "1"), *SANDBOX)


def test_a_location_is_told_in_our_own_address() -> None:
    fields = (("Location", "http://lab:8000/mcp?page=2"), ("X-A", "1"))
    assert returned_fields(fields, PLACE, may_be_edited=False) == (
        ("X-A", "1"),
        ("Location", "/proxy/lab?page=2"),
        *SANDBOX,
    )


@pytest.mark.parametrize("location", ["http://elsewhere/", "/other", "", "/mcp"])
def test_a_location_that_leads_nowhere_here_is_left_out(location: str) -> None:
    assert returned_fields((("location", location),), PLACE, may_be_edited=False) == SANDBOX


def test_cookies_are_returned_only_where_they_pass_and_bound_to_the_servers_path() -> None:
    fields = (("Set-Cookie", "a=1; Path=/; Domain=lab"), ("Set-Cookie", "b=2; HttpOnly"))
    assert returned_fields(fields, PLACE, may_be_edited=False) == SANDBOX
    assert returned_fields(fields, PLACE, may_be_edited=False, passes_cookies=True) == (
        ("Set-Cookie", "a=1; Path=/proxy/lab"),
        ("Set-Cookie", "b=2; HttpOnly; Path=/proxy/lab"),
        *SANDBOX,
    )


@pytest.mark.parametrize("status", [300, 301, 302, 303, 305, 307, 308, 399])
@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ((), "without saying where"),
        ((("Location", "/a"), ("location", "/a")), "to several places"),
        ((("Location", "http://evil.example/mcp?x=1"),), "to another origin"),
        ((("Location", "/mcp/"),), "to another spelling of its own address"),
        ((("Location", "/mcp"),), "to itself"),
    ],
)
def test_a_redirect_that_cannot_be_followed_here_says_why(status: int, fields: Fields, cause: str) -> None:
    with pytest.raises(DownstreamUnusable, match=f"^the downstream redirects {cause}$"):
        check_redirect(status, fields, PLACE)


@pytest.mark.parametrize("status", [200, 201, 202, 304, 404, 500])
def test_what_is_no_redirect_needs_no_place(status: int) -> None:
    check_redirect(status, (("Location", "http://evil.example/"),), PLACE)


def test_a_redirect_that_can_be_followed_here_passes() -> None:
    check_redirect(307, (("Location", "?page=2"),), PLACE)

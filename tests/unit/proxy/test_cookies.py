"""Cookies of one downstream, kept apart (DESIGN 3; RFC 6265)."""

import pytest

from proxy.cookies import forwarded, returned


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("a=1", "a=1"),
        ("a=1; b=2", "a=1; b=2"),
        ("a=1; sluicegate_session=x; b=2", "a=1; b=2"),
        ("__Host-Sluicegate=x; a=1", "a=1"),
        ("a=1;__secure-sluicegate_x=1", "a=1"),
        ("notsluicegate=1", "notsluicegate=1"),
        ("flag", "flag"),
    ],
)
def test_a_downstream_gets_the_cookies_less_ours(given: str, kept: str) -> None:
    assert list(forwarded((("X-A", "1"), ("cookie", given)))) == [("X-A", "1"), ("cookie", kept)]


def test_a_field_with_none_but_ours_is_left_out() -> None:
    assert list(forwarded((("Cookie", "sluicegate=x"), ("Cookie", "a=1")))) == [("Cookie", "a=1")]


@pytest.mark.parametrize(
    ("given", "bound"),
    [
        ("a=1", "a=1; Path=/proxy/lab"),
        ("a=1; Path=/", "a=1; Path=/proxy/lab"),
        ("a=1;path=/admin;DOMAIN=example.com;Secure", "a=1; Secure; Path=/proxy/lab"),
        ("a=1; Max-Age=5; Path=/x; Path=/; SameSite=None; ", "a=1; Max-Age=5; SameSite=None; Path=/proxy/lab"),
        ("a=", "a=; Path=/proxy/lab"),
        ("__Secure-a=1; Secure", "__Secure-a=1; Secure; Path=/proxy/lab"),
    ],
)
def test_a_cookie_is_bound_to_the_servers_path(given: str, bound: str) -> None:
    assert list(returned((("X-A", "1"), ("set-cookie", given)), "/proxy/lab")) == [("Set-Cookie", bound)]


@pytest.mark.parametrize(
    "given",
    ["__Host-a=1; Path=/; Secure", "__HOST-a=1", "sluicegate=1", "Sluicegate_session=1", "=1", "flag", "", ";a=1"],
)
def test_a_cookie_that_cannot_be_bound_or_is_ours_does_not_pass(given: str) -> None:
    assert list(returned((("Set-Cookie", given),), "/proxy/lab")) == []

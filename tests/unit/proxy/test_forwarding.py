"""Who asks, behind proxies that are trusted, and behind those that are not."""

from ipaddress import ip_network

import pytest

from proxy.forwarding import Arrival, arrival

TRUSTED = tuple(map(ip_network, ("10.0.0.0/8", "2001:db8::/32")))
PEER = "10.0.0.1"


def came(*fields: tuple[str, str], peer: str = PEER) -> Arrival:
    return arrival(peer, "http", (("Host", "inner:8470"), *fields), TRUSTED)


SAID = (("X-Forwarded-For", "192.0.2.7"), ("X-Forwarded-Host", "mcp.example.com"), ("X-Forwarded-Proto", "https"))


def test_a_trusted_proxy_tells_client_host_and_scheme() -> None:
    assert came(*SAID) == Arrival("192.0.2.7", "mcp.example.com", "https")


@pytest.mark.parametrize("peer", ["192.0.2.1", "11.0.0.1", "::1", "", "/run/socket"])
def test_of_anybody_else_the_fields_have_no_effect(peer: str) -> None:
    assert came(*SAID, peer=peer) == Arrival(peer, "inner:8470", "http")


def test_without_trusted_proxies_nobody_is_believed() -> None:
    assert arrival(PEER, "https", (("Host", "a"), *SAID), ()) == Arrival(PEER, "a", "https")


def test_a_trusted_proxy_that_says_nothing_is_the_client() -> None:
    assert came() == Arrival(PEER, "inner:8470", "http")


@pytest.mark.parametrize(
    ("lines", "client"),
    [
        (["192.0.2.7"], "192.0.2.7"),
        (["198.51.100.9, 192.0.2.7"], "192.0.2.7"),  # what the client itself wrote stands to the left
        (["192.0.2.7, 10.0.0.2, 10.0.0.3"], "192.0.2.7"),
        (["192.0.2.7", "10.0.0.2,10.0.0.3"], "192.0.2.7"),
        (["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        (["192.0.2.7, unknown"], PEER),
        (["192.0.2.7, unknown, 10.0.0.2"], "10.0.0.2"),
        (["192.0.2.7,"], PEER),
        ([""], PEER),
        (["192.0.2.7:4711"], "192.0.2.7"),
        (["[2001:db9::7]:4711, [2001:db8::1]"], "2001:db9::7"),
        (["2001:DB9::7"], "2001:db9::7"),
        (["::ffff:192.0.2.7"], "192.0.2.7"),
        (["192.0.2.7, ::ffff:10.0.0.2"], "192.0.2.7"),
        (["192.0.2.7, 10.0.0.256"], PEER),
        (["192.0.2.7\x00"], PEER),
    ],
)
def test_the_client_is_the_first_from_the_right_that_is_no_trusted_proxy(lines: list[str], client: str) -> None:
    assert came(*(("x-forwarded-for", line) for line in lines)).client == client


def test_a_peer_on_a_socket_for_both_families_is_known_by_its_ipv4_address() -> None:
    assert came(*SAID, peer="::ffff:10.0.0.1").client == "192.0.2.7"


@pytest.mark.parametrize(
    ("value", "host"),
    [("evil.example, mcp.example.com", "mcp.example.com"), ("", "inner:8470"), ("evil.example,", "inner:8470")],
)
def test_the_host_is_what_the_proxy_next_to_us_said(value: str, host: str) -> None:
    assert came(("X-Forwarded-Host", value)).host == host


@pytest.mark.parametrize(("value", "scheme"), [("HTTPS", "https"), ("http, https", "https"), ("gopher", "http")])
def test_the_scheme_is_what_the_proxy_next_to_us_said_if_it_is_one(value: str, scheme: str) -> None:
    assert came(("X-Forwarded-Proto", value)).scheme == scheme


def test_the_standard_field_is_not_read() -> None:
    assert came(("Forwarded", "for=192.0.2.7;host=a;proto=https")) == Arrival(PEER, "inner:8470", "http")


@pytest.mark.parametrize("fields", [(), (("Host", "a"), ("Host", "b"))])
def test_no_host_and_two_hosts_are_none(fields: tuple[tuple[str, str], ...]) -> None:
    assert arrival("192.0.2.1", "http", fields, TRUSTED).host is None

"""Addresses to listen on."""

import socket

import pytest

from config.address import Address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8470", Address("127.0.0.1", 8470)),
        ("localhost:1", Address("127.0.0.1", 1)),
        ("0.0.0.0:80", Address("0.0.0.0", 80)),
        ("[::1]:0", Address("::1", 0)),
        ("[0:0::0:1]:8470", Address("::1", 8470)),
    ],
)
def test_an_ip_address_and_a_port_are_read(text: str, address: Address) -> None:
    assert Address.parse(text) == address


@pytest.mark.parametrize(
    "text", ["", ":80", "127.0.0.1", "::1:80", "[127.0.0.1:80", "a:b", "1.2.3.4:99999", "[a]:1", "1.2.3:4"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be an IP address and a port"):
        Address.parse(text)


def test_an_address_is_spelt_as_in_a_url() -> None:
    assert str(Address("::1", 8470)) == "[::1]:8470"
    assert str(Address("127.0.0.1", 0)) == "127.0.0.1:0"


def test_an_address_knows_its_family() -> None:
    assert Address("::1", 1).family == socket.AF_INET6
    assert Address("127.0.0.1", 1).family == socket.AF_INET

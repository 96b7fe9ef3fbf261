"""How a host spells an address, what an address holds, and what it is."""

import ipaddress

import pytest

from registry.addresses import SPECIAL, held, literal, special


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1.", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("127.0.1", "127.0.0.1"),
        ("10.65535", "10.0.255.255"),
        ("2130706433", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("0X7F000001", "127.0.0.1"),
        ("0177.0.0.01", "127.0.0.1"),
        ("017700000001", "127.0.0.1"),
        ("0x00000000000007f.0x1", "127.0.0.1"),
        ("0", "0.0.0.0"),
        ("4294967295", "255.255.255.255"),
        ("::1", "::1"),
        ("[::1]", "::1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("::ffff:127.0.0.1", "::ffff:7f00:1"),
        ("fe80::1%eth0", "fe80::1%eth0"),
        ("fe80::1%25eth0", "fe80::1%eth0"),
    ],
)
def test_an_address_is_read_in_every_spelling(host: str, address: str) -> None:
    assert literal(host) == ipaddress.ip_address(address)


@pytest.mark.parametrize(
    "host",
    [
        *("", ".", "localhost", "example.com", "256.0.0.1", "1.2.3.256", "1.2.3.4.5", "1..2", "127.0.0.1x", "08", "0x"),
        *(
            "4294967296",
            "1.16777216",
            "99999999999",
            "1" * 5000,
            "-1",
            "+1",
            " 1",
            "1_0",
            "\u0661",
            "a:b",
            ":::",
            "fe80::1%",
        ),
    ],
)
def test_what_is_no_address_is_a_name(host: str) -> None:
    assert literal(host) is None


@pytest.mark.parametrize(
    ("address", "ends"),
    [
        ("10.0.0.1", ["10.0.0.1"]),
        ("2606:4700::1111", ["2606:4700::1111"]),
        ("fe80::1%eth0", ["fe80::1"]),
        ("::", ["::"]),
        ("::1", ["::1"]),
        ("::2", ["0.0.0.2"]),
        ("::a9fe:a9fe", ["169.254.169.254"]),
        ("::ffff:a9fe:a9fe", ["169.254.169.254"]),
        ("::ffff:0:a9fe:a9fe", ["169.254.169.254"]),
        ("64:ff9b::a9fe:a9fe", ["169.254.169.254"]),
        ("64:ff9b:1::a9fe:a9fe", ["64:ff9b:1::a9fe:a9fe"]),
        ("2002:a9fe:a9fe:1::2", ["169.254.169.254"]),
        ("2001:0:a9fe:a9fe:8000:1:f7f7:f7f7", ["169.254.169.254", "8.8.8.8"]),
        ("2001:0:808:808:8000:1:5601:5601", ["8.8.8.8", "169.254.169.254"]),
        ("fd00::5efe:a9fe:a9fe", ["fd00::5efe:a9fe:a9fe", "169.254.169.254"]),
        ("2606::200:5efe:a9fe:a9fe", ["2606::200:5efe:a9fe:a9fe", "169.254.169.254"]),
    ],
)
def test_an_address_that_holds_another_leads_there(address: str, ends: list[str]) -> None:
    assert [str(end) for end in held(ipaddress.ip_address(address))] == ends


@pytest.mark.parametrize(
    ("address", "rules"),
    [
        ("127.0.0.1", []),
        ("10.1.2.3", []),
        ("172.16.0.1", []),
        ("192.168.0.1", []),
        ("100.64.0.1", []),
        ("198.18.0.1", []),
        ("8.8.8.8", []),
        ("::1", []),
        ("fd12:3456::1", []),
        ("2606:4700::1111", []),
        ("169.254.169.254", ["a metadata address of a cloud", "link-local"]),
        ("169.254.170.2", ["a metadata address of a cloud", "link-local"]),
        ("100.100.100.200", ["a metadata address of a cloud"]),
        ("168.63.129.16", ["a metadata address of a cloud"]),
        ("192.0.0.192", ["a metadata address of a cloud", "reserved"]),
        ("fd00:ec2::254", ["a metadata address of a cloud"]),
        ("fd20:ce::254", ["a metadata address of a cloud"]),
        ("169.254.0.1", ["link-local"]),
        ("fe80::1", ["link-local"]),
        ("febf::1", ["link-local"]),
        ("0.0.0.0", ["unspecified"]),
        ("0.1.2.3", ["unspecified"]),
        ("::", ["unspecified", "reserved"]),
        ("224.0.0.1", ["multicast"]),
        ("239.255.255.255", ["multicast"]),
        ("ff02::1", ["multicast"]),
        ("255.255.255.255", ["broadcast", "reserved"]),
        ("240.0.0.1", ["reserved"]),
        ("192.0.0.1", ["reserved"]),
        ("192.0.2.1", ["reserved"]),
        ("198.51.100.1", ["reserved"]),
        ("203.0.113.1", ["reserved"]),
        ("192.88.99.1", ["reserved"]),
        ("64:ff9b:1::1", ["reserved"]),
        ("100::1", ["reserved"]),
        ("200::1", ["reserved"]),
        ("400::1", ["reserved"]),
        ("800::1", ["reserved"]),
        ("1000::1", ["reserved"]),
        ("2001:2::1", ["reserved"]),
        ("2001:db8::1", ["reserved"]),
        ("3fff::1", ["reserved"]),
        ("4000::1", ["reserved"]),
        ("5f00::1", ["reserved"]),
        ("8000::1", ["reserved"]),
        ("c000::1", ["reserved"]),
        ("e000::1", ["reserved"]),
        ("f000::1", ["reserved"]),
        ("f800::1", ["reserved"]),
        ("fe00::1", ["reserved"]),
        ("fec0::1", ["reserved"]),
    ],
)
def test_every_class_of_addresses_is_told(address: str, rules: list[str]) -> None:
    assert [rule for _, rule in special(ipaddress.ip_address(address))] == rules


def test_ipv6_is_served_from_the_networks_that_are_assigned_for_it_alone() -> None:
    """RFC 4291 2.4 and the registry of IANA: global unicast (2000::/3) and unique local (fc00::/7)."""
    special_six = [network for network, _ in SPECIAL if isinstance(network, ipaddress.IPv6Network)]
    outside = ipaddress.IPv6Network("2000::/3"), ipaddress.IPv6Network("fc00::/7")
    rest = [network for network in special_six if not any(network.subnet_of(other) for other in outside)]

    assert sum(network.num_addresses for network in ipaddress.collapse_addresses([*rest, *outside])) == 2**128

"""No spelling of a refused address gets through, and reading one agrees with the system's resolver."""

import ipaddress
import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address

from hypothesis import assume, given
from hypothesis import strategies as st

from registry.addresses import SPECIAL, literal
from registry.egress import Egress

REFUSED = [network for network, _ in SPECIAL if isinstance(network, IPv4Network)]
REFUSED_SIX = [network for network, _ in SPECIAL if not isinstance(network, IPv4Network)]
HOLDERS = ["::", "::ffff:0:0", "::ffff:0:0:0", "64:ff9b::"]


@st.composite
def refused_four(draw: st.DrawFn) -> IPv4Address:
    network = draw(st.sampled_from(REFUSED))
    return network[draw(st.integers(0, network.num_addresses - 1))]


@st.composite
def spelled_four(draw: st.DrawFn, address: IPv4Address) -> str:
    """One of the spellings that inet_aton(3) reads."""
    many = draw(st.integers(0, 3))
    heads, last = address.packed[:many], int.from_bytes(address.packed[many:])
    text = ".".join(draw(spelled_number(number)) for number in (*heads, last))
    return text + draw(st.sampled_from(["", "."]))


@st.composite
def spelled_number(draw: st.DrawFn, number: int) -> str:
    zeros = "0" * draw(st.integers(0, 3))
    return draw(st.sampled_from([f"{number}", f"0{zeros}{number:o}", f"0x{zeros}{number:x}", f"0X{zeros}{number:X}"]))


@st.composite
def spelled_six(draw: st.DrawFn, address: IPv6Address) -> str:
    head, last = address.exploded[:29], IPv4Address(int(address) & 0xFFFFFFFF)
    text = draw(st.sampled_from([str(address), address.exploded, f"{head}:{last}".replace("::", ":")]))
    text = draw(st.sampled_from([text.lower(), text.upper()])) + draw(st.sampled_from(["", "%1", "%25eth0"]))
    return draw(st.sampled_from([text, f"[{text}]"]))


def holding(address: IPv4Address, place: int) -> IPv6Address:
    """An address that holds this one, in one of the ways that there are."""
    if place < len(HOLDERS):
        return IPv6Address(int(IPv6Address(HOLDERS[place])) | int(address))
    others = (
        0x2002 << 112 | int(address) << 80 | 1,
        0x20010000 << 96 | int(address) << 64 | 0xF7F7F7F7,
        0x20010000 << 96 | 0x08080808 << 64 | int(address) ^ 0xFFFFFFFF,
        0xFD00 << 112 | 0x5EFE << 32 | int(address),
    )
    return IPv6Address(others[place - len(HOLDERS)])


@given(st.data())
def test_no_spelling_of_a_refused_address_of_ipv4_gets_through(data: st.DataObject) -> None:
    address = data.draw(refused_four())
    spelling = data.draw(spelled_four(address))

    assert Egress().fault(spelling) is not None
    assert Egress().fault("name.example", spelling) is not None


@given(st.data(), st.integers(0, len(HOLDERS) + 3))
def test_no_address_that_holds_a_refused_one_gets_through(data: st.DataObject, place: int) -> None:
    held = data.draw(refused_four())
    outer = holding(held, place)
    assume(outer != IPv6Address("::1"))  # loopback, which is not 0.0.0.1
    spelling = data.draw(spelled_six(outer))

    assert Egress().fault(spelling) is not None
    assert Egress().fault("name.example", spelling) is not None


@given(st.data(), st.integers(0, len(HOLDERS) + 3))
def test_an_address_that_holds_an_ordinary_one_gets_through(data: st.DataObject, place: int) -> None:
    network = data.draw(
        st.sampled_from([IPv4Network("10.0.0.0/8"), IPv4Network("127.0.0.0/8"), IPv4Network("8.0.0.0/7")])
    )
    held = network[data.draw(st.integers(0, network.num_addresses - 1))]

    assert Egress().fault(data.draw(spelled_six(holding(held, place)))) is None


@given(st.data())
def test_no_spelling_of_a_refused_address_of_ipv6_gets_through(data: st.DataObject) -> None:
    network = data.draw(st.sampled_from(REFUSED_SIX))
    address = network[data.draw(st.integers(0, network.num_addresses - 1))]
    assume(not _is_judged_otherwise(address))

    assert Egress().fault(data.draw(spelled_six(address))) is not None


def _is_judged_otherwise(address: IPv6Address) -> bool:
    """True for what is judged by what it holds, and for loopback."""
    nets = ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "2001::/32")
    return any(address in ipaddress.IPv6Network(net) for net in nets) and address != IPv6Address("::")


@given(
    st.text("0123456789abcdefxX.", max_size=24)
    | st.from_regex(r"(0x?)?[0-9]{1,11}(\.(0x?)?[0-9]{1,5}){0,3}", fullmatch=True)
)
def test_a_host_is_read_as_an_address_where_the_system_reads_one(host: str) -> None:
    host = host.rstrip(".")
    try:
        theirs = IPv4Address(socket.inet_aton(host))
    except OSError:
        theirs = None

    assert literal(host) == theirs

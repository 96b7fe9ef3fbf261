"""IP addresses of downstreams: how a host spells one, what one holds inside, and which are never a server's. Pure.

Source: the special-purpose address registries of IANA (RFC 6890); inet_aton(3) for the spellings of IPv4; RFC 4291
2.5.5, RFC 2765 2.1, RFC 6052, RFC 3056, RFC 4380 and RFC 5214 for IPv6 addresses that hold one of IPv4; the metadata
addresses as their clouds document them. The tables are ours, since what `ipaddress` says of an address differs between
versions of Python.
"""

import ipaddress
import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_METADATA = "a metadata address of a cloud"
_LINK_LOCAL = "link-local"
_UNSPECIFIED = "unspecified"
_MULTICAST = "multicast"
_RESERVED = "reserved"

_SPECIAL: tuple[tuple[str, str], ...] = (
    ("169.254.169.254/32", _METADATA),
    ("169.254.170.2/32", _METADATA),
    ("169.254.170.23/32", _METADATA),
    ("100.100.100.200/32", _METADATA),
    ("168.63.129.16/32", _METADATA),
    ("192.0.0.192/32", _METADATA),
    ("fd00:ec2::254/128", _METADATA),
    ("fd00:ec2::23/128", _METADATA),
    ("fd20:ce::254/128", _METADATA),
    ("169.254.0.0/16", _LINK_LOCAL),
    ("fe80::/10", _LINK_LOCAL),
    ("0.0.0.0/8", _UNSPECIFIED),
    ("::/128", _UNSPECIFIED),
    ("224.0.0.0/4", _MULTICAST),
    ("ff00::/8", _MULTICAST),
    ("255.255.255.255/32", "broadcast"),
    ("192.0.0.0/24", _RESERVED),
    ("192.0.2.0/24", _RESERVED),
    ("192.88.99.0/24", _RESERVED),
    ("198.51.100.0/24", _RESERVED),
    ("203.0.113.0/24", _RESERVED),
    ("240.0.0.0/4", _RESERVED),
    ("2001::/23", _RESERVED),
    ("2001:db8::/32", _RESERVED),
    ("3fff::/20", _RESERVED),
    ("::/8", _RESERVED),  # 64:ff9b:1::/48 too, which only its own network can translate
    ("100::/8", _RESERVED),
    ("200::/7", _RESERVED),
    ("400::/6", _RESERVED),
    ("800::/5", _RESERVED),
    ("1000::/4", _RESERVED),
    ("4000::/2", _RESERVED),
    ("8000::/2", _RESERVED),
    ("c000::/3", _RESERVED),
    ("e000::/4", _RESERVED),
    ("f000::/5", _RESERVED),
    ("f800::/6", _RESERVED),
    ("fe00::/9", _RESERVED),
    ("fec0::/10", _RESERVED),
)

SPECIAL: tuple[tuple[Network, str], ...] = tuple((ipaddress.ip_network(text), rule) for text, rule in _SPECIAL)
"""Networks where no downstream is, and what they are; the first that has an address names it."""

METADATA_NAMES = frozenset(
    {
        "instance-data.ec2.internal",
        "metadata.azure.internal",
        "metadata.goog",
        "metadata.google.internal",
        "metadata.tencentyun.com",
    }
)

_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]{0,9}")

_LAST_FOUR = tuple(IPv6Network(text) for text in ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96"))
"""Compatible, mapped, translated, NAT64: the last four bytes are the IPv4 address."""

_LOOPBACK = IPv6Address("::1")
_OWN = (IPv6Address("::"), _LOOPBACK)
"""In the first of these, but addresses of their own."""

_6TO4 = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)


def literal(host: str) -> Address | None:
    """The address that a host spells, None for a name.

    IPv4 is read as resolvers read it: one to four numbers, decimal, octal or hexadecimal, of which the last fills what
    remains. IPv6 may have a zone, whose `%` may be percent-encoded as in a URL, and brackets.
    """
    text = host.rstrip(".")
    if ":" not in text:
        return _ipv4(text.split("."))
    try:
        return IPv6Address(text.removeprefix("[").removesuffix("]").replace("%25", "%", 1))
    except ValueError:
        return None


def _ipv4(parts: list[str]) -> IPv4Address | None:
    if len(parts) > 4 or not all(map(_NUMBER.fullmatch, parts)):
        return None
    *heads, last = map(_number, parts)
    if any(head > 255 for head in heads) or last >= 256 ** (4 - len(heads)):
        return None
    return IPv4Address(last + sum(head << (24 - 8 * place) for place, head in enumerate(heads)))


def _number(part: str) -> int:
    if part[:2] in ("0x", "0X"):
        return int(part, 16)
    return int(part, 8 if part[0] == "0" else 10)


def held(address: Address) -> tuple[Address, ...]:
    """Where a connection to it may end: the IPv4 addresses that it holds, else itself. Zones are left out."""
    if isinstance(address, IPv4Address):
        return (address,)
    plain = IPv6Address(int(address))
    last = int(plain) & 0xFFFF_FFFF
    if int(plain) >> 32 & 0xFFFF_FFFF in _ISATAP:
        return plain, IPv4Address(last)  # within a network of its own, which counts too
    return tuple(map(IPv4Address, _held(plain, last))) or (plain,)


def _held(address: IPv6Address, last: int) -> tuple[int, ...]:
    if address in _6TO4:
        return (int(address) >> 80 & 0xFFFF_FFFF,)
    if address in _TEREDO:
        return int(address) >> 64 & 0xFFFF_FFFF, last ^ 0xFFFF_FFFF  # the server, and the client with its bits inverted
    return (last,) if any(address in network for network in _LAST_FOUR) and address not in _OWN else ()


def special(address: Address) -> tuple[tuple[Network, str], ...]:
    """The networks that it is in where no downstream is, narrowest first, with what they are. Not of what it holds."""
    if address == _LOOPBACK:
        return ()
    return tuple((network, rule) for network, rule in SPECIAL if address in network)

"""Who asks, and by which name and scheme, where proxies stand in front of us.

Source: DESIGN 7. `X-Forwarded-For`, `-Proto` and `-Host` have no standard; their one safe reading is from the right, as
far as each hop is known: what stands further left was written by somebody whom we have no reason to believe. RFC 7239
(`Forwarded`) is not read: two ways of saying one thing can be made to disagree, by a client that sends the one which
the proxy in front does not set.

Invariant: unless the peer is a trusted proxy, nothing of these fields has an effect.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from proxy.headers import values
from proxy.ports import Fields

Address = IPv4Address | IPv6Address
Networks = Collection[IPv4Network | IPv6Network]

_WITH_PORT = re.compile(r"\[(?P<six>[^\]]+)\](?::\d{1,5})?|(?P<four>[0-9.]+):\d{1,5}")
"""Forms that some proxies write: `[2001:db8::1]:80`, `[2001:db8::1]`, `192.0.2.1:80`."""

_SCHEMES = frozenset({"http", "https"})


@dataclass(frozen=True, slots=True)
class Arrival:
    """How a request came to us.

    `client` is the address of who asks, empty when it has none that we know; `host` is what the client took us for, a
    name with perhaps a port, None unless exactly one is given; `scheme` is `http` or `https`.
    """

    client: str
    host: str | None
    scheme: str


def arrival(peer: str, scheme: str, fields: Fields, trusted: Networks) -> Arrival:
    """Read the fields of a request.

    Args:
        peer: address of the other end of the connection; empty when it has none.
        scheme: of the connection itself.
        fields: of the request.
        trusted: networks of proxies that overwrite or append to these fields.
    """
    hosts = values(fields, "host")
    direct = Arrival(peer, hosts[0] if len(hosts) == 1 else None, scheme)
    address = _address(peer) if trusted else None
    if address is None or not _is_in(address, trusted):
        return direct
    forwarded_scheme = (_last(fields, "x-forwarded-proto") or "").lower()
    return Arrival(
        str(_client(address, fields, trusted)),
        _last(fields, "x-forwarded-host") or direct.host,
        forwarded_scheme if forwarded_scheme in _SCHEMES else scheme,
    )


def _client(peer: Address, fields: Fields, trusted: Networks) -> Address:
    """The first address from the right that is no trusted proxy, or the last one before something unreadable."""
    client = peer
    for member in reversed(tuple(_members(fields, "x-forwarded-for"))):
        if not _is_in(client, trusted) or (before := _address(member)) is None:
            return client
        client = before
    return client


def _last(fields: Fields, name: str) -> str | None:
    """What the proxy next to us said: others may stand to its left."""
    return next(reversed(tuple(_members(fields, name))), None) or None


def _members(fields: Fields, name: str) -> Iterator[str]:
    return (member.strip(" \t") for value in values(fields, name) for member in value.split(","))


def _address(text: str) -> Address | None:
    found = _WITH_PORT.fullmatch(text)
    try:
        address = ip_address((found["six"] or found["four"]) if found else text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address  # a socket for both families spells IPv4 as ::ffff:192.0.2.1


def _is_in(address: Address, networks: Networks) -> bool:
    return any(address in network for network in networks)

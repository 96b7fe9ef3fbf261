"""Where downstreams may be: the one rule about their addresses. Pure.

Source: DESIGN 7 (Downstream addresses). In this order, first failure wins:

1. What the deny list names is refused, by the host's name or by an address.
2. Metadata names of clouds are refused, unless the allow list has that very name.
3. An address where no downstream is (link-local, metadata, unspecified, multicast, broadcast, reserved) is refused,
   unless an entry of the allow list lies within that network. `0.0.0.0/0` names all and therefore lifts nothing.
4. An allow list that is not empty admits only what it names, by the host's name or by the address.

An IPv6 address that holds one of IPv4 is judged by what it holds; the deny list also by itself. Loopback and private
networks are as good as any other, since downstreams live there.
"""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import Self

from registry.addresses import METADATA_NAMES, Address, Network, held, literal, special

ALLOW = "SLUICEGATE_EGRESS_ALLOW"
DENY = "SLUICEGATE_EGRESS_DENY"

_PATTERN = re.compile(r"(\*\.)?([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")

_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""The last part of an address; no top-level domain is one."""


@dataclass(frozen=True, slots=True)
class Entries:
    """One list. `names` are host names in lower case; `*.suffix` stands for every name below the suffix."""

    names: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def of(cls, entries: Iterable[str]) -> Self:
        """Read host names, `*.suffix`, addresses and networks. Raises ValueError, which names the entry."""
        read = [_entry(entry) for entry in sorted(entries)]
        names = frozenset(entry for entry in read if isinstance(entry, str))
        return cls(names, tuple(entry for entry in read if not isinstance(entry, str)))

    @property
    def is_empty(self) -> bool:
        """True when nothing is named."""
        return not self.names and not self.networks

    def naming(self, host: str) -> str | None:
        """The entry that names this host (lower case, no trailing dot), None when there is none."""
        labels = host.split(".")
        patterns = (host, *("*." + ".".join(labels[place:]) for place in range(1, len(labels))))
        return next((pattern for pattern in patterns if pattern in self.names), None)

    def holding(self, address: Address) -> tuple[Network, ...]:
        """The entries that have this address."""
        return tuple(network for network in self.networks if address in network)


def _entry(text: str) -> str | Network:
    entry = text.strip().lower()
    try:
        network = ipaddress.ip_network(entry)
    except ValueError:
        return _pattern(entry)
    if isinstance(network, IPv6Network) and (network.network_address.ipv4_mapped or "%" in entry):
        raise ValueError(f"{entry!r} must be written as a network of IPv4, or without a zone")
    return network


def _pattern(entry: str) -> str:
    last = entry.rpartition(".")[2]
    if _PATTERN.fullmatch(entry) is None or _NUMERIC.fullmatch(last) is not None:  # a misspelt address names nothing
        raise ValueError(f"{entry!r} is no host name, no *.suffix, and no address or network like 10.0.0.0/8")
    return entry


@dataclass(frozen=True, slots=True)
class Egress:
    """The rule with an operator's lists."""

    allow: Entries = Entries()
    deny: Entries = Entries()

    def fault(self, host: str, address: str | None = None) -> str | None:
        """Why this host may not be connected to (at this address), None when it may; one sentence that says which rule.

        Args:
            host: as a URL has it. One that spells an address is judged as that address.
            address: one that the host's name resolved to. None judges by name, as far as that can be told.
        """
        spelled = literal(host)
        if spelled is not None:
            return self._address_fault(spelled) or self._unnamed(None, spelled)
        name = host.rstrip(".").lower()
        if (fault := self._name_fault(name)) is not None:
            return fault
        if address is None:
            return None if self.allow.networks else self._unnamed(name, None)
        resolved = literal(address)
        if resolved is None:
            return "the host's address cannot be read"
        return self._address_fault(resolved) or self._unnamed(name, resolved)

    def _name_fault(self, name: str) -> str | None:
        if (entry := self.deny.naming(name)) is not None:
            return f"the host is one of {entry}, which {DENY} names"
        if name in METADATA_NAMES and name not in self.allow.names:
            return f"the host is the metadata service of a cloud, which is refused unless {ALLOW} has its name"
        return None

    def _address_fault(self, address: Address) -> str | None:
        ends = held(address)
        for one in (address, *ends):
            if denied := self.deny.holding(one):
                return f"the address is in {denied[0]}, which {DENY} names"
        for one in ends:
            for network, rule in special(one):
                if not any(_is_within(entry, network) for entry in self.allow.holding(one)):
                    return f"the address is {rule} ({network}), which is refused unless {ALLOW} names it"
        return None

    def _unnamed(self, name: str | None, address: Address | None) -> str | None:
        if self.allow.is_empty or (name is not None and self.allow.naming(name) is not None):
            return None
        if address is not None and all(self.allow.holding(one) for one in held(address)):
            return None
        return f"{ALLOW} names neither the host nor its address"


def _is_within(entry: Network, network: Network) -> bool:
    if isinstance(entry, IPv4Network):
        return isinstance(network, IPv4Network) and entry.subnet_of(network)
    return isinstance(network, IPv6Network) and entry.subnet_of(network)

"""Addresses of downstreams, judged when they are set and when they are connected to."""

import asyncio
from collections.abc import Sequence

import pytest

from registry import destinations
from registry.destinations import Destinations
from registry.egress import Egress, Entries
from registry.errors import AddressRefused

METADATA = (
    "the address is a metadata address of a cloud (169.254.169.254/32), "
    "which is refused unless SLUICEGATE_EGRESS_ALLOW names it"
)


class Names:
    """A look-up that gives these addresses, and knows who asked."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses
        self.asked: list[tuple[str, int]] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append((host, port))
        return self.addresses


async def test_a_name_has_the_addresses_that_may_be_connected_to() -> None:
    names = Names("169.254.169.254", "10.0.0.1", "fe80::1%2", "fd12::1")

    assert await Destinations(lookup=names).addresses("good.example", 80) == ("10.0.0.1", "fd12::1")
    assert names.asked == [("good.example", 80)]


async def test_a_name_without_one_is_refused_by_the_rule_of_its_first() -> None:
    with pytest.raises(AddressRefused) as refused:
        await Destinations(lookup=Names("169.254.169.254", "224.0.0.1")).addresses("bad.example", 80)

    assert str(refused.value) == METADATA


async def test_a_name_that_resolves_to_nothing_is_refused() -> None:
    with pytest.raises(AddressRefused, match="the host has no address"):
        await Destinations(lookup=Names()).addresses("empty.example", 80)


async def test_a_name_that_is_refused_as_such_is_not_looked_up() -> None:
    names = Names("10.0.0.1")
    denied = Destinations(Egress(deny=Entries.of(["*.example"])), names)

    with pytest.raises(AddressRefused):
        await denied.addresses("bad.example", 80)
    assert names.asked == []


@pytest.mark.parametrize(
    ("host", "address"), [("127.0.0.1", "127.0.0.1"), ("0x7f.1", "127.0.0.1"), ("[0::1]", "::1"), ("::1", "::1")]
)
async def test_an_address_is_taken_as_it_is_read_and_not_looked_up(host: str, address: str) -> None:
    names = Names("10.0.0.1")

    assert await Destinations(lookup=names).addresses(host, 80) == (address,)
    assert names.asked == []


async def test_without_a_look_up_no_name_is_known() -> None:
    with pytest.raises(OSError, match=r"good\.example is not looked up"):
        await Destinations().addresses("good.example", 80)


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("http://good.example/mcp", None),
        ("http://127.0.0.1:9/mcp", None),
        ("http://169.254.169.254/mcp", f"the url cannot be used: {METADATA}"),
        ("http://[::ffff:a9fe:a9fe]:80/mcp", f"the url cannot be used: {METADATA}"),
        ("http://2852039166/mcp", f"the url cannot be used: {METADATA}"),
    ],
)
async def test_an_address_that_is_set_is_judged_as_far_as_it_is_known(url: str, fault: str | None) -> None:
    assert await Destinations().fault(url) == fault


async def test_a_name_that_is_set_is_judged_by_the_addresses_that_it_has_now() -> None:
    names = Names("169.254.169.254")

    assert await Destinations(lookup=names).fault("https://bad.example/mcp") == f"the url cannot be used: {METADATA}"
    assert await Destinations(lookup=Names("169.254.169.254", "10.0.0.1")).fault("http://both.example:1/") is None
    assert names.asked == [("bad.example", 443)]


async def test_a_look_up_without_end_holds_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return ()

    monkeypatch.setattr(destinations, "LOOKUP_TIMEOUT_S", 0.01)

    assert await Destinations(lookup=never).fault("http://slow.example/") is None

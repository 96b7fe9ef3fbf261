"""The rule about addresses of downstreams: what is refused, what the lists change, and how it says so."""

import pytest

from registry.egress import Egress, Entries

METADATA = (
    "the address is a metadata address of a cloud (169.254.169.254/32), "
    "which is refused unless SLUICEGATE_EGRESS_ALLOW names it"
)
UNNAMED = "SLUICEGATE_EGRESS_ALLOW names neither the host nor its address"


def rule(allow: str = "", deny: str = "") -> Egress:
    return Egress(Entries.of(allow.split()), Entries.of(deny.split()))


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "::1", "10.0.0.1", "fd12::1", "8.8.8.8", "64:ff9b::808:808", "localhost"]
)
def test_without_lists_a_downstream_may_be_near_or_far(host: str) -> None:
    assert rule().fault(host) is None


@pytest.mark.parametrize(
    "host",
    [
        *("169.254.169.254", "0xa9fea9fe", "2852039166", "0251.0376.0251.0376", "169.254.43518", "169.254.169.254."),
        *("::ffff:169.254.169.254", "[::FFFF:A9FE:A9FE]", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::", "::a9fe:a9fe"),
    ],
)
def test_a_refused_address_is_refused_in_every_spelling(host: str) -> None:
    assert rule().fault(host) == METADATA


def test_the_addresses_of_a_name_are_judged_like_addresses() -> None:
    assert rule().fault("good.example") is None
    assert rule().fault("good.example", "10.0.0.1") is None
    assert rule().fault("good.example", "::ffff:169.254.169.254") == METADATA
    assert rule().fault("good.example", "fe80::1%eth0") == (
        "the address is link-local (fe80::/10), which is refused unless SLUICEGATE_EGRESS_ALLOW names it"
    )


def test_an_address_that_cannot_be_read_is_refused() -> None:
    assert rule().fault("good.example", "nonsense") == "the host's address cannot be read"


@pytest.mark.parametrize("host", ["metadata.google.internal", "METADATA.google.internal.", "metadata.goog"])
def test_a_metadata_name_is_refused_whatever_it_resolves_to(host: str) -> None:
    sentence = (
        "the host is the metadata service of a cloud, which is refused unless SLUICEGATE_EGRESS_ALLOW has its name"
    )
    assert rule().fault(host) == rule(allow="*.google.internal *.goog 10.0.0.0/8").fault(host, "10.0.0.1") == sentence


def test_a_metadata_name_is_admitted_by_its_name_and_its_address_by_itself() -> None:
    named = rule(allow="metadata.google.internal")
    assert named.fault("metadata.google.internal") is None
    assert named.fault("metadata.google.internal", "169.254.169.254") == METADATA
    both = rule(allow="metadata.google.internal 169.254.169.254")
    assert both.fault("metadata.google.internal", "169.254.169.254") is None


def test_an_entry_lifts_a_refusal_only_when_it_lies_within_the_network() -> None:
    assert rule(allow="0.0.0.0/0 ::/0").fault("169.254.1.1") is not None
    assert rule(allow="168.0.0.0/6").fault("169.254.1.1") is not None
    assert rule(allow="169.254.0.0/16").fault("169.254.1.1") is None
    assert rule(allow="169.254.0.0/16").fault("169.254.169.254") == METADATA
    assert rule(allow="169.254.169.254").fault("169.254.169.254") is None
    assert rule(allow="169.254.169.254").fault("::ffff:169.254.169.254") is None
    assert rule(allow="fe80::/64").fault("fe80::1%eth0") is None
    assert rule(allow="fe80::/64").fault("169.254.1.1") is not None
    assert rule(allow="64:ff9b:1::/48").fault("64:ff9b:1::808:808") is None


def test_an_allow_list_admits_only_what_it_names() -> None:
    listed = rule(allow="good.example *.below.example 10.0.0.0/8 fd12::/16")
    assert listed.fault("good.example", "8.8.8.8") is None
    assert listed.fault("GOOD.example.", "8.8.8.8") is None
    assert listed.fault("a.below.example", "8.8.8.8") is None
    assert listed.fault("a.b.below.example", "8.8.8.8") is None
    assert listed.fault("other.example", "10.1.2.3") is None
    assert listed.fault("10.1.2.3") is listed.fault("0xa010203") is listed.fault("fd12::1") is None
    assert listed.fault("64:ff9b::a01:203") is None
    assert listed.fault("below.example", "8.8.8.8") == UNNAMED
    assert listed.fault("notbelow.example", "8.8.8.8") == UNNAMED
    assert listed.fault("sub.good.example", "8.8.8.8") == UNNAMED
    assert listed.fault("8.8.8.8") == listed.fault("127.0.0.1") == listed.fault("fd13::1") == UNNAMED


def test_a_network_of_addresses_that_hold_others_admits_none_of_them() -> None:
    assert rule(allow="64:ff9b::/96").fault("64:ff9b::808:808") == UNNAMED


def test_a_name_is_refused_before_it_is_looked_up_where_no_address_could_admit_it() -> None:
    assert rule(allow="good.example").fault("other.example") == UNNAMED
    assert rule(allow="good.example 10.0.0.0/8").fault("other.example") is None


def test_the_deny_list_wins_over_the_allow_list() -> None:
    both = rule(allow="good.example 10.0.0.0/8", deny="*.example 10.1.0.0/16 2002::/16")
    assert both.fault("good.example") == "the host is one of *.example, which SLUICEGATE_EGRESS_DENY names"
    assert both.fault("10.1.2.3") == "the address is in 10.1.0.0/16, which SLUICEGATE_EGRESS_DENY names"
    assert both.fault("::ffff:10.1.2.3") == "the address is in 10.1.0.0/16, which SLUICEGATE_EGRESS_DENY names"
    assert both.fault("2002:a02:304::") == "the address is in 2002::/16, which SLUICEGATE_EGRESS_DENY names"
    assert both.fault("10.2.3.4") is None


def test_a_deny_list_alone_leaves_the_rest_as_it_is() -> None:
    denied = rule(deny="bad.example 127.0.0.0/8")
    assert denied.fault("bad.example") is not None
    assert denied.fault("localhost", "127.0.0.1") is not None
    assert denied.fault("good.example", "8.8.8.8") is None
    assert denied.fault("localhost", "::1") is None


def test_an_entry_of_the_kind_of_a_name_is_never_taken_for_part_of_an_address() -> None:
    assert Entries.of(["*.a"]).naming("10.0.0.1") is None
    assert Entries.of(["10.0.0.1", "a.example"]) == Entries.of(["A.Example", " 10.0.0.1/32 "])


@pytest.mark.parametrize(
    "entry",
    [
        *("*", "*.", "a.*.b", "a*", "-a.example", "a b", "http://a.example", "a.example:80", "[::1]", "a..b", "a."),
        *("10.0.0.1/8", "10.0.0.0/33", "10.1", "10.0.0.300", "0x7f.1", "2130706433", "1.2.3.4.5", "::1/129", "x" * 64),
    ],
)
def test_an_entry_that_makes_no_sense_is_named(entry: str) -> None:
    with pytest.raises(ValueError, match="is no host name") as caught:
        Entries.of(["a.example", entry])
    assert repr(entry) in str(caught.value)


@pytest.mark.parametrize("entry", ["::ffff:10.0.0.0/104", "::ffff:10.0.0.1"])
def test_an_entry_that_no_address_could_match_is_named(entry: str) -> None:
    with pytest.raises(ValueError, match="must be written as a network of IPv4"):
        Entries.of([entry])

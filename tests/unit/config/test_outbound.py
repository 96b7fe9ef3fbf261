"""Settings of connections to downstreams: how they are read, and one line for what makes no sense."""

import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from config.errors import SettingsInvalid
from config.outbound import network
from config.settings import Settings
from registry.downstream import Network
from registry.errors import AddressRefused
from tests.authority import Authority, private_key


def made(**settings: Any) -> Network:
    return network(Settings.model_validate(settings))


async def test_the_lists_are_those_of_the_settings() -> None:
    listed = made(egress_allow="10.0.0.0/8, *.example", egress_deny="10.1.0.0/16").destinations

    assert await listed.addresses("10.2.3.4", 80) == ("10.2.3.4",)
    with pytest.raises(AddressRefused, match="SLUICEGATE_EGRESS_DENY"):
        await listed.addresses("10.1.2.3", 80)
    with pytest.raises(AddressRefused, match="SLUICEGATE_EGRESS_ALLOW"):
        await listed.addresses("8.8.8.8", 80)


def test_certificates_and_names_are_verified_with_and_without_an_authority_of_ones_own(tmp_path: Path) -> None:
    for tls in (made().tls, made(ca_file=Authority(tmp_path).file).tls):
        assert (tls.verify_mode, tls.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_the_private_authority_is_added_to_those_of_the_system(tmp_path: Path) -> None:
    with_file, without = made(ca_file=Authority(tmp_path).file).tls, made().tls

    assert with_file.cert_store_stats()["x509"] == without.cert_store_stats()["x509"] + 1


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (
            {"egress_allow": "a.example,10.0.0.1/8"},
            "SLUICEGATE_EGRESS_ALLOW: '10.0.0.1/8' is no host name, no *.suffix, "
            "and no address or network like 10.0.0.0/8",
        ),
        (
            {"egress_deny": "::ffff:10.0.0.0/104"},
            "SLUICEGATE_EGRESS_DENY: '::ffff:10.0.0.0/104' must be written as a network of IPv4, or without a zone",
        ),
        ({"ca_file": "missing.pem"}, "SLUICEGATE_CA_FILE: cannot read missing.pem: No such file or directory"),
    ],
)
def test_what_makes_no_sense_is_one_line(settings: dict[str, str], line: str) -> None:
    with pytest.raises(SettingsInvalid) as caught:
        made(**settings)

    assert str(caught.value) == line


def broken() -> bytes:
    return b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize("content", [b"", b"no PEM", broken(), private_key(ec.generate_private_key(ec.SECP256R1()))])
def test_a_file_without_a_certificate_is_one_line(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_bytes(content)

    with pytest.raises(SettingsInvalid) as caught:
        made(ca_file=file)

    assert str(caught.value) == f"SLUICEGATE_CA_FILE: {file} is no PEM file of certificates that can be read"


def test_a_file_of_revocations_alone_holds_no_certificate(tmp_path: Path) -> None:
    file = tmp_path / "crl.pem"
    file.write_bytes(Authority(tmp_path).revocations())

    with pytest.raises(SettingsInvalid) as caught:
        made(ca_file=file)

    assert str(caught.value) == f"SLUICEGATE_CA_FILE: {file} holds no certificate"

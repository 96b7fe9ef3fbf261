"""Connections that we make to downstreams: where they may go, and whose certificates are believed.

Source: DESIGN 7 (Downstream addresses). Made of the settings at the start, so that what makes no sense ends it.
"""

import ssl
from collections.abc import Iterable
from pathlib import Path

from config.errors import SettingsInvalid
from config.settings import PREFIX, Settings
from registry.destinations import Destinations
from registry.downstream import Network, lookup
from registry.egress import ALLOW, DENY, Egress, Entries


def network(settings: Settings) -> Network:
    """How both planes connect. Raises SettingsInvalid, one line."""
    egress = Egress(_entries(ALLOW, settings.egress_allow), _entries(DENY, settings.egress_deny))
    return Network(Destinations(egress, lookup), _trust(settings.ca_file))


def _entries(variable: str, entries: Iterable[str]) -> Entries:
    try:
        return Entries.of(entries)
    except ValueError as exc:
        raise SettingsInvalid(f"{variable}: {exc}") from None


def _trust(ca_file: Path | None) -> ssl.SSLContext:
    """The system's certificates and those of the file. Certificates and names are verified, always."""
    context = ssl.create_default_context()
    if ca_file is not None:
        _load(context, ca_file)
    return context


def _load(context: ssl.SSLContext, ca_file: Path) -> None:
    variable, alone = f"{PREFIX}CA_FILE", ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        alone.load_verify_locations(ca_file)
        context.load_verify_locations(ca_file)
    except ssl.SSLError:
        raise SettingsInvalid(f"{variable}: {ca_file} is no PEM file of certificates that can be read") from None
    except OSError as exc:
        raise SettingsInvalid(f"{variable}: cannot read {ca_file}: {exc.strerror}") from None
    if not alone.cert_store_stats()["x509"]:
        raise SettingsInvalid(f"{variable}: {ca_file} holds no certificate")

"""A private certificate authority, and servers' certificates of it, for tests."""

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_NOW = datetime.now(UTC)


class Authority:
    """One authority; its certificate is in `file`, in PEM."""

    def __init__(self, folder: Path, name: str = "tests") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name} authority")])
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        self._certificate = (
            _certificate(self._name, self._name, self._key, _NOW + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def server(self, *hosts: str, expires: timedelta = timedelta(days=1)) -> ssl.SSLContext:
        """What a server needs that answers as these hosts. A negative `expires` has expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        made = (
            _certificate(x509.Name([]), self._name, key, _NOW + expires)
            .add_extension(x509.SubjectAlternativeName([_general(host) for host in hosts]), critical=True)
            .add_extension(issuer, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        file = self._folder / "server.pem"
        file.write_bytes(made.public_bytes(serialization.Encoding.PEM) + private_key(key))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    def revocations(self) -> bytes:
        """A list of revoked certificates, an empty one, in PEM."""
        builder = x509.CertificateRevocationListBuilder().issuer_name(self._name)
        made = builder.last_update(_NOW).next_update(_NOW + timedelta(days=1)).sign(self._key, hashes.SHA256())
        return made.public_bytes(serialization.Encoding.PEM)


def private_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    """It in PEM."""
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_NOW - timedelta(days=2))
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)

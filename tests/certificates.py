"""Certificates for tests, each made when it is needed."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Files:
    """A certificate and its key, each in a file."""

    cert: Path
    key: Path


def made(folder: Path, name: str = "own", *, begins: timedelta = -DAY, ends: timedelta = DAY) -> Files:
    """A certificate that vouches for itself, for 127.0.0.1 and localhost; its times are counted from now."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).add_extension(names, critical=False)
    builder = builder.not_valid_before(now + begins).not_valid_after(now + ends)
    files = Files(folder / f"{name}.crt", folder / f"{name}.key")
    files.cert.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    files.key.write_bytes(_pem(key, serialization.NoEncryption()))
    return files


def encrypt(key_file: Path) -> None:
    """Put a password on a key."""
    key = serialization.load_pem_private_key(key_file.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    key_file.write_bytes(_pem(key, serialization.BestAvailableEncryption(b"hunter2")))


def _pem(key: ec.EllipticCurvePrivateKey, encryption: serialization.KeySerializationEncryption) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)

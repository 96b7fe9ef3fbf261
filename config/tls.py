"""TLS by certificate and key files.

Source: DESIGN 7; RFC 9325 section 3.1.1 (TLS 1.2 is the least that may be spoken). The files are read once, at the
start. What would only show when the first client comes, a key of another certificate or an expired one, is found here.
"""

import ssl
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509

from config.errors import StartFailed
from config.settings import Settings

_CERT = "SLUICEGATE_TLS_CERT_FILE"
_KEY = "SLUICEGATE_TLS_KEY_FILE"


def for_listeners(settings: Settings) -> ssl.SSLContext | None:
    """What the settings ask for; None without certificate and key. Raises StartFailed, as `server_context`."""
    if settings.tls_cert_file is None or settings.tls_key_file is None:
        return None
    return server_context(settings.tls_cert_file, settings.tls_key_file)


def server_context(cert_file: Path, key_file: Path) -> ssl.SSLContext:
    """What a listener needs to serve https with these files.

    Raises:
        StartFailed: one of them cannot be read or is no PEM of its kind, they do not belong together, or the
            certificate does not hold today.
    """
    _check_dates(cert_file, _leaf(cert_file))
    _read(_KEY, key_file)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(cert_file, key_file, password=_NoPassword(key_file))
    except ssl.SSLError as exc:
        raise StartFailed(_mismatch(cert_file, key_file, exc)) from exc
    return context


def _leaf(file: Path) -> x509.Certificate:
    """The first certificate of the file, which is the one that is shown."""
    try:
        return x509.load_pem_x509_certificate(_read(_CERT, file))
    except ValueError as exc:
        raise StartFailed(f"{_CERT}: {file} holds no certificate in PEM form.") from exc


def _read(setting: str, file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as exc:
        raise StartFailed(f"{setting}: {file} cannot be read: {exc.strerror}.") from exc


def _check_dates(file: Path, certificate: x509.Certificate) -> None:
    now = datetime.now(UTC)
    if now > certificate.not_valid_after_utc:
        raise StartFailed(f"{_CERT}: {file} expired on {certificate.not_valid_after_utc:%Y-%m-%d}; renew it.")
    if now < certificate.not_valid_before_utc:
        begin = f"{certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC"
        raise StartFailed(f"{_CERT}: {file} is not valid before {begin}; check this machine's clock.")


class _NoPassword:
    """Asked for a password by the library, which would otherwise ask the terminal and wait."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __call__(self) -> str:
        raise StartFailed(f"{_KEY}: {self._file} is encrypted; give a key without a password, readable by us alone.")


def _mismatch(cert_file: Path, key_file: Path, exc: ssl.SSLError) -> str:
    if exc.reason == "KEY_VALUES_MISMATCH":
        return f"{_KEY}: {key_file} is not the key of {cert_file}."
    return f"{_KEY}: {key_file} cannot be used with {cert_file}: {exc.reason or 'no private key in PEM form'}."

"""Certificate and key files: what cannot be served with is one sentence at the start."""

import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from config.errors import StartFailed
from config.settings import Settings
from config.tls import for_listeners, server_context
from tests import certificates
from tests.certificates import DAY, Files, made


def other_key(folder: Path) -> Files:
    return Files(made(folder).cert, made(folder, "other").key)


def swapped(folder: Path) -> Files:
    files = made(folder)
    return Files(files.key, files.cert)


def no_key(folder: Path) -> Files:
    files = made(folder)
    files.key.write_text("-----BEGIN PRIVATE KEY-----\n")
    return files


def encrypted(folder: Path) -> Files:
    files = made(folder)
    certificates.encrypt(files.key)
    return files


def missing_certificate(folder: Path) -> Files:
    files = made(folder)
    files.cert.unlink()
    return files


def folder_for_a_key(folder: Path) -> Files:
    return Files(made(folder).cert, folder)


CERT, KEY = "SLUICEGATE_TLS_CERT_FILE: {0}/own.crt", "SLUICEGATE_TLS_KEY_FILE: {0}/own.key"


@pytest.mark.parametrize(
    ("files_in", "sentence"),
    [
        (missing_certificate, CERT + " cannot be read: No such file or directory."),
        (folder_for_a_key, "SLUICEGATE_TLS_KEY_FILE: {0} cannot be read: Is a directory."),
        (swapped, "SLUICEGATE_TLS_CERT_FILE: {0}/own.key holds no certificate in PEM form."),
        (no_key, KEY + " cannot be used with {0}/own.crt: no private key in PEM form."),
        (other_key, "SLUICEGATE_TLS_KEY_FILE: {0}/other.key is not the key of {0}/own.crt."),
        (encrypted, KEY + " is encrypted; give a key without a password, readable by us alone."),
        (lambda folder: made(folder, ends=-DAY / 2), CERT + " expired on "),
        (lambda folder: made(folder, begins=DAY, ends=2 * DAY), CERT + " is not valid before "),
    ],
)
def test_files_that_cannot_be_used_are_one_sentence(
    files_in: Callable[[Path], Files], sentence: str, tmp_path: Path
) -> None:
    files = files_in(tmp_path)

    with pytest.raises(StartFailed) as caught:
        server_context(files.cert, files.key)

    expected = sentence.format(tmp_path)
    assert str(caught.value) == expected if expected.endswith(".") else str(caught.value).startswith(expected)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 1


def test_an_expired_certificate_names_the_day(tmp_path: Path) -> None:
    files = made(tmp_path, begins=-3 * DAY, ends=-2 * DAY)
    day = f"{datetime.now(UTC) - 2 * DAY:%Y-%m-%d}"

    with pytest.raises(StartFailed, match=rf" expired on {day}; renew it\.$"):
        server_context(files.cert, files.key)


def test_what_is_made_speaks_tls_1_2_at_least(tmp_path: Path) -> None:
    files = made(tmp_path)
    settings = Settings(tls_cert_file=files.cert, tls_key_file=files.key)

    context = for_listeners(settings)

    assert context is not None
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_without_files_there_is_no_tls() -> None:
    assert for_listeners(Settings()) is None

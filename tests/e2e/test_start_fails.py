"""A start that cannot succeed ends with one sentence that says what to do, and with the right exit code."""

import json
import os
import re
import signal
import socket
from pathlib import Path

import pytest

from tests.conftest import running_store
from tests.e2e.processes import Ended, started

pytestmark = pytest.mark.timeout(60)
"""Each starts and ends several processes, up to twice."""


async def _fails(*arguments: str, **settings: object) -> Ended:
    async with started(*arguments, **settings) as sluicegate:
        return await sluicegate.ended()


async def test_a_bad_setting_is_exit_code_2_and_one_line() -> None:
    ended = await _fails("up", listen="8470")

    assert (ended.code, ended.stdout) == (2, "")
    assert ended.stderr == "SLUICEGATE_LISTEN: must be an IP address and a port, like 127.0.0.1:8470 or [::1]:8470\n"


async def test_a_bad_address_list_or_certificate_file_is_one_line_before_anything_is_touched(tmp_path: Path) -> None:
    listed = await _fails("up", egress_deny="10.0.0.1/8", data_dir=tmp_path / "data")
    trusted = await _fails("up", ca_file=tmp_path / "ca.pem", data_dir=tmp_path / "data")

    assert (listed.code, trusted.code) == (2, 2)
    assert re.fullmatch(r"SLUICEGATE_EGRESS_DENY: '10\.0\.0\.1/8' is no [^\n]*\n", listed.stderr)
    assert trusted.stderr == f"SLUICEGATE_CA_FILE: cannot read {tmp_path}/ca.pem: No such file or directory\n"
    assert not (tmp_path / "data").exists()


async def test_serve_without_a_store_is_exit_code_2_and_names_the_setting() -> None:
    ended = await _fails("serve")

    assert ended.code == 2
    assert re.fullmatch(r"SLUICEGATE_MONGODB_URL: must be set for `serve`; [^\n]*\n", ended.stderr)


async def test_an_unknown_option_is_exit_code_2() -> None:
    assert (await _fails("up", "--dmeo")).code == 2


async def test_a_port_in_use_is_exit_code_1_and_one_sentence_before_anything_is_touched(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = await _fails("up", listen=f"127.0.0.1:{port}", data_dir=tmp_path / "data")

    assert (ended.code, ended.stdout) == (1, "")
    assert ended.stderr == (
        f"Cannot listen on 127.0.0.1:{port}: Address already in use; "
        "end what uses it, or set SLUICEGATE_LISTEN to another address.\n"
    )
    assert not (tmp_path / "data").exists()


async def test_an_admin_port_in_use_is_exit_code_1_and_one_sentence_that_names_its_setting(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = await _fails("up", admin_listen=f"127.0.0.1:{port}", data_dir=tmp_path / "data")

    assert (ended.code, ended.stdout) == (1, "")
    assert ended.stderr == (
        f"Cannot listen on 127.0.0.1:{port}: Address already in use; "
        "end what uses it, or set SLUICEGATE_ADMIN_LISTEN to another address.\n"
    )
    assert not (tmp_path / "data").exists()


async def test_a_certificate_that_cannot_be_read_is_exit_code_1_and_one_sentence(tmp_path: Path) -> None:
    missing = tmp_path / "missing.pem"
    ended = await _fails("up", tls_cert_file=missing, tls_key_file=missing, data_dir=tmp_path / "data")

    assert (ended.code, ended.stdout) == (1, "")
    assert ended.stderr == f"SLUICEGATE_TLS_CERT_FILE: {missing} cannot be read: No such file or directory.\n"
    assert not (tmp_path / "data").exists()


async def test_a_store_that_is_no_replica_set_is_exit_code_1_and_one_sentence(tmp_path: Path) -> None:
    with running_store(tmp_path, "--standalone") as store:
        ended = await _fails("serve", mongodb_url=f"mongodb://127.0.0.1:{store.port}/sluicegate")

    assert (ended.code, ended.stdout) == (1, "")
    assert "replica set" in ended.stderr
    assert ended.stderr.count("\n") == 1


async def test_a_store_that_nobody_serves_is_exit_code_1_and_one_sentence_without_its_password() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    ended = await _fails("serve", mongodb_url=f"mongodb://me:hunter2@127.0.0.1:{port}/", policy_timeout_s=0.5)

    assert (ended.code, ended.stdout) == (1, "")
    assert ended.stderr.count("\n") == 1
    assert "hunter2" not in ended.stderr


async def test_a_folder_in_use_is_exit_code_1_and_one_sentence(tmp_path: Path) -> None:
    async with started("up", data_dir=tmp_path / "data") as first:
        await first.ready()
        ended = await _fails("up", data_dir=tmp_path / "data")
        assert (await first.end()).code == 0

    assert (ended.code, ended.stdout) == (1, "")
    assert re.fullmatch(r"Another sluicegate is using [^\n]*\n", ended.stderr)


async def test_the_end_of_the_store_while_we_serve_is_exit_code_1(tmp_path: Path) -> None:
    async with started("up", data_dir=tmp_path / "data", log_format="json") as sluicegate:
        await sluicegate.ready()
        os.kill(json.loads((tmp_path / "data/store.pid").read_text())["pid"], signal.SIGKILL)
        ended = await sluicegate.ended()

    assert ended.code == 1
    assert '"event": "child.exited"' in ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("The embedded store ended with exit code -9")

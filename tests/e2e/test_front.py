"""What stands in front, in a process as a person starts it: https, and a listener for owners and operators."""

import re
import ssl
from pathlib import Path

import aiohttp
import pytest

from tests.certificates import made
from tests.e2e.processes import started

pytestmark = pytest.mark.timeout(60)
"""It starts and ends several processes."""


async def test_both_listeners_serve_https_each_its_own_part(tmp_path: Path) -> None:
    files, data = made(tmp_path), tmp_path / "data"
    given = {"tls_cert_file": files.cert, "tls_key_file": files.key, "admin_listen": "127.0.0.1:0", "data_dir": data}
    async with started("up", **given) as sluicegate:
        await sluicegate.ready()
        found = re.search(r"^Owners and operators reach it on (https://127\.0\.0\.1:\d+)$", sluicegate.greeting, re.M)
        assert found is not None
        assert sluicegate.base_url.startswith("https://127.0.0.1:")

        trusting = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=str(files.cert)))
        async with aiohttp.ClientSession(connector=trusting) as http:
            statuses = [
                (await http.get(base + path)).status
                for base in (sluicegate.base_url, found[1])
                for path in ("/readyz", "/api/v1/me", "/proxy/lab")
            ]
        assert statuses == [200, 404, 401, 200, 401, 404]
        assert (await sluicegate.end()).code == 0

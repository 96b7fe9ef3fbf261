"""The bypass corpus through a running Sluicegate against a real SDK downstream: no disabled tool runs."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.test_story import deployed, sdk_server
from tests.integration.test_corpus_on_the_wire import OFF, PAYLOADS, raw_bytes, sent


@pytest.mark.timeout(120)
@pytest.mark.parametrize("options", [["--stateless"], ["--json", "--stateless"]], ids=" ".join)
async def test_no_payload_runs_a_tool_that_is_off_on_a_real_server(
    database_url: str, tmp_path: Path, options: list[str]
) -> None:
    async with sdk_server(tmp_path, *options) as downstream, deployed(database_url, tmp_path) as deployment:
        await deployment.register(downstream)
        await deployment.switch_off(*OFF)
        port = urlsplit(deployment.replicas[0].base_url).port or 0

        for entry in PAYLOADS.values():
            raw = raw_bytes(entry, port, key=deployment.agent_key)
            await sent(port, raw)
        ran = [fact["tool"] for fact in downstream.heard() if "tool" in fact]
        assert ran
        assert not set(ran) & set(OFF)

        await deployment.switch_off()
        await sent(port, raw_bytes(PAYLOADS["A03"], port, key=deployment.agent_key))
        assert downstream.heard()[-1] == {"tool": "danger", "nonce": "NONCE"}

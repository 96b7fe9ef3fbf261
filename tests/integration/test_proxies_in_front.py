"""Proxies in front of us: whose word about client, host and scheme counts (DESIGN 7)."""

from typing import Any

import pytest
import structlog

from tests.fake_downstream import FakeDownstream
from tests.integration.conftest import running
from tests.raw_client import call, post

CALL = call("a")
ELSEWHERE = "X-Forwarded-Host: mcp.example.com"


@pytest.mark.parametrize(
    ("trusted", "host", "status"),
    [
        ("", "", 200),
        ("", ELSEWHERE, 200),
        ("127.0.0.0/8", ELSEWHERE, 421),
        ("127.0.0.1", "X-Forwarded-Host: gate.example.com", 200),
        ("127.0.0.1", "X-Forwarded-Host: evil.example, gate.example.com:443", 200),
        ("10.0.0.0/8", ELSEWHERE, 200),
    ],
)
async def test_the_host_that_is_checked_is_that_which_a_trusted_proxy_was_asked_for(
    downstream: FakeDownstream, trusted: str, host: str, status: int
) -> None:
    fields = [host] if host else []
    async with running(downstream, trusted_proxies=trusted, allowed_hosts="gate.example.com") as plane:
        assert (await plane.ask(post(CALL, *fields))).status == status


@pytest.mark.parametrize(("trusted", "client"), [("127.0.0.1", "192.0.2.7"), ("", "127.0.0.1")])
async def test_the_log_names_the_client(downstream: FakeDownstream, trusted: str, client: str) -> None:
    async with running(downstream, trusted_proxies=trusted) as plane:
        plane.disable("a")
        with structlog.testing.capture_logs(processors=[structlog.contextvars.merge_contextvars]) as log:
            await plane.ask(post(CALL, "X-Forwarded-For: 198.51.100.1, 192.0.2.7", "X-Forwarded-Proto: https"))

    found: Any = next(line for line in log if line["event"] == "exchange.refused")
    assert (found["client"], found["scheme"]) == (client, "https" if trusted else "http")


@pytest.mark.parametrize("trusted", ["127.0.0.1", ""])
async def test_what_a_client_says_of_its_way_is_never_forwarded(downstream: FakeDownstream, trusted: str) -> None:
    said = ["X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: https", "Forwarded: for=192.0.2.7", "X-Real: yes"]
    async with running(downstream, trusted_proxies=trusted) as plane:
        assert (await plane.ask(post(CALL, *said))).status == 200

    names = {name for name, _ in downstream.received[0].fields}
    assert [name for name in names if "forwarded" in name] == []
    assert "x-real" in names

"""Downstreams behind TLS: whose certificates are believed, by both clients, and what the log says of the others."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from config.outbound import network
from config.settings import Settings
from registry.downstream import McpCatalogue
from registry.errors import DownstreamFailed
from tests import build
from tests.authority import Authority
from tests.fake_downstream import FakeDownstream, answer
from tests.integration.conftest import running
from tests.raw_client import call, post

CALL = post(call("a", '"the id"'))
UNREACHABLE = {
    "jsonrpc": "2.0",
    "id": "the id",
    "error": {"code": -32603, "message": "the downstream cannot be reached"},
}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@contextlib.asynccontextmanager
async def behind(tls: ssl.SSLContext) -> AsyncIterator[FakeDownstream]:
    async with FakeDownstream(tls=tls) as downstream:
        yield downstream


async def test_a_certificate_of_the_private_authority_is_believed(authority: Authority) -> None:
    async with behind(authority.server("127.0.0.1")) as downstream:
        async with running(downstream, ca_file=authority.file) as plane:
            assert (await plane.ask(CALL)).status == 200
        downstream.script = answer(b"", "", "401 Unauthorized")
        with pytest.raises(DownstreamFailed, match="HTTP status 401"):
            await McpCatalogue(network=network(settings(authority))).snapshot(build.policy(url=downstream.url))


async def test_the_certificate_is_that_of_the_name_and_not_of_the_address(authority: Authority) -> None:
    async with behind(authority.server("localhost")) as downstream:
        async with running(downstream, ca_file=authority.file) as plane:
            plane.policy(url=f"https://localhost:{downstream.port}/mcp")
            assert (await plane.ask(CALL)).status == 200
        downstream.script = answer(b"", "", "401 Unauthorized")
        url = f"https://localhost:{downstream.port}/mcp"
        with pytest.raises(DownstreamFailed, match="HTTP status 401"):
            await McpCatalogue(network=network(settings(authority))).snapshot(build.policy(url=url))


def settings(authority: Authority | None) -> Settings:
    return Settings.model_validate({} if authority is None else {"ca_file": authority.file})


def wrong(case: str, authority: Authority, folder: Path) -> tuple[Authority | None, ssl.SSLContext]:
    """Whom we believe, and how the server shows itself."""
    match case:
        case "the system does not know the authority":
            return None, authority.server("127.0.0.1")
        case "another authority":
            return Authority(folder, "other"), authority.server("127.0.0.1")
        case "expired":
            return authority, authority.server("127.0.0.1", expires=timedelta(days=-1))
        case _:
            return authority, authority.server("127.0.0.2", "elsewhere.example")


CASES = {
    "the system does not know the authority": "unable to get local issuer certificate",
    "another authority": "unable to get local issuer certificate",
    "expired": "certificate has expired",
    "another host": "IP address mismatch, certificate is not valid for '127.0.0.1'.",
}


@pytest.mark.parametrize("case", CASES)
async def test_a_certificate_that_is_not_right_is_502_and_the_log_says_why(
    case: str, authority: Authority, tmp_path: Path
) -> None:
    believed, shown = wrong(case, authority, tmp_path)
    chosen: dict[str, Any] = {} if believed is None else {"ca_file": believed.file}
    async with behind(shown) as downstream, running(downstream, **chosen) as plane:
        with capture_logs() as logs:
            reply = await plane.ask(CALL)

    assert (reply.status, reply.json, downstream.received) == (502, UNREACHABLE, [])
    assert [line["cause"] for line in logs if line["event"] == "exchange.failed"] == [
        f"the downstream cannot be reached: its certificate is not accepted: {CASES[case]}"
    ]


@pytest.mark.parametrize("case", CASES)
async def test_the_registrys_client_believes_no_such_certificate_either(
    case: str, authority: Authority, tmp_path: Path
) -> None:
    believed, shown = wrong(case, authority, tmp_path)
    async with behind(shown) as downstream:
        catalogue = McpCatalogue(network=network(settings(believed)), timeout_s=5)
        with capture_logs() as logs, pytest.raises(DownstreamFailed) as failed:
            await catalogue.snapshot(build.policy(url=downstream.url))

    assert (str(failed.value), downstream.received) == ("the downstream could not be connected to", [])
    causes = [line["cause"] for line in logs if line["event"] == "downstream.unreachable"]
    assert causes != []
    assert all(CASES[case] in cause for cause in causes)


async def test_a_server_that_speaks_no_tls_is_502_and_the_log_says_that_it_was_tls(downstream: FakeDownstream) -> None:
    async def speak_at_once(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(speak_at_once, "127.0.0.1", 0)
    async with server, running(downstream) as plane:
        plane.policy(url=f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp")
        with capture_logs() as logs:
            assert (await plane.ask(CALL)).status == 502
    [cause] = [line["cause"] for line in logs if line["event"] == "exchange.failed"]
    assert cause.startswith("the downstream cannot be reached: [SSL: ")

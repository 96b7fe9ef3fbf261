"""https by certificate and key files (DESIGN 7): what is spoken, and that what holds without TLS holds with it."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.certificates import Files, made
from tests.fake_downstream import Connection, FakeDownstream, Received, chunk, head
from tests.integration.conftest import Plane, running
from tests.raw_client import Client, call, post, request

CALL = post(call("a"))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return made(tmp_path)


@pytest.fixture
async def secure(files: Files, downstream: FakeDownstream) -> AsyncIterator[Plane]:
    async with running(downstream, tls_cert_file=files.cert, tls_key_file=files.key, head_timeout_s=0.5) as plane:
        yield plane


@pytest.fixture
def trusting(files: Files) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(files.cert))


async def test_a_client_that_trusts_the_certificate_is_served(secure: Plane, trusting: ssl.SSLContext) -> None:
    async with await Client.connect(secure.port, trusting) as client:
        assert (await client.ask(CALL)).status == 200
        assert client.writer.get_extra_info("ssl_object").selected_alpn_protocol() is None
        assert secure.downstream.bodies == [call("a")]


async def test_a_client_that_does_not_is_not(secure: Plane) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        await Client.connect(secure.port, ssl.create_default_context())


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated:DeprecationWarning")
async def test_nothing_older_than_tls_1_2_is_spoken(secure: Plane, trusting: ssl.SSLContext) -> None:
    trusting.set_ciphers("ALL:@SECLEVEL=0")
    trusting.minimum_version = trusting.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await Client.connect(secure.port, trusting)

    trusting.maximum_version = trusting.minimum_version = ssl.TLSVersion.TLSv1_2
    async with await Client.connect(secure.port, trusting) as client:
        assert (await client.ask(CALL)).status == 200


async def test_http_1_1_is_agreed_on(secure: Plane, trusting: ssl.SSLContext) -> None:
    trusting.set_alpn_protocols(["h2", "http/1.1"])
    async with await Client.connect(secure.port, trusting) as client:
        assert client.writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"


async def test_plain_http_gets_no_answer(secure: Plane, trusting: ssl.SSLContext) -> None:
    async with await Client.connect(secure.port) as client:
        client.writer.write(CALL)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await client.head()

    async with await Client.connect(secure.port, trusting) as client:
        assert (await client.ask(CALL)).status == 200


async def test_a_handshake_that_does_not_come_is_given_up_in_time(secure: Plane, trusting: ssl.SSLContext) -> None:
    async with await Client.connect(secure.port) as client:
        assert await client.reader.read() == b""

    async with await Client.connect(secure.port, trusting) as client:
        assert (await client.ask(CALL)).status == 200


async def test_a_stream_flows_event_by_event_and_a_cut_one_is_not_taken_for_whole(
    secure: Plane, trusting: ssl.SSLContext
) -> None:
    let_go = asyncio.Event()

    async def broken(_request: Received, connection: Connection) -> None:
        connection.write(head() + chunk(b"data: 1\n\n"))
        await let_go.wait()
        connection.abort()

    secure.downstream.script = broken
    async with await Client.connect(secure.port, trusting) as client:
        client.writer.write(request("GET"))
        assert (await client.head())[0] == 200
        assert await client.chunk() == b"data: 1\n\n"
        let_go.set()
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await client.chunk()

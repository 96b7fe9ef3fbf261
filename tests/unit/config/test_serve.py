"""Listening, and the order of the end."""

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from config.address import Address
from config.errors import StartFailed
from config.serve import first_of, listen, serving, until_signalled

ANY = Address("127.0.0.1", 0)


class Slow:
    """A handler that waits until it is let go."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.let_go = asyncio.Event()
        self.app = web.Application()
        self.app.router.add_post("/", self.handle)

    async def handle(self, _request: web.Request) -> web.Response:
        self.entered.set()
        await self.let_go.wait()
        return web.Response(text="done")


def _url(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}/"


async def _call(url: str) -> str:
    async with aiohttp.ClientSession() as http, http.post(url) as answer:
        return await answer.text()


async def test_a_running_call_finishes_within_the_grace_period_and_no_new_one_begins() -> None:
    slow = Slow()
    refused: list[type[Exception]] = []

    async def try_again(_app: web.Application) -> None:
        try:
            await _call(url)
        except aiohttp.ClientConnectionError as exc:
            refused.append(type(exc))
        slow.let_go.set()

    slow.app.on_shutdown.append(try_again)
    listener = listen(ANY)
    url = _url(listener)
    async with serving(slow.app, listener, grace_s=5):
        call = asyncio.create_task(_call(url))
        await slow.entered.wait()

    assert await call == "done"
    assert refused == [aiohttp.ClientConnectorError]


async def test_a_call_that_outlasts_the_grace_period_is_cut() -> None:
    slow = Slow()
    listener = listen(ANY)
    async with serving(slow.app, listener, grace_s=0.1):
        call = asyncio.create_task(_call(_url(listener)))
        await slow.entered.wait()

    with pytest.raises(aiohttp.ServerDisconnectedError):
        await call


async def test_a_port_that_is_taken_is_one_sentence() -> None:
    with listen(ANY) as taken:
        address = Address(*taken.getsockname()[:2])
        with pytest.raises(StartFailed, match=rf"^Cannot listen on {address}: Address already in use; "):
            listen(address)


async def test_a_port_that_is_taken_names_the_setting_of_its_address() -> None:
    with (
        listen(ANY) as taken,
        pytest.raises(StartFailed, match=r"or set SLUICEGATE_ADMIN_LISTEN to another address\.$"),
    ):
        listen(Address(*taken.getsockname()[:2]), "SLUICEGATE_ADMIN_LISTEN")


async def test_nothing_is_accepted_on_any_listener_while_one_waits_for_its_calls() -> None:
    slow, other, listener, more = Slow(), web.Application(), listen(ANY), listen(ANY)
    refused: list[type[Exception]] = []

    async def try_again(_app: web.Application) -> None:
        for url in urls:
            try:
                await _call(url)
            except aiohttp.ClientConnectionError as exc:
                refused.append(type(exc))

    urls = [_url(one) for one in (listener, more)]
    other.on_shutdown.append(try_again)
    async with serving(other, listener, (slow.app, more), grace_s=5):
        call = asyncio.create_task(_call(urls[1]))
        await slow.entered.wait()
        slow.let_go.set()

    assert await call == "done"
    assert refused == [aiohttp.ClientConnectorError, aiohttp.ClientConnectorError]


async def test_an_address_of_another_machine_is_one_sentence() -> None:
    with pytest.raises(StartFailed, match=r"^Cannot listen on 192\.0\.2\.1:0: "):
        listen(Address("192.0.2.1", 0))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_closes_what_was_opened_and_returns(number: signal.Signals) -> None:
    closed = []

    async def work() -> None:
        try:
            os.kill(os.getpid(), number)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            closed.append(True)

    await until_signalled(work())

    assert closed == [True]


async def test_a_second_signal_ends_the_process_at_once() -> None:
    program = (
        "import asyncio, os, signal\n"
        "from config.serve import until_signalled\n"
        "async def work():\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        await asyncio.Event().wait()\n"
        "    finally:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(until_signalled(work()))\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, cwd=Path(__file__).parents[3])

    assert await process.wait() == 130


async def test_an_error_is_no_signal() -> None:
    async def work() -> None:
        raise StartFailed("why")

    with pytest.raises(StartFailed):
        await until_signalled(work())


async def test_the_first_that_ends_decides_and_the_others_are_cancelled() -> None:
    cancelled = asyncio.Event()

    async def lasting() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def failing() -> None:
        raise StartFailed("why")

    with pytest.raises(StartFailed, match="why"):
        await first_of(lasting(), failing())
    await cancelled.wait()

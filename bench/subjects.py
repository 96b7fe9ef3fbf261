"""What is measured, each as processes of its own on a core of its own.

Downstream, load and store share the other core, so that the cost of a subject is that of its processes alone.
"""

import asyncio
import contextlib
import json
import os
import shutil
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import psutil

from bench.downstream import tool_name
from config.embedded import EmbeddedStore
from config.environment import environment_for_children

SUBJECT_CORE, ENDS_CORE = 0, 1

LISTS = {10: 1, 100: 10, 1_000: 10}
"""Tools of a list -> how many of them are hidden where some are."""

_KEY = "sg_" + "b" * 43

_NGINX = """
daemon off; master_process off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 1000000;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  upstream downstream {{ server 127.0.0.1:{downstream}; keepalive 64; keepalive_requests 1000000; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; proxy_pass http://downstream;
    }}
  }}
}}
"""


@dataclass(frozen=True, slots=True)
class Subject:
    """Something that a load can ask. `fields` go with each request. `process` None: there is nothing in between.

    `addresses` are by what they are for: `call`, `slow`, and `list N` and `hidden N` of each list of LISTS.
    """

    name: str
    addresses: Mapping[str, str]
    process: psutil.Process | None = None
    fields: Mapping[str, str] = field(default_factory=dict)

    def cpu_s(self) -> float:
        """User and system time of its processes so far."""
        return sum(_cpu_s(process) for process in self._tree())

    def resident_bytes(self) -> int:
        """Of its processes now."""
        return sum(process.memory_info().rss for process in self._tree())

    def _tree(self) -> list[psutil.Process]:
        return [] if self.process is None else [self.process, *self.process.children(recursive=True)]


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def cpu_of(pid: int) -> float:
    """User and system time of one process so far."""
    return _cpu_s(psutil.Process(pid))


def free_port() -> int:
    """A port of 127.0.0.1 that nobody uses now."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def plain_addresses(base: str) -> dict[str, str]:
    """The addresses of a downstream, straight or through something that changes no path."""
    lists = {f"list {tools}": f"{base}/mcp?n={tools}" for tools in LISTS}
    return {"call": f"{base}/mcp", "slow": f"{base}/slow", **lists}


@contextlib.asynccontextmanager
async def process(core: int, *command: str, ready: bytes | int, **more: Any) -> AsyncIterator[psutil.Process]:
    """Run a program on one core, and end it. It is ready when it prints a line that begins so, or takes this port."""
    pinned = ("taskset", "-c", str(core), *command)
    running = await asyncio.create_subprocess_exec(*pinned, stdout=asyncio.subprocess.PIPE, **more)
    try:
        async with asyncio.timeout(30):
            await (_said(running, ready) if isinstance(ready, bytes) else _takes(ready))
        yield psutil.Process(running.pid)
    finally:
        with contextlib.suppress(ProcessLookupError):
            running.terminate()
        await running.communicate()


async def _said(running: asyncio.subprocess.Process, ready: bytes) -> None:
    if running.stdout is None:
        raise RuntimeError("started without a pipe")
    async for line in running.stdout:
        if line.startswith(ready):
            return
    raise RuntimeError("a program of the bench ended before it was ready")


async def _takes(port: int) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError:
            await asyncio.sleep(0.01)
        else:
            writer.close()
            return


@contextlib.asynccontextmanager
async def downstream() -> AsyncIterator[int]:
    """The downstream of all subjects; gives its port."""
    port = free_port()
    async with process(ENDS_CORE, sys.executable, "-m", "bench.downstream", str(port), ready=b"listening"):
        yield port


@contextlib.asynccontextmanager
async def nginx(downstream_port: int, folder: Path) -> AsyncIterator[Subject | None]:
    """None where it is not installed."""
    program = shutil.which("nginx")
    if program is None:
        yield None
        return
    port = free_port()
    config = folder / "nginx.conf"
    config.write_text(_NGINX.format(folder=folder, port=port, downstream=downstream_port))
    async with process(SUBJECT_CORE, program, "-c", str(config), ready=port) as running:
        yield Subject("nginx", plain_addresses(f"http://127.0.0.1:{port}"), running)


@contextlib.asynccontextmanager
async def passthrough(downstream_port: int) -> AsyncIterator[Subject]:
    """A proxy on aiohttp that looks at nothing."""
    port, target = free_port(), f"http://127.0.0.1:{downstream_port}"
    command = (sys.executable, "-m", "bench.passthrough", str(port), target)
    async with process(SUBJECT_CORE, *command, ready=b"listening") as running:
        yield Subject("aiohttp pass-through", plain_addresses(f"http://127.0.0.1:{port}"), running)


@contextlib.asynccontextmanager
async def store(folder: Path) -> AsyncIterator[tuple[str, int]]:
    """The embedded store, on the core of the ends; gives its address and its process."""
    async with EmbeddedStore(folder) as embedded:
        url = await embedded.start()
        yield url, next(child.pid for child in psutil.Process().children() if "secantusd" in " ".join(child.cmdline()))


@contextlib.asynccontextmanager
async def sluicegate(store_url: str, max_staleness_s: float, folder: Path) -> AsyncIterator[Subject]:
    """One replica, with nothing registered yet."""
    port = free_port()
    given = {
        "MONGODB_URL": store_url,
        "LISTEN": f"127.0.0.1:{port}",
        "MAX_STALENESS_S": str(max_staleness_s),
        "BOOTSTRAP_ADMIN_KEY": _KEY,
        "EMBEDDINGS": "none",
        "LOG_LEVEL": "warning",
        "DATA_DIR": str(folder),
    }
    environment = environment_for_children() | {f"SLUICEGATE_{name}": value for name, value in given.items()}
    command = (sys.executable, "-m", "config.main", "serve")
    async with process(SUBJECT_CORE, *command, ready=b"Ctrl-C", env=environment) as running:
        base = f"http://127.0.0.1:{port}/proxy"
        names = ("call", "slow", *(f"{kind} {tools}" for kind in ("list", "hidden") for tools in LISTS))
        addresses = {name: f"{base}/{_path(name)}" for name in names}
        title = f"Sluicegate, staleness {max_staleness_s:g}"
        yield Subject(title, addresses, running, {"X-Sluicegate-Key": _KEY})


def _path(name: str) -> str:
    return name.replace(" ", "-")


async def register(subject: Subject, downstream_port: int) -> None:
    """Register the servers behind its addresses, and hide what shall be hidden."""
    for name in subject.addresses:
        _, _, tools = name.partition(" ")
        way = "slow" if name == "slow" else f"mcp/{_path(name)}"  # each downstream is registered once
        url = f"http://127.0.0.1:{downstream_port}/{way}?n={tools or 10}"
        body = {"serverName": name, "path": f"/{_path(name)}", "type": "streamable-http", "url": url}
        await api(subject, "POST", "/servers", body)
        if name.startswith("hidden"):
            names = [tool_name(number) for number in range(1, LISTS[int(tools)] + 1)]
            await api(subject, "PATCH", f"/servers/{quote('/' + _path(name), safe='')}/tools", {"disabledTools": names})


async def api(subject: Subject, method: str, path: str, body: Any) -> Any:
    """Ask the registry API of a Sluicegate as its admin."""
    base = subject.addresses["call"].partition("/proxy/")[0]
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {_KEY}"}) as session,
        session.request(method, f"{base}/api/v1{path}", json=body) as answer,
    ):
        if not answer.ok:
            raise RuntimeError(f"{method} {path}: {answer.status} {await answer.text()}")
        return json.loads(await answer.text())


def stay_on_core(core: int) -> None:
    """Run this process, and what it starts from now on, on one core."""
    os.sched_setaffinity(0, {core})

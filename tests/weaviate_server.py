"""A real Weaviate as a process of its own, and the fixtures that run one.

Source: WEAVIATE (the environment of a single node without containers). `make weaviate` builds the program. It starts
with an environment of its own, so that no proxy and no setting of the machine reaches it.

A test module takes the fixtures by name: `weaviate_process, weaviate, collection = weaviate_server.FIXTURES`.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.need import need

PROGRAM = Path(__file__).parents[1] / ".cache" / "weaviate" / "weaviate-server"
"""Where `make weaviate` puts it."""

READY_WITHIN_S = 60.0
"""It takes about nine seconds alone on two cores."""

KEYS = {"admin": "admin-key", "reader": "reader-key"}
"""User by key of a server with keys: `admin` may do everything, `reader` nothing until it is granted something."""

WITH_KEYS = {
    "AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED": "false",
    "AUTHENTICATION_APIKEY_ENABLED": "true",
    "AUTHENTICATION_APIKEY_ALLOWED_KEYS": ",".join(KEYS.values()),
    "AUTHENTICATION_APIKEY_USERS": ",".join(KEYS),
    "AUTHORIZATION_RBAC_ENABLED": "true",
    "AUTHORIZATION_RBAC_ROOT_USERS": "admin",
}

WITH_MCP = {"MCP_SERVER_ENABLED": "true", "MCP_SERVER_WRITE_ACCESS_ENABLED": "true"}
"""Serves Streamable HTTP at `/v1/mcp`."""


_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class WeaviateServer:
    """One server, restartable on the same ports and the same data.

    States: stopped -> running <-> frozen -> stopped.

    Args:
        folder: keeps the data and the log.
        options: more environment: WITH_KEYS, WITH_MCP, or what a test needs.
    """

    def __init__(self, folder: Path, options: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._ports = _free_ports()
        self._options = dict(options or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Of its REST API."""
        return f"http://127.0.0.1:{self._ports['http']}"

    @property
    def grpc(self) -> str:
        """Host and port of its gRPC API."""
        return f"127.0.0.1:{self._ports['grpc']}"

    @property
    def is_running(self) -> bool:
        """False once it was killed or stopped."""
        return self._process is not None

    def start(self) -> None:
        """Start it and wait until it says that it is ready."""
        assert self._process is None
        where = ("--host", "127.0.0.1", "--port", str(self._ports["http"]), "--scheme", "http")
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(PROGRAM), *where], env=self._environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self._wait_until_ready(self._process)

    def kill(self) -> None:
        """End it as a machine that fails would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it in order; nothing when it does not run."""
        self.thaw()
        self._end(signal.SIGTERM)

    def freeze(self) -> None:
        """Let it hang: its sockets stay open and nothing answers."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)  # a signal is only sent; this is when it has come

    def thaw(self) -> None:
        """Let it go on."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    def _end(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()
            self._process = None

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        """Ask again and again: it is a foreign process that gives no other sign."""
        deadline = time.monotonic() + READY_WITHIN_S
        while not self._is_ready():
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"Weaviate did not get ready: {(self._folder / 'log').read_text()[-2000:]}")
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        try:
            self.ask("GET", "/v1/.well-known/ready")
        except OSError:
            return False
        return True

    def ask(self, method: str, path: str, body: object = None, key: str | None = None) -> Any:
        """What its REST API answers, as another program would ask it. Raises OSError for an error status too."""
        fields = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, fields, method=method)
        with _DIRECT.open(request, timeout=5) as answer:
            return json.loads(answer.read() or b"null")

    def _environment(self) -> dict[str, str]:
        ports = {name: str(port) for name, port in self._ports.items()}
        return _ALWAYS | {
            "PERSISTENCE_DATA_PATH": str(self._folder / "data"),
            "RAFT_JOIN": f"node1:{ports['raft']}",
            "RAFT_PORT": ports["raft"],
            "RAFT_INTERNAL_RPC_PORT": ports["raft_rpc"],
            "CLUSTER_GOSSIP_BIND_PORT": ports["gossip"],
            "CLUSTER_DATA_BIND_PORT": ports["data"],
            "GRPC_PORT": ports["grpc"],
            **self._options,
        }


_ALWAYS = {
    "CLUSTER_HOSTNAME": "node1",
    "CLUSTER_IN_LOCALHOST": "true",
    "CLUSTER_ADVERTISE_ADDR": "127.0.0.1",
    "CLUSTER_BIND_ADDR": "127.0.0.1",
    "RAFT_BOOTSTRAP_EXPECT": "1",
    "AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED": "true",
    "AUTOSCHEMA_ENABLED": "true",  # as it is in the field: whoever writes to a missing collection makes one
    "API_BASED_MODULES_DISABLED": "true",
    "ENABLE_MODULES": "",
    "DISABLE_TELEMETRY": "true",
    "GO_PROFILING_DISABLE": "true",
    "QUERY_DEFAULTS_LIMIT": "20",
    "LOG_LEVEL": "warning",
}


def _free_ports() -> dict[str, int]:
    """Ports that nobody listens on now."""
    with contextlib.ExitStack() as held:
        gossip, data = _neighbours(held)
        raft, raft_rpc = _neighbours(held)
        alone = {"http": _hold(held, 0), "grpc": _hold(held, 0)}
        return alone | {"gossip": gossip, "data": data, "raft": raft, "raft_rpc": raft_rpc}


def _neighbours(held: contextlib.ExitStack) -> tuple[int, int]:
    """Two ports in a row: a node on localhost looks for the second of each pair right after the first."""
    while True:
        first = _hold(held, 0)
        with contextlib.suppress(OSError, OverflowError):
            return first, _hold(held, first + 1)


def _hold(held: contextlib.ExitStack, port: int) -> int:
    taken = held.enter_context(socket.socket())
    taken.bind(("127.0.0.1", port))
    number: int = taken.getsockname()[1]
    return number


@contextlib.contextmanager
def running_weaviate(folder: Path, options: Mapping[str, str] | None = None) -> Iterator[WeaviateServer]:
    """Start a server, and end it."""
    need("weaviate", present=PROGRAM.is_file())
    server = WeaviateServer(folder, options)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def weaviate_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WeaviateServer]:
    """One server for the tests of a module."""
    with running_weaviate(tmp_path_factory.mktemp("weaviate")) as server:
        yield server


@pytest.fixture
def weaviate(weaviate_process: WeaviateServer) -> Iterator[WeaviateServer]:
    """It, running: a test may freeze and kill it."""
    yield weaviate_process
    weaviate_process.thaw()
    if not weaviate_process.is_running:
        weaviate_process.start()


@pytest.fixture
def collection() -> str:
    """The name of a collection that nobody has used."""
    return f"Test{uuid.uuid4().hex}"


FIXTURES = (weaviate_process, weaviate, collection)

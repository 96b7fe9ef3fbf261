"""The demonstration downstream: a child process, registered as /demo, and one agent's key for it.

Source: issue "the main job", `make run`. Whatever is there already stays, so that a second start finds its data again;
the port is the registered one, and the first start takes 8471 or, when that is taken, a free one.
"""

import contextlib
import importlib.util
import re
import socket
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from config import private
from config.children import Child
from config.errors import StartFailed
from config.wiring import App
from registry.credentials import key_hash, new_key
from registry.entries import NewServer, Server, ServerType
from registry.model import DEFAULT_SCOPES, OWNER, VIEWER, AccessEntry, ApiKey, Asked, PrincipalType
from registry.ports import Transaction
from registry.refresh import Cause
from registry.rows import Action, Activity

PATH = "/demo"
_HOST = "127.0.0.1"
_PORT = 8471
_OWNER = "admin"
"""For whom the first admin key acts, so that it owns the demonstration."""

_AGENT = "demo-agent"
_LISTENING = re.compile(r"listening on (http://\S+)")


@dataclass(frozen=True, slots=True)
class Demo:
    """The running downstream, and the text of the agent's key, which `introduce` makes known."""

    child: Child
    url: str
    agent_key: str


@contextlib.asynccontextmanager
async def running(app: App, data_dir: Path) -> AsyncIterator[Demo]:
    """Run the downstream while the context is open; the registry is only read.

    Raises:
        StartFailed: its port is taken, or /demo is another server.
    """
    port = _port(await app.ledger.change(_find))
    child = await Child.spawn("demonstration server", _command(port))
    try:
        url = (await child.ready(_LISTENING))[1]
        yield Demo(child, url, _agent_key(private.make_folder(data_dir) / "demo-agent.key"))
    finally:
        await child.stop()


async def introduce(app: App, demo: Demo) -> None:
    """Register the server and the agent's key where they are missing, and read the server's tools."""
    server = await app.ledger.change(_Registration(demo.url, key_hash(demo.agent_key)))
    await app.refresher.refresh(server.id, Cause(_OWNER))


def _agent_key(file: Path) -> str:
    if (kept := private.read(file)) is not None:
        return kept
    private.write(file, made := new_key())  # before it is stored: a key whose text is lost is of no use
    return made


async def _find(tx: Transaction) -> Server | None:
    return await tx.server(PATH)


def _port(registered: Server | None) -> int:
    if registered is None:
        return _PORT if _is_free(_PORT) else 0
    url = urlsplit(registered.url)
    if url.hostname != _HOST or url.port is None:
        raise StartFailed(f"The path {PATH} belongs to another server ({registered.name}); start without --demo.")
    if not _is_free(url.port):
        raise StartFailed(f"Port {url.port} of the demonstration server is taken; end what uses it, then start again.")
    return url.port


def _is_free(port: int) -> bool:
    try:
        socket.create_server((_HOST, port)).close()
    except OSError:
        return False
    return True


def _command(port: int) -> list[str | Path]:
    module = importlib.util.find_spec("examples.demo_server")  # found, not imported: it is a program
    if module is None or module.origin is None:
        raise StartFailed("The demonstration server is not installed; start without --demo.")
    return [sys.executable, module.origin, "--host", _HOST, "--port", str(port)]


@dataclass(frozen=True, slots=True)
class _Registration:
    """The transaction that makes what is missing: server, entries, key."""

    url: str
    agent_hash: str

    async def __call__(self, tx: Transaction) -> Server:
        now = (await tx.facts(Asked(None))).now
        key_id = f"{_AGENT}-{self.agent_hash[:12]}"
        if await tx.key(key_id) is None:
            await tx.record(Activity(now, _OWNER, Action.KEY_CREATED, subject=key_id, after={"name": _AGENT}))
            await tx.add_key(self._key(key_id, now))
        return await tx.server(PATH) or await self._register(tx, now)

    def _key(self, key_id: str, now: datetime) -> ApiKey:
        return ApiKey(
            id=key_id,
            hash=self.agent_hash,
            name=_AGENT,
            user=_AGENT,
            groups=frozenset(),
            roles=frozenset(),
            scopes=DEFAULT_SCOPES,
            enabled=True,
            created_at=now,
            created_by=_OWNER,
        )

    async def _register(self, tx: Transaction, now: datetime) -> Server:
        new = NewServer(
            name="demo",
            path=PATH,
            url=self.url,
            type=ServerType.STREAMABLE_HTTP,
            title="Demonstration",
            description="A small code host in memory.",
        )
        server = await tx.add_server(new)
        await tx.add_entry(AccessEntry(server.id, PrincipalType.USER, _OWNER, OWNER))
        await tx.add_entry(AccessEntry(server.id, PrincipalType.USER, _AGENT, VIEWER))
        await tx.record(Activity(now, _OWNER, Action.SERVER_CREATED, server_id=server.id, subject=PATH))
        return server

"""The whole application on the in-memory store, listening, in front of a fake downstream."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from aiohttp import web

from config.connections import Limits
from config.serve import listen, serving
from config.settings import Settings
from config.tls import for_listeners
from config.wiring import build
from registry.entries import Server
from registry.memory import MemoryStore
from tests import build as made
from tests.fake_downstream import FakeDownstream
from tests.raw_client import Answer, ask


@dataclass
class Plane:
    """A running Sluicegate, the store behind its decisions, and the downstream behind it."""

    port: int
    app: web.Application
    store: MemoryStore
    downstream: FakeDownstream

    async def ask(self, data: bytes) -> Answer:
        """Send raw bytes over a connection of their own."""
        return await ask(self.port, data)

    def policy(self, **changes: Any) -> None:
        """Change the server's policy as a foreign program would."""
        self.store.write("srv-1", **changes)

    def disable(self, *tools: str) -> None:
        """Switch these off, and only these."""
        self.policy(disabled_tools=frozenset(tools))


@contextlib.asynccontextmanager
async def running(downstream: FakeDownstream, **settings: Any) -> AsyncIterator[Plane]:
    """Serve in front of `downstream`, which is registered as /lab."""
    store = MemoryStore()
    store.state.keys["key-1"] = made.key()
    store.state.servers["srv-1"] = _server(downstream)
    store.state.entries.append(made.entry())
    chosen = Settings.model_validate({"listen": "127.0.0.1:0", "embeddings": "none", **settings})
    app = build(chosen, store)
    listener = listen(chosen.listen)
    async with serving(app.web, listener, grace_s=1, limits=Limits.of(chosen), tls=for_listeners(chosen)):
        yield Plane(listener.getsockname()[1], app.web, store, downstream)


def _server(downstream: FakeDownstream) -> Server:
    server = made.server("a", "b")
    return replace(server, url=downstream.url, policy=replace(server.policy, url=downstream.url))


@pytest.fixture
async def downstream() -> AsyncIterator[FakeDownstream]:
    """A recording downstream."""
    async with FakeDownstream() as fake:
        yield fake


@pytest.fixture
async def plane(downstream: FakeDownstream) -> AsyncIterator[Plane]:
    """Sluicegate with its defaults in front of it."""
    async with running(downstream) as plane:
        yield plane

"""The composition root: settings and a store in, an application out.

Source: LAYOUT (walk-through 4). Nothing is decided here; every collaborator is made once and handed on. Tests call
`build` with the in-memory store, the command with the real one.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from aiohttp import web

from config import operations
from config.settings import Settings
from proxy.errors import PolicyUnknown
from proxy.ports import DataPlaneSettings
from proxy.transport.downstream import HttpDownstream
from proxy.transport.guard import guard
from proxy.transport.handler import DataPlane
from registry.activity import ActivityLog
from registry.api import Services, application
from registry.downstream import McpCatalogue
from registry.errors import StoreUnavailable
from registry.freshness import Freshness
from registry.keys import Keys
from registry.model import Asked, Facts, Scope
from registry.ports import ActivityStore, Health, KeyStore, Ledger, PolicyReader, ServerStore
from registry.refresh import Refresher
from registry.servers import Servers
from registry.tools import Tools


class Store(Protocol):
    """The authority, as the use cases see it: MongoDB or the in-memory twin."""

    @property
    def policies(self) -> PolicyReader:
        """Reads for decisions."""
        ...

    @property
    def ledger(self) -> Ledger:
        """Changes."""
        ...

    @property
    def servers(self) -> ServerStore:
        """Servers, for people."""
        ...

    @property
    def keys(self) -> KeyStore:
        """Keys, for people."""
        ...

    @property
    def activity(self) -> ActivityStore:
        """The activity log."""
        ...

    @property
    def health(self) -> Health:
        """Is it there?"""
        ...


@dataclass(frozen=True, slots=True)
class App:
    """What `build` made: the web application, and what a start needs besides."""

    web: web.Application
    keys: Keys
    ledger: Ledger
    refresher: Refresher


def build(settings: Settings, store: Store) -> App:
    """Make the application. It opens nothing before it is started and closes what it opened when it is cleaned up."""
    freshness = Freshness(store.policies, timeout_s=settings.policy_timeout_s)
    refresher = Refresher(store.ledger, McpCatalogue(), store.servers)
    keys = Keys(store.ledger, store.keys, freshness)
    services = Services(
        servers=Servers(store.ledger, store.servers, freshness, refresher, Scope(settings.registration)),
        tools=Tools(store.ledger),
        keys=keys,
        activity=ActivityLog(store.activity, freshness),
        public_url=settings.base_url,
    )
    guarded = operations.except_health(guard(settings.hosts, settings.origins))
    app = web.Application(middlewares=[operations.json_errors, guarded])
    app.add_routes(operations.routes(store.health, timeout_s=settings.policy_timeout_s))
    app.add_subapp("/api/v1", application(services))
    _mount_data_plane(app, settings, freshness)
    return App(app, keys, store.ledger, refresher)


class FreshPolicies:
    """`proxy.ports.Policies` over the registry's freshness: the one place where the planes' errors meet."""

    def __init__(self, freshness: Freshness) -> None:
        self._freshness = freshness

    async def facts(self, asked: Asked) -> Facts:
        """Facts from a read that began after this call. Raises PolicyUnknown."""
        try:
            return await self._freshness.facts(asked)
        except StoreUnavailable as exc:
            raise PolicyUnknown("the policy could not be read in time, so nothing was forwarded") from exc


def _mount_data_plane(app: web.Application, settings: Settings, freshness: Freshness) -> None:
    limits = _limits(settings)
    downstream = HttpDownstream(limits)
    DataPlane(FreshPolicies(freshness), downstream, limits).mount(app)

    async def run(_app: web.Application) -> AsyncIterator[None]:
        await downstream.start()
        yield
        await downstream.close()
        await freshness.close()

    app.cleanup_ctx.append(run)


def _limits(settings: Settings) -> DataPlaneSettings:
    return DataPlaneSettings(
        max_body_bytes=settings.max_body_bytes,
        body_timeout_s=settings.body_timeout_s,
        max_event_bytes=settings.max_event_bytes,
        connect_timeout_s=settings.connect_timeout_s,
        downstream_timeout_s=settings.downstream_timeout_s,
        list_ttl_ms=settings.list_ttl_ms,
    )

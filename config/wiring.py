"""The composition root: settings and a store in, an application out.

Source: LAYOUT (walk-through 4). Nothing is decided here; every collaborator is made once and handed on. Tests call
`build` with the in-memory store, the command with the real one.
"""

import importlib.metadata
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from aiohttp import web

from config import background, bridges, operations
from config.authority import Authority
from config.environment import credential_values
from config.search import Search
from config.settings import Settings
from proxy.gateway.answers import Identity
from proxy.gateway.discover import Discoverer
from proxy.gateway.endpoint import Gateway
from proxy.gateway.execute import Executor
from proxy.gateway.methods import Methods
from proxy.ports import DataPlaneSettings, Policies
from proxy.transport.downstream import HttpDownstream
from proxy.transport.guard import guard
from proxy.transport.handler import DataPlane
from registry.activity import ActivityLog
from registry.api import Services, application
from registry.discovery import Discovery
from registry.downstream import McpCatalogue, McpToolCaller
from registry.keys import Keys
from registry.model import Scope
from registry.ports import ActivityStore, ChangeFeed, Health, KeyStore, LeaseStore, Ledger, PolicyReader, ServerStore
from registry.refresh import Refresher
from registry.servers import Servers
from registry.tools import Tools

Context = Callable[[web.Application], AsyncIterator[None]]


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

    @property
    def feed(self) -> ChangeFeed:
        """What changes in it."""
        ...

    @property
    def leases(self) -> LeaseStore:
        """Which replica mirrors."""
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
    authority = Authority(settings, store.policies, store.ledger, store.feed)
    fresh, ledger = authority.fresh, authority.ledger
    variables = credential_values()
    refresher = Refresher(ledger, McpCatalogue(bridges.for_registry(variables, names_variable=True)), store.servers)
    keys = Keys(ledger, store.keys, fresh)
    search = Search(settings, store.servers, store.leases, authority)
    services = Services(
        servers=Servers(ledger, store.servers, fresh, refresher, Scope(settings.registration), variables),
        tools=Tools(ledger),
        keys=keys,
        activity=ActivityLog(store.activity, fresh),
        discovery=search.discovery,
        mirrors=search.mirrors,
        public_url=settings.base_url,
    )
    guarded = operations.except_health(guard(settings.hosts, settings.origins))
    app = web.Application(middlewares=[operations.json_errors, guarded])
    app.add_routes(operations.routes(store.health, search.discovery, timeout_s=settings.policy_timeout_s))
    app.add_subapp("/api/v1", application(services))
    app.cleanup_ctx.append(_background(search, authority))
    policies = bridges.FactPolicies(authority.facts)
    _mount_data_plane(app, settings, policies, variables)
    _mount_gateway(app, settings, policies, search.discovery, variables)
    return App(app, keys, ledger, refresher)


def _background(search: Search, authority: Authority) -> Context:
    async def run(_app: web.Application) -> AsyncIterator[None]:
        async with background.running({**authority.works, **search.works}):
            yield
        await search.close()
        await authority.close()

    return run


def _mount_data_plane(
    app: web.Application, settings: Settings, policies: Policies, variables: Mapping[str, str]
) -> None:
    limits = _limits(settings)
    downstream = HttpDownstream(limits, bridges.for_proxy(variables))
    DataPlane(policies, downstream, limits).mount(app)

    async def run(_app: web.Application) -> AsyncIterator[None]:
        await downstream.start()
        yield
        await downstream.close()

    app.cleanup_ctx.append(run)


def _mount_gateway(
    app: web.Application,
    settings: Settings,
    policies: Policies,
    discovery: Discovery,
    variables: Mapping[str, str],
) -> None:
    caller = McpToolCaller(
        bridges.for_registry(variables, names_variable=False),
        timeout_s=settings.downstream_timeout_s,
        connect_timeout_s=settings.connect_timeout_s,
    )
    methods = Methods(
        Identity(importlib.metadata.version("sluicegate")),
        Discoverer(bridges.DiscoveryFinder(discovery, settings.base_url)),
        Executor(policies, bridges.DownstreamCaller(caller)),
        list_ttl_ms=settings.list_ttl_ms,
    )
    Gateway(policies, methods, _limits(settings)).mount(app)

    async def run(_app: web.Application) -> AsyncIterator[None]:
        yield
        await caller.close()

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

"""The composition root: settings and a store in, applications out.

Source: LAYOUT (walk-through 4). Nothing is decided here; every collaborator is made once and handed on. Tests call
`build` with the in-memory store, the command with the real one.
"""

import importlib.metadata
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from aiohttp import web
from yarl import URL

from config import background, bridges, operations, scrape
from config.authority import Authority
from config.connections import bounded_head
from config.environment import credential_values
from config.metrics import Metrics
from config.outbound import network
from config.own import own_origins
from config.search import Search
from config.settings import Settings
from proxy.gateway.answers import Identity
from proxy.gateway.discover import Discoverer
from proxy.gateway.endpoint import Gateway
from proxy.gateway.execute import Executor
from proxy.gateway.methods import Methods
from proxy.ports import DataPlaneSettings, Policies, RefusalStyle
from proxy.transport.connector import Connector
from proxy.transport.downstream import HttpDownstream
from proxy.transport.guard import guard
from proxy.transport.handler import DataPlane
from registry.activity import ActivityLog
from registry.api import Services, application
from registry.discovery import Discovery
from registry.downstream import McpCatalogue, McpToolCaller, Network
from registry.editing import Editor
from registry.keys import Keys
from registry.model import Scope
from registry.observed import Observed
from registry.permissions import Permissions
from registry.ports import (
    AccessStore,
    ActivityStore,
    ChangeFeed,
    Health,
    KeyStore,
    LeaseStore,
    Ledger,
    PolicyReader,
    ServerStore,
    SightingStore,
)
from registry.refresh import Refresher
from registry.servers import Servers
from registry.terms import Terms
from registry.tools import Tools

WebApplication = web.Application
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
    def access(self) -> AccessStore:
        """Access entries, for people."""
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
    def deployment_id(self) -> str:
        """The same for all who use this store, and for nobody else: twelve hexadecimal digits."""
        ...

    @property
    def leases(self) -> LeaseStore:
        """Which replica mirrors."""
        ...

    @property
    def sightings(self) -> SightingStore:
        """What was seen in passing lists."""
        ...


@dataclass(frozen=True, slots=True)
class App:
    """What `build` made: the web applications, and what a start needs besides.

    `web` is for clients, and opens and closes what both live off. `admin` is for owners and operators, where it has an
    address of its own; None: `web` serves them too.
    """

    web: WebApplication
    admin: WebApplication | None
    keys: Keys
    ledger: Ledger
    refresher: Refresher


def build(settings: Settings, store: Store) -> App:
    """Make the applications. They open nothing before `web` is started; it closes all when it is cleaned up."""
    metrics = Metrics()
    authority = Authority(settings, store.policies, store.ledger, store.feed, metrics)
    fresh, ledger = authority.fresh, authority.ledger
    variables, limits = credential_values(), _limits(settings, store.deployment_id)
    outbound = network(settings)
    refresher = Refresher(ledger, _catalogue(limits, variables, outbound), store.servers, metrics.refreshed)
    search = Search(settings, store.servers, store.leases, authority)
    terms = _terms(settings, variables, outbound)
    services = _services(settings, store, authority, refresher, search, terms)
    health = operations.routes(store.health, search.discovery, timeout_s=settings.policy_timeout_s)
    app, admin = _applications(settings, health, metrics)
    _mount_management(app, admin, services, scrape.route(metrics, fresh if admin is None else None))
    metrics.watch(search.statuses)
    app.cleanup_ctx.append(_background(services.observed, search, authority))
    policies = bridges.FactPolicies(authority.facts)
    _mount_data_plane(app, limits, policies, (variables, outbound), (metrics, services.observed))
    _mount_gateway(app, settings, limits, policies, search.discovery, _caller(settings, limits, variables, outbound))
    return App(app, admin, services.keys, ledger, refresher)


def _services(
    settings: Settings, store: Store, authority: Authority, refresher: Refresher, search: Search, terms: Terms
) -> Services:
    fresh, ledger = authority.fresh, authority.ledger
    return Services(
        servers=Servers(ledger, store.servers, fresh, refresher, terms),
        editor=Editor(ledger, fresh, refresher, terms),
        tools=Tools(ledger),
        permissions=Permissions(ledger, store.access, fresh),
        keys=Keys(ledger, store.keys, fresh),
        activity=ActivityLog(store.activity, fresh),
        discovery=search.discovery,
        mirrors=search.mirrors,
        observed=Observed(store.servers, store.sightings, fresh),
        public_url=settings.base_url,
    )


def _applications(
    settings: Settings, health: Sequence[web.RouteDef], metrics: Metrics
) -> tuple[web.Application, web.Application | None]:
    app = _application(settings, settings.hosts, settings.origins, health, metrics)
    if settings.admin_listen is None:
        return app, None
    return app, _application(settings, settings.admin_hosts, settings.admin_origins, health, metrics)


def _application(
    settings: Settings,
    hosts: frozenset[str],
    origins: frozenset[str],
    health: Sequence[web.RouteDef],
    metrics: Metrics,
) -> web.Application:
    """What every listener has: bounds, the checks of Host and Origin, and health."""
    guarded = operations.except_health(guard(hosts, origins, settings.trusted_proxies))
    app = web.Application(
        middlewares=[metrics.counted(), operations.json_errors, bounded_head(settings.max_head_bytes), guarded]
    )
    app.add_routes(health)
    return app


def _mount_management(
    app: web.Application, admin: web.Application | None, services: Services, scraped: web.RouteDef
) -> None:
    """What moves to the admin listener where there is one: all that is for owners and operators."""
    managed = app if admin is None else admin
    managed.add_routes([scraped])
    managed.add_subapp("/api/v1", application(services))


def _catalogue(limits: DataPlaneSettings, variables: Mapping[str, str], outbound: Network) -> McpCatalogue:
    return McpCatalogue(bridges.for_registry(variables, limits.pseudonym, names_variable=True), outbound)


def _terms(settings: Settings, variables: Mapping[str, str], outbound: Network) -> Terms:
    return Terms(Scope(settings.registration), variables, outbound.destinations, own_origins(settings))


def _background(observed: Observed, search: Search, authority: Authority) -> Context:
    async def run(_app: web.Application) -> AsyncIterator[None]:
        async with background.running({**authority.works, **search.works, "observed": observed.run}):
            yield
        await search.close()
        await authority.close()

    return run


def _mount_data_plane(
    app: web.Application,
    limits: DataPlaneSettings,
    policies: Policies,
    ways_out: tuple[Mapping[str, str], Network],
    hearers: tuple[Metrics, Observed],
) -> None:
    variables, outbound = ways_out
    connector = Connector(bridges.addresses_for_proxy(outbound.destinations), outbound.tls)
    downstream = HttpDownstream(limits, connector, bridges.for_proxy(variables))
    DataPlane(policies, downstream, limits, *hearers).mount(app)

    async def run(_app: web.Application) -> AsyncIterator[None]:
        await downstream.start()
        yield
        await downstream.close()

    app.cleanup_ctx.append(run)


def _mount_gateway(
    app: web.Application,
    settings: Settings,
    limits: DataPlaneSettings,
    policies: Policies,
    discovery: Discovery,
    caller: McpToolCaller,
) -> None:
    methods = Methods(
        Identity(importlib.metadata.version("sluicegate")),
        Discoverer(bridges.DiscoveryFinder(discovery, settings.base_url)),
        Executor(policies, bridges.DownstreamCaller(caller), limits.refusal_style),
        list_ttl_ms=settings.list_ttl_ms,
    )
    Gateway(policies, methods, limits).mount(app)

    async def run(_app: web.Application) -> AsyncIterator[None]:
        yield
        await caller.close()

    app.cleanup_ctx.append(run)


def _caller(
    settings: Settings, limits: DataPlaneSettings, variables: Mapping[str, str], outbound: Network
) -> McpToolCaller:
    return McpToolCaller(
        bridges.for_registry(variables, limits.pseudonym, names_variable=False),
        outbound,
        timeout_s=settings.downstream_timeout_s,
        connect_timeout_s=settings.connect_timeout_s,
    )


def _limits(settings: Settings, deployment_id: str) -> DataPlaneSettings:
    return DataPlaneSettings(
        max_body_bytes=settings.max_body_bytes,
        body_timeout_s=settings.body_timeout_s,
        max_event_bytes=settings.max_event_bytes,
        connect_timeout_s=settings.connect_timeout_s,
        downstream_timeout_s=settings.downstream_timeout_s,
        refusal_style=RefusalStyle(settings.refusal_style),
        public_path=URL(settings.base_url).path.rstrip("/"),
        list_ttl_ms=settings.list_ttl_ms,
        max_streams_per_key=settings.max_streams_per_key,
        pseudonym=f"sluicegate-{deployment_id}",
    )

"""GET /metrics: for an admin's key, or for whoever reaches the admin listener.

Source: DESIGN 1.
"""

from aiohttp import web

from config.metrics import PATH, Metrics
from registry.api import faults
from registry.callers import Caller, with_scope
from registry.credentials import AmbiguousCredentials, key_hash, presented_key
from registry.errors import RegistryError
from registry.freshness import FactSource
from registry.model import Scope


def route(metrics: Metrics, facts: FactSource | None) -> web.RouteDef:
    """The route. `facts` None: no key is asked for."""

    async def scraped(request: web.Request) -> web.Response:
        try:
            if facts is not None:
                with_scope(await facts.facts(_caller(request).asks()), Scope.ADMIN)
        except AmbiguousCredentials as exc:
            return faults.of_request(faults.BadRequest(400, "ambiguous_credentials", str(exc)))
        except RegistryError as exc:
            return faults.of_registry(exc)
        return metrics.exposition()

    return web.get(PATH, scraped)


def _caller(request: web.Request) -> Caller:
    key = presented_key(request.headers.items())
    return Caller(None if key is None else key_hash(key))

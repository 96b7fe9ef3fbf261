"""What a handler may reach: the use cases, who asks, and the body as it was read."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

from registry.activity import ActivityLog
from registry.callers import Caller
from registry.discovery import Discovery
from registry.editing import Editor
from registry.keys import Keys
from registry.mirrors import Mirrors
from registry.observed import Observed
from registry.permissions import Permissions
from registry.servers import Servers
from registry.tools import Tools


@dataclass(frozen=True, slots=True)
class Services:
    """The use cases behind the API, and the address that clients reach us by (no slash at the end)."""

    servers: Servers
    editor: Editor
    tools: Tools
    permissions: Permissions
    keys: Keys
    activity: ActivityLog
    discovery: Discovery
    mirrors: Mirrors
    observed: Observed
    public_url: str


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

SERVICES = web.AppKey("services", Services)
REQUEST_ID = web.RequestKey("request_id", str)
CALLER = web.RequestKey("caller", Caller)
BODY = web.RequestKey("body", bytes)


def services(request: web.Request) -> Services:
    """The use cases."""
    return request.app[SERVICES]

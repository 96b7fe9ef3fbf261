"""Who may do what: a line for each route of the API, and for each part of a request that asks for more.

Source: DESIGN 2 (Rights). The use cases ask `registry.access`; nothing is decided here and nobody asks here. This is
the table that people read, and that `tests/integration/test_api_rights.py` holds every route to, line by line and
caller by caller: a route without a line, or one that asks for something else than its line says, fails there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from registry.model import Permission, Scope


class Line(NamedTuple):
    """One route and, where it is not asked for as a whole, the member of the body or query that is concerned."""

    method: str
    pattern: str
    member: str | None = None


@dataclass(frozen=True, slots=True)
class Right:
    """One of `scopes` is needed and, on the server concerned, `permission`; NONE where no server is concerned.

    `admin` tells that the scope `admin` will do without the permission: it sees every server. `besides` is a scope that
    is needed too.
    """

    scopes: frozenset[Scope]
    permission: Permission = Permission.NONE
    admin: bool = False
    besides: Scope | None = None


_ANY: frozenset[Scope] = frozenset(Scope)
_ADMIN = Right(frozenset({Scope.ADMIN}))
_MANAGE = frozenset({Scope.MANAGE})
_MANAGING = Right(frozenset({Scope.MANAGE, Scope.ADMIN}))
_READ = frozenset({Scope.READ, Scope.MANAGE, Scope.ADMIN})
_SEEN = Right(_READ, Permission.VIEW, admin=True)
_EDITED = Right(_MANAGE, Permission.EDIT)
_SHARED = Right(_MANAGE, Permission.SHARE)
_PERMITTED = Right(_MANAGING.scopes, Permission.SHARE, admin=True)


_SETTLED: Mapping[Line, Right] = {
    Line("GET", "/me"): Right(_ANY),
    Line("POST", "/servers", "credentials"): _ADMIN,
    Line("POST", "/servers", "allowDuplicate"): _ADMIN,
    Line("GET", "/servers"): Right(_READ),  # and shows those with VIEW
    Line("GET", "/servers/{server}"): _SEEN,
    **{Line("PATCH", "/servers/{server}", text): _EDITED for text in ("title", "description", "tags")},
    **{Line("PATCH", "/servers/{server}", treatment): _SHARED for treatment in ("enabled", "registrySettings")},
    Line("PATCH", "/servers/{server}", "credentials"): Right(_ADMIN.scopes, Permission.VIEW, admin=True),
    Line("DELETE", "/servers/{server}"): Right(_MANAGE, Permission.DELETE),
    Line("GET", "/servers/{server}/permissions"): _PERMITTED,
    Line("PUT", "/servers/{server}/permissions"): _PERMITTED,
    Line("POST", "/servers/{server}/refresh"): _EDITED,
    Line("GET", "/servers/{server}/tools"): _SEEN,
    Line("PATCH", "/servers/{server}/tools"): _SHARED,
    Line("PUT", "/servers/{server}/tools/{tool}"): _SHARED,
    Line("POST", "/keys"): _MANAGING,  # no wider than one's own
    Line("POST", "/keys", "user"): _ADMIN,
    Line("GET", "/keys"): _MANAGING,  # without admin, those of the same user
    Line("PATCH", "/keys/{key}"): _MANAGING,  # likewise
    Line("GET", "/activity"): _ADMIN,
    Line("GET", "/discovery/search"): Right(frozenset({Scope.MCP})),  # and shows what may be used
    Line("GET", "/discovery/search", "include_disabled"): Right(_MANAGING.scopes, besides=Scope.MCP),  # with SHARE
    Line("GET", "/mirror"): _ADMIN,
    Line("POST", "/mirror/reconcile"): _ADMIN,
    Line("POST", "/mirror/rebuild"): _ADMIN,
    Line("POST", "/mirror/prepare"): _ADMIN,
}
"""Whatever the settings are."""


def rights(registration: Scope = Scope.ADMIN) -> Mapping[Line, Right]:
    """The table; `registration` is the scope that SLUICEGATE_REGISTRATION names."""
    registering = frozenset({Scope.ADMIN, registration})
    moved = Right(registering, Permission.EDIT)
    return {
        **_SETTLED,
        Line("POST", "/servers"): Right(registering),
        **{Line("PATCH", "/servers/{server}", address): moved for address in ("url", "path")},
    }

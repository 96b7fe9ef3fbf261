"""Who may do what: one line for each route of the API.

Source: DESIGN 2 (Rights). The use cases ask `registry.access`; nothing is decided here. This is the table that people
read, and that `tests/integration/test_api_rights.py` holds every route to, line by line: a route without a line, or one
that asks for something else than its line says, fails there.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from registry.model import Permission, Scope


@dataclass(frozen=True, slots=True)
class Right:
    """One of `scopes` is needed and, on the server concerned, `permission`; NONE where no server is concerned.

    `admin` tells that the scope `admin` will do without the permission: it sees every server.
    """

    scopes: frozenset[Scope]
    permission: Permission = Permission.NONE
    admin: bool = False


_ANY: frozenset[Scope] = frozenset(Scope)
_ADMIN = frozenset({Scope.ADMIN})
_MANAGE = frozenset({Scope.MANAGE})
_READ = frozenset({Scope.READ, Scope.MANAGE, Scope.ADMIN})
_SHARED = Right(_MANAGE | _ADMIN, Permission.SHARE, admin=True)
_SEEN = Right(_READ, Permission.VIEW, admin=True)

RIGHTS: Mapping[tuple[str, str], Right] = {
    ("GET", "/me"): Right(_ANY),
    ("POST", "/servers"): Right(_ADMIN),  # or manage, by SLUICEGATE_REGISTRATION
    ("GET", "/servers"): Right(_READ),  # and shows those with VIEW
    ("GET", "/servers/{server}"): _SEEN,
    ("PATCH", "/servers/{server}"): Right(_MANAGE, Permission.SHARE),  # texts EDIT; address, credentials `admin`
    ("DELETE", "/servers/{server}"): Right(_MANAGE, Permission.DELETE),
    ("GET", "/servers/{server}/permissions"): _SHARED,
    ("PUT", "/servers/{server}/permissions"): _SHARED,
    ("POST", "/servers/{server}/refresh"): Right(_MANAGE, Permission.EDIT),
    ("GET", "/servers/{server}/tools"): _SEEN,
    ("PATCH", "/servers/{server}/tools"): Right(_MANAGE, Permission.SHARE),
    ("PUT", "/servers/{server}/tools/{tool}"): Right(_MANAGE, Permission.SHARE),
    ("POST", "/keys"): Right(_MANAGE | _ADMIN),
    ("GET", "/keys"): Right(_MANAGE | _ADMIN),  # without admin, those of the same user
    ("PATCH", "/keys/{key}"): Right(_MANAGE | _ADMIN),  # likewise
    ("GET", "/activity"): Right(_ADMIN),
    ("GET", "/discovery/search"): Right(frozenset({Scope.MCP})),  # and shows what may be used
    ("GET", "/mirror"): Right(_ADMIN),
    ("POST", "/mirror/reconcile"): Right(_ADMIN),
    ("POST", "/mirror/rebuild"): Right(_ADMIN),
    ("POST", "/mirror/prepare"): Right(_ADMIN),
}

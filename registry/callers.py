"""Who asks, and the questions every use case puts before it acts.

Source: DESIGN 1 (the order: key 401, scope 403, visibility 404) and DESIGN 2 (a scope and a bit). Nothing is decided
here: `registry.access` decides, and a "no" becomes the error that tells the caller as much as it may know.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from registry import access
from registry.errors import Conflict, Forbidden, NotFound, PreconditionFailed, Unauthenticated
from registry.fingerprint import fingerprint
from registry.model import ApiKey, Asked, Facts, Permission, Scope, ServerPolicy
from registry.paths import SHARED_PATH
from registry.rows import Action, Activity

_BITS: Mapping[Callable[[Facts], bool], Permission] = {
    access.may_edit: Permission.EDIT,
    access.may_delete: Permission.DELETE,
    access.may_share: Permission.SHARE,
    access.may_set_permissions: Permission.SHARE,
}
"""What to name to whom it lacks; the rights themselves are `registry.access`'s."""


@dataclass(frozen=True, slots=True)
class Caller:
    """One request's author: the hash of the key it carries (None without one) and the request's id."""

    key_hash: str | None
    request_id: str | None = None

    def asks(self, server: str | None = None) -> Asked:
        """The facts to read for this caller and, when given, a server by id or path."""
        return Asked(self.key_hash, server)


def authenticated(facts: Facts) -> ApiKey:
    """The caller's key. Raises Unauthenticated when there is no valid one."""
    key = access.valid_key(facts)
    if key is None:
        raise Unauthenticated("this needs a valid API key")
    return key


def with_scope(facts: Facts, *scopes: Scope) -> ApiKey:
    """The caller's key, holding one of `scopes`; the first is the one to ask for.

    Raises:
        Unauthenticated: no valid key.
        Forbidden: none of the scopes; `required_scope` is the first.
    """
    key = authenticated(facts)
    if not access.has_scope(facts, *scopes):
        raise Forbidden(f"the key lacks the scope '{scopes[0]}'", required_scope=scopes[0])
    return key


def with_right(facts: Facts, right: Callable[[Facts], bool], *scopes: Scope) -> tuple[ApiKey, ServerPolicy]:
    """The caller's key and the server, once `right` (a function of `registry.access`) says yes.

    Raises:
        Unauthenticated: no valid key.
        Forbidden: a scope is missing, or the server is visible and the permission is not there.
        NotFound: no such server, or not one that this caller may see; which of the two is not told.
    """
    key = with_scope(facts, *scopes)
    if facts.server is None or not access.may_view(facts):
        raise NotFound("no such server")
    if not right(facts):
        bit = _BITS.get(right)
        raise Forbidden(
            "the permission for this is missing on this server",
            required_permission=None if bit is None else bit.name,
        )
    return key, facts.server


def check_seen(policy: ServerPolicy, seen: Collection[str] | None) -> None:
    """Raise PreconditionFailed unless the policy is one of those that the caller has `seen`; None asks for nothing."""
    if seen is not None and fingerprint(policy) not in seen:
        raise PreconditionFailed("the server's policy has changed since it was read")


def check_named(ref: str, policy: ServerPolicy) -> None:
    """Raise Conflict when `ref` is a path that two servers have: which of them was meant cannot be known."""
    if ref.startswith("/") and policy.fault == SHARED_PATH:
        raise Conflict(f"{SHARED_PATH}; name the one that is meant by its id")


def signed(caller: Caller, facts: Facts, action: Action) -> Activity:
    """The start of an activity row: when by the store's clock, by whom, what, in which request."""
    return Activity(facts.now, authenticated(facts).actor, action, request_id=caller.request_id)

"""Is one key wider than another? Pure.

Source: DESIGN 2 (a key for oneself, no wider than one's own), DESIGN 5 (Keys).
"""

from collections.abc import Iterator

from registry.model import ALL_TOOLS, ApiKey, Grant


def excess(key: ApiKey, own: ApiKey) -> str | None:
    """What `key` may do that `own` may not, as a sentence; None when it is no wider.

    For whom a key acts is not looked at: only `admin` sets that.
    """
    return next(_excesses(key, own), None)


def _excesses(key: ApiKey, own: ApiKey) -> Iterator[str]:
    for scope in sorted(key.scopes - own.scopes):
        yield f"the key would have the scope '{scope}', which yours lacks"
    if own.expires_at is not None and (key.expires_at is None or key.expires_at > own.expires_at):
        yield "the key would outlive yours"
    if own.tools == ALL_TOOLS:
        return
    if key.tools == ALL_TOOLS or any(not _covered(grant, own.tools) for grant in key.tools):
        yield "the key would reach tools that yours does not"


def _covered(grant: Grant, own: tuple[Grant, ...]) -> bool:
    mine = [held.tools for held in own if held.server_id == grant.server_id]
    if ALL_TOOLS in mine:
        return True
    if grant.tools == ALL_TOOLS:
        return False
    return grant.tools <= frozenset[str]().union(*mine)

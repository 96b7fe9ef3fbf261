"""Callers without a key, where the operator lets them in.

Source: DESIGN 3 (Credentials): such a caller is the principal `public` with `mcp` and the scopes of the setting, bound
by the access entries of `public` and by every switch. Whoever presents a key is judged by that key, also a wrong one.
"""

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime

from registry.freshness import FactSource
from registry.model import ApiKey, Asked, Facts, Scope


def public_key(scopes: Collection[Scope]) -> ApiKey:
    """What stands for the key of a caller who has none: it acts for nobody, so that only `public` entries name it."""
    return ApiKey(
        id="anonymous",
        hash="",
        name="anonymous",
        user="",
        groups=frozenset(),
        roles=frozenset(),
        scopes=frozenset({Scope.MCP, *scopes}),
        enabled=True,
        created_at=datetime.min.replace(tzinfo=UTC),
        created_by="",
    )


class WithAnonymous:
    """`registry.freshness.FactSource` that knows callers without a key."""

    def __init__(self, source: FactSource, scopes: Collection[Scope]) -> None:
        self._source = source
        self._key = public_key(scopes)

    async def facts(self, asked: Asked) -> Facts:
        """As FactSource.facts."""
        facts = await self._source.facts(asked)
        return facts if asked.key_hash is not None else replace(facts, key=self._key)

"""Shows the activity log to operators.

Source: DESIGN 2 (all activity takes `admin`), DESIGN 5 (Activity).
"""

from collections.abc import Sequence

from registry.callers import Caller, with_scope
from registry.freshness import Freshness
from registry.model import Scope
from registry.ports import ActivityStore
from registry.rows import Activity

NEWEST = 100
"""Rows in one answer; older ones come with paging."""


class ActivityLog:
    """Every change made through Sluicegate."""

    def __init__(self, store: ActivityStore, freshness: Freshness) -> None:
        self._store = store
        self._freshness = freshness

    async def newest(self, caller: Caller, limit: int = NEWEST) -> Sequence[Activity]:
        """The newest rows, newest first, at most `NEWEST`.

        Raises Unauthenticated, Forbidden, StoreUnavailable.
        """
        with_scope(await self._freshness.facts(caller.asks()), Scope.ADMIN)
        return await self._store.newest(min(limit, NEWEST))

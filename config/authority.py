"""Puts together what the authority is asked through: fresh facts, facts as old as the setting allows, changes.

Source: DESIGN 3 and 4. The registry's API decides on fresh facts whatever the setting: an owner sees what was just
done.
The data plane, the gateway and search decide on facts as old as `max_staleness_s` allows, and they alone know callers
without a key.
"""

from collections.abc import Mapping

from config.background import Work
from config.metrics import Metrics
from config.settings import Settings
from registry.anonymous import WithAnonymous
from registry.feed import SharedFeed
from registry.freshness import FactSource, Freshness
from registry.model import Scope
from registry.ports import ChangeFeed, Ledger, PolicyReader
from registry.staleness import BoundedStaleness, Telling

_SCOPES = {"read": (Scope.READ,), "write": (Scope.READ, Scope.WRITE)}
"""Of callers without a key, by the setting."""


class Authority:
    """The store's face for use cases. `works` are to be run; `close` is called when they have ended."""

    def __init__(
        self, settings: Settings, policies: PolicyReader, ledger: Ledger, feed: ChangeFeed, metrics: Metrics
    ) -> None:
        self._shared = SharedFeed(feed)
        self.feed: ChangeFeed = self._shared
        """Changes, for any number of listeners."""
        self._metrics = metrics
        self.fresh = Freshness(policies, timeout_s=settings.policy_timeout_s, on_read=metrics.read)
        """Facts younger than the question."""
        self.facts: FactSource = self.fresh
        """Facts as young as the setting says."""
        self.ledger = ledger
        """Changes to make."""
        self._works: dict[str, Work] = {"change feed": self._shared.run}
        if settings.max_staleness_s > 0:
            self._allow(settings.max_staleness_s)
        if settings.anonymous != "off":
            self.facts = WithAnonymous(self.facts, _SCOPES[settings.anonymous])

    @property
    def works(self) -> Mapping[str, Work]:
        """What runs in the background, by name."""
        return self._works

    async def close(self) -> None:
        """End the reads that are under way."""
        await self.fresh.close()

    def _allow(self, max_staleness_s: float) -> None:
        bounded = BoundedStaleness(self.fresh, max_staleness_s, on_use=self._metrics.used_again)
        self.facts = bounded
        self.ledger = Telling(self.ledger, bounded.forget)
        self._works["staleness"] = lambda: bounded.follow(self.feed)

"""What a mirror says of itself, and the lease by which one replica at a time mirrors.

Source: DESIGN 6 (one worker, lag and drift measured).
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


class MirrorState(enum.StrEnum):
    """How it is."""

    OFF = "off"
    """No Weaviate is configured."""
    STARTING = "starting"
    """It has not yet been brought up to date for the first time."""
    UP = "up"
    DOWN = "down"
    """It cannot be reached, or not in time; it is tried again."""
    UNUSABLE = "unusable"
    """A person has to do something; it is tried again all the same."""


@dataclass(frozen=True, slots=True)
class MirrorStatus:
    """One mirror, as of `at` by this process's clock.

    `drift` is how many objects differed when it was last compared, `pending` how many servers wait to be written.
    `lag_s` is the age of the oldest change that is not written yet, 0 when there is none; `last_lag_s` how long
    the last one took. `missing` counts tools without an object in a collection that is not ours.
    """

    name: str
    state: MirrorState
    error: str | None = None
    objects: int = 0
    drift: int = 0
    pending: int = 0
    lag_s: float = 0.0
    last_lag_s: float = 0.0
    missing: int = 0
    reconciled_at: datetime | None = None

    @property
    def is_current(self) -> bool:
        """True when it has been brought up to date and can be written to."""
        return self.state is MirrorState.UP


class Order(enum.StrEnum):
    """What a person may ask the mirroring replica for, from any replica."""

    RECONCILE = "reconcile"
    REBUILD = "rebuild"


@dataclass(frozen=True, slots=True)
class MirrorLease:
    """The lease as stored: who holds it, what the holder last said, and how often each order was given.

    `holder` is empty when nobody holds it now.
    """

    holder: str = ""
    statuses: tuple[MirrorStatus, ...] = ()
    orders: Mapping[Order, int] = field(default_factory=dict)

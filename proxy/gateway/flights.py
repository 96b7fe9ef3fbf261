"""Calls under way that their client may cancel with a notification.

Source: MCP 2025-11-25 basic/utilities/cancellation. On 2026-07-28 a client cancels by hanging up, which needs nothing
here. A request id is unique within a session alone, so a flight is known by key, session and id; the session is a name
that `initialize` gave out, of which nothing is kept.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FlightId:
    """`request_id` is JSON text as spelled."""

    key_hash: str | None
    session: str
    request_id: str


class Flights:
    """The flights of this process."""

    def __init__(self) -> None:
        self._running: dict[FlightId, asyncio.Task[object]] = {}

    @contextlib.contextmanager
    def joined(self, flight: FlightId, work: asyncio.Task[object]) -> Iterator[None]:
        """While the context is open, `cancel` ends `work`. A request without a session cannot be told from others."""
        if not flight.session or flight in self._running:
            yield
            return
        self._running[flight] = work
        try:
            yield
        finally:
            del self._running[flight]

    def cancel(self, flight: FlightId) -> None:
        """End that flight; nothing happens when there is none, or when another replica has it."""
        work = self._running.get(flight)
        if work is not None:
            work.cancel()

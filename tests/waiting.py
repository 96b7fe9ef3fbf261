"""Waits for what gives no sign: another process, or the states of several objects.

A test's own time limit ends a wait for ever.
"""

import asyncio
from collections.abc import Awaitable, Callable


async def until(holds: Callable[[], bool]) -> None:
    """Let other tasks run until `holds`."""
    while not holds():  # noqa: ASYNC110  there is no event to wait for
        await asyncio.sleep(0.001)


async def asked_until(holds: Callable[[], Awaitable[bool]], pause_s: float = 0.01) -> None:
    """Ask another process until `holds`."""
    while not await holds():  # noqa: ASYNC110  likewise
        await asyncio.sleep(pause_s)

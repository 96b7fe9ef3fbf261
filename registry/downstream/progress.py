"""Hands the progress of one call on, in its order, and all of it before the call's result.

Source: MCP 2026-07-28 basic/utilities/progress. The client library runs each notification in a task of the session,
where a slow listener would outlive its call and be overtaken by the next notification.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from mcp.shared.dispatcher import ProgressFnT

from registry.calls import Progress

MOST_WAITING = 64
"""Notifications that a slow listener may lag behind; beyond it they are dropped, since each makes the last one old."""

_Told = tuple[float, float | None, str | None]


@contextlib.asynccontextmanager
async def relayed(on_progress: Progress | None) -> AsyncIterator[ProgressFnT | None]:
    """What the library is to call, None when nobody listens. Leaving the block in good order waits for the listener.

    What the listener raises ends the telling, and is raised when the block is left in good order.
    """
    if on_progress is None:
        yield None
        return
    waiting: asyncio.Queue[_Told | None] = asyncio.Queue(MOST_WAITING)
    pump = asyncio.create_task(_pump(waiting, on_progress))

    async def take(progress: float, total: float | None, message: str | None) -> None:
        with contextlib.suppress(asyncio.QueueFull):
            waiting.put_nowait((progress, total, message))

    try:
        yield take
        await _drained(waiting, pump)
    finally:
        pump.cancel()
        await asyncio.gather(pump, return_exceptions=True)


async def _pump(waiting: "asyncio.Queue[_Told | None]", on_progress: Progress) -> None:
    while (told := await waiting.get()) is not None:
        await on_progress(*told)


async def _drained(waiting: "asyncio.Queue[_Told | None]", pump: "asyncio.Task[None]") -> None:
    end = asyncio.create_task(waiting.put(None))
    await asyncio.wait((end, pump), return_when=asyncio.FIRST_COMPLETED)
    end.cancel()  # the listener has failed, and nobody takes it
    await pump

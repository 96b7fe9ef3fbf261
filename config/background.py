"""Work that runs beside the requests, for as long as the application does."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine

import structlog

log = structlog.get_logger(__name__)

_PAUSE_S = 1.0
"""Before a work that has failed begins again; it is no outage, those it mends itself, but a fault of ours."""

Work = Callable[[], Coroutine[None, None, None]]


@contextlib.asynccontextmanager
async def running(works: dict[str, Work]) -> AsyncIterator[None]:
    """Run each of `works`, by name, while the context is open."""
    tasks = [asyncio.create_task(_supervised(name, work)) for name, work in works.items()]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _supervised(name: str, work: Work) -> None:
    """Ends when `work` does; begins it again when it fails."""
    while True:
        try:
            return await work()
        except Exception:  # the supervisor of a background task
            log.exception("background.failed", work=name)
        await asyncio.sleep(_PAUSE_S)

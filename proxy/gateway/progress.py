"""An answer as a stream of events: progress first, the response last.

Source: MCP 2026-07-28 basic/utilities/progress; WHATWG HTML 9.2 (event streams).
"""

import asyncio
import math
from types import TracebackType
from typing import Any

from aiohttp import web

from proxy import replies
from proxy.headers import EVENT_STREAM
from proxy.jsonrpc import Request
from proxy.jsontext import Number, string
from proxy.transport.answer import streamed

_KEEP_ALIVE_S = 15.0
"""Between comments while nothing is to be told, so that nobody on the way takes the stream for dead."""


def progress_token(request: Request) -> str | None:
    """The token that progress is told by, as JSON text; None when none is asked for."""
    meta = request.params.get("_meta")
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    if isinstance(token, Number):
        return str(token)
    return None if string(token) is None else replies.json_text(token)


class ProgressStream:
    """One stream. Use it as an async context manager; `tell` while the call runs, `end` once."""

    def __init__(self, request: web.Request, token: str) -> None:
        self._request = request
        self._token = token
        self.response = streamed(
            200,
            (("Content-Type", EVENT_STREAM), ("Cache-Control", "no-store"), ("X-Accel-Buffering", "no")),
        )
        self._keeping: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "ProgressStream":
        await self.response.prepare(self._request)
        self._keeping = asyncio.ensure_future(self._keep_alive())
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)

    async def tell(self, progress: float, total: float | None, message: str | None) -> None:
        """One `notifications/progress`."""
        if not math.isfinite(progress):
            return  # JSON has no form for it
        told: dict[str, Any] = {"progress": progress}
        told |= {} if total is None or not math.isfinite(total) else {"total": total}
        told |= {} if message is None else {"message": message}
        params = replies.json_text(told)[:-1] + f',"progressToken":{self._token}}}'
        await self._event(f'{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}'.encode())

    async def end(self, answer: bytes) -> None:
        """The response, and the end of the stream."""
        await self._event(answer)
        await self.response.write_eof()

    async def _event(self, data: bytes) -> None:
        await self.response.write(b"event: message\r\ndata: " + data + b"\r\n\r\n")

    async def _keep_alive(self) -> None:
        while True:
            await asyncio.sleep(_KEEP_ALIVE_S)
            await self.response.write(b": still at work\r\n\r\n")

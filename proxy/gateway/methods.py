"""The JSON-RPC methods that the gateway answers.

Source: MCP 2025-03-26 to 2025-11-25 (initialize, ping, tools), 2026-07-28 (server/discover, tools).
"""

from collections.abc import Awaitable, Callable, Mapping

from proxy import replies
from proxy.errors import InvalidParams, MethodNotFound
from proxy.gateway.answers import Identity, Json, error_result
from proxy.gateway.asking import Asking
from proxy.gateway.definitions import DISCOVER, EXECUTE, TOOLS
from proxy.gateway.discover import Discoverer
from proxy.gateway.execute import Executor
from proxy.gateway.revision import MODERN, Era, era_of, negotiated
from proxy.jsonrpc import Request
from proxy.jsontext import string
from registry.calls import CallError, Progress

Handler = Callable[[Asking, Request, Progress | None], Awaitable[Json | CallError]]

INITIALIZE = "initialize"


class Methods:
    """Answers one request."""

    def __init__(self, identity: Identity, discoverer: Discoverer, executor: Executor, *, list_ttl_ms: int) -> None:
        self._identity = identity
        self._discoverer = discoverer
        self._executor = executor
        self._list_ttl_ms = list_ttl_ms
        self._handlers: Mapping[tuple[Era, str], Handler] = {
            (Era.HANDSHAKE, INITIALIZE): self._initialize,
            (Era.HANDSHAKE, "ping"): self._ping,
            (Era.HANDSHAKE, "tools/list"): self._list_tools,
            (Era.HANDSHAKE, "tools/call"): self._call_tool,
            (Era.MODERN, "server/discover"): self._discover,
            (Era.MODERN, "tools/list"): self._list_tools,
            (Era.MODERN, "tools/call"): self._call_tool,
        }

    async def answer(self, asking: Asking, request: Request, on_progress: Progress | None = None) -> bytes:
        """The JSON-RPC response.

        Raises:
            MethodNotFound, InvalidParams: with the request's id.
            PolicyUnknown: the authority did not answer.
        """
        handler = self._handlers.get((era_of(asking.revision), request.method))
        if handler is None:
            raise MethodNotFound("there is no such method here", id=request.id)
        outcome = await handler(asking, request, on_progress)
        try:
            return _written(request.id, outcome)
        except ValueError:
            return replies.result(request.id, error_result("The tool's answer holds a number out of range."))

    async def _initialize(self, _asking: Asking, request: Request, _progress: Progress | None) -> Json:
        return self._identity.initialized(negotiated(string(request.params.get("protocolVersion"))))

    async def _ping(self, _asking: Asking, _request: Request, _progress: Progress | None) -> Json:
        return {}

    async def _discover(self, _asking: Asking, _request: Request, _progress: Progress | None) -> Json:
        return self._identity.discovered(MODERN, self._list_ttl_ms)

    async def _list_tools(self, asking: Asking, request: Request, _progress: Progress | None) -> Json:
        if request.params.get("cursor") is not None:
            raise InvalidParams("there is one page only", id=request.id)
        listed: Json = {"tools": list(TOOLS)}
        if era_of(asking.revision) is Era.HANDSHAKE:
            return listed
        return {**listed, "ttlMs": self._list_ttl_ms, "cacheScope": "private", "resultType": "complete"}

    async def _call_tool(self, asking: Asking, request: Request, on_progress: Progress | None) -> Json | CallError:
        name = string(request.params["name"])
        if name == EXECUTE:
            return await self._executor.run(asking, request.params, on_progress)
        if name == DISCOVER:
            return await self._discoverer.run(asking, request.params)
        return error_result(f"unknown tool: {name}")


def _written(id_text: str, outcome: Json | CallError) -> bytes:
    if isinstance(outcome, CallError):
        return replies.error(id_text, outcome.code, outcome.message, outcome.data)
    return replies.result(id_text, outcome)

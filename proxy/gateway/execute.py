"""`execute_tool`: the decision first, then the downstream.

Source: DESIGN 6. A refusal is a result that a model can read, before any network call. What the downstream answers
comes through as it is, as far as the caller's revision can carry it.

Invariant: `ToolCaller.call` takes a `Permit`, which only the one decision makes.
"""

from collections.abc import Mapping
from typing import Any

import structlog

from proxy import sentences
from proxy.errors import OwnFailure, PolicyUnknown
from proxy.gateway.answers import Json, error_result
from proxy.gateway.asking import Asking
from proxy.gateway.definitions import EXECUTE, OWN, BadArguments, ExecuteArguments, execute_arguments
from proxy.gateway.revision import Era, era_of
from proxy.jsonnumbers import plain
from proxy.ports import Policies, RefusalStyle, ToolCaller
from registry import access
from registry.access import Permit, Refusal
from registry.calls import CallError, CallResult, Progress, ToolCall
from registry.model import Asked, Facts

log = structlog.get_logger(__name__)

URL_ELICITATION_REQUIRED = -32042
"""Of revision 2025-11-25 alone: the client is to send a person to an address."""

_RETRY = ("inputResponses", "requestState")
_OURS_IN_META = ("progressToken",)


class Executor:
    """Runs tools of downstreams. `style` is how a refusal is worded; a result it is in every style."""

    def __init__(self, policies: Policies, caller: ToolCaller, style: RefusalStyle = RefusalStyle.UNKNOWN) -> None:
        self._policies = policies
        self._caller = caller
        self._style = style

    async def run(self, asking: Asking, params: Mapping[str, Any], on_progress: Progress | None) -> Json | CallError:
        """One `tools/call` of `execute_tool`.

        Args:
            params: of the request, decoded, numbers as `jsontext.Number`.
            on_progress: None when the caller did not ask for progress.

        Returns:
            A result; or an error that only the protocol can carry.

        Raises:
            PolicyUnknown: the authority did not answer.
        """
        try:
            wanted = execute_arguments(plain(params.get("arguments", {})))
            beside = plain({name: params[name] for name in (*_RETRY, "_meta") if name in params})
        except (BadArguments, ValueError) as exc:
            return error_result(f"{EXECUTE} was not run: {exc}")
        if wanted.tool in OWN:
            return error_result(f"{EXECUTE} runs tools of servers, and {wanted.tool} is not one.")
        verdict = await self._decided(asking, wanted)
        if isinstance(verdict, Refusal):
            return _refused(verdict, self._style)
        return await self._called(asking, verdict, _call(asking, verdict, wanted, beside), on_progress)

    async def _decided(self, asking: Asking, wanted: ExecuteArguments) -> Permit | Refusal:
        facts = await self._facts(asking, wanted.server)
        return access.use_tool(facts, wanted.tool, wanted.arguments)

    async def _facts(self, asking: Asking, ref: str) -> Facts:
        facts = await self._policies.facts(Asked(asking.key_hash, ref))
        if facts.server is None and not ref.startswith("/"):
            return await self._policies.facts(Asked(asking.key_hash, f"/{ref}"))  # models drop the slash
        return facts

    async def _called(
        self, asking: Asking, permit: Permit, call: ToolCall, on_progress: Progress | None
    ) -> Json | CallError:
        try:
            outcome = await self._caller.call(permit, call, on_progress)
        except PolicyUnknown:
            raise
        except OwnFailure as exc:
            log.warning("call.failed", server_id=permit.server.server_id, tool=permit.tool, cause=str(exc))
            return error_result(f"The tool gave no answer: {exc}.")
        return (
            _result(outcome, asking.revision) if isinstance(outcome, CallResult) else _error(outcome, asking.revision)
        )


def _refused(refusal: Refusal, style: RefusalStyle) -> Json:
    log.info("call.refused", reason=refusal.reason.value, tool=refusal.tool)
    return error_result(sentences.of_refusal(refusal, style))


def _call(asking: Asking, permit: Permit, wanted: ExecuteArguments, beside: Mapping[str, Any]) -> ToolCall:
    meta = beside.get("_meta")
    passed = {name: value for name, value in meta.items() if _passes(name)} if isinstance(meta, Mapping) else {}
    return ToolCall(
        arguments=wanted.arguments,
        session=asking.key_hash or "",
        authorization=asking.credentials.get(permit.server.path),
        retry={name: beside[name] for name in _RETRY if name in beside},
        meta=passed,
    )


def _passes(name: str) -> bool:
    """Trace context and the like; what is about this connection has been said anew for the next."""
    return name not in _OURS_IN_META and not name.startswith("io.modelcontextprotocol/")


def _result(outcome: CallResult, revision: str) -> Json:
    kind = outcome.content.get("resultType", "complete")
    if kind == "complete":
        return {**outcome.content, "resultType": kind}
    if era_of(revision) is Era.MODERN:
        return outcome.content
    return error_result(f"The tool needs more from its client ({kind}), which only MCP 2026-07-28 can carry.")


def _error(error: CallError, revision: str) -> Json | CallError:
    if error.code == URL_ELICITATION_REQUIRED and revision == "2025-11-25":
        return error
    return error_result(f"The server answered with the error {error.code}: {error.message}")

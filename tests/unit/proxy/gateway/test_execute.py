"""`execute_tool` without a socket."""

from collections.abc import Mapping
from typing import Any

import pytest

from proxy.errors import DownstreamTimeout, DownstreamUnusable, OwnFailure, PolicyUnknown
from proxy.gateway.answers import Json
from proxy.gateway.asking import Asking
from proxy.gateway.definitions import OWN
from proxy.gateway.execute import Executor
from proxy.jsontext import Number
from proxy.ports import RefusalStyle
from registry.access import Permit
from registry.calls import CallError, CallResult, Progress, ToolCall
from registry.credentials import key_hash
from registry.model import Asked, Facts, Grant, Scope, Switch
from tests.build import KEY, facts, key, policy

HASH = key_hash(KEY)
DONE = CallResult({"content": [{"type": "text", "text": "done"}]})


class KnownPolicies:
    """The facts of /lab, by its path or id; without a server for every other name."""

    def __init__(self, known: Facts | None = None) -> None:
        self.known = known or facts()
        self.asked: list[Asked] = []
        self.failure: PolicyUnknown | None = None

    async def facts(self, asked: Asked) -> Facts:
        self.asked.append(asked)
        if self.failure is not None:
            raise self.failure
        is_known = asked.server in ("/lab", "srv-1")
        return self.known if is_known else facts(server=None, entries=(), key=self.known.key)


class ScriptedCaller:
    """Answers as told, and keeps what it was asked."""

    def __init__(self, outcome: CallResult | CallError | OwnFailure = DONE) -> None:
        self.outcome = outcome
        self.calls: list[tuple[Permit, ToolCall]] = []
        self.progress: Progress | None = None

    async def call(self, permit: Permit, call: ToolCall, on_progress: Progress | None = None) -> CallResult | CallError:
        self.calls.append((permit, call))
        self.progress = on_progress
        if isinstance(self.outcome, OwnFailure):
            raise self.outcome
        return self.outcome


def asking(revision: str = "2025-11-25", **changes: Any) -> Asking:
    return Asking(HASH, revision, **changes)


def params(server: str = "/lab", tool: str = "t", more: Mapping[str, Any] | None = None, **arguments: Any) -> Any:
    """The params of a `tools/call`; `more` are further members of them."""
    call = {"server": server, "tool": tool, "arguments": arguments}
    return {"name": "execute_tool", "arguments": call, **(more or {})}


async def outcome_of(
    caller: ScriptedCaller, given: Any = None, *, known: Facts | None = None, revision: str = "2025-11-25"
) -> Json | CallError:
    return await Executor(KnownPolicies(known), caller).run(asking(revision), given or params(), None)


async def result_of(*args: Any, **more: Any) -> Json:
    outcome = await outcome_of(*args, **more)
    assert isinstance(outcome, Mapping)
    return outcome


def error_text(result: Json) -> str:
    assert (result["isError"], result["resultType"]) == (True, "complete")
    text: str = result["content"][0]["text"]
    return text


# What is sent


async def test_a_permitted_call_is_made_once_with_its_arguments() -> None:
    caller = ScriptedCaller()
    result = await result_of(caller, params(n=Number("12345678901234567890"), x=Number("1.5"), deep=[{"a": None}]))

    [(permit, call)] = caller.calls
    assert (permit.server, permit.tool) == (policy(), "t")
    assert call == ToolCall({"n": 12345678901234567890, "x": 1.5, "deep": [{"a": None}]}, HASH)
    assert result == {**DONE.content, "resultType": "complete"}


async def test_arguments_may_be_left_out() -> None:
    caller = ScriptedCaller()
    await result_of(caller, {"name": "execute_tool", "arguments": {"server": "srv-1", "tool": "t"}})

    assert caller.calls[0][1].arguments == {}


async def test_progress_is_handed_on() -> None:
    async def hear(progress: float, total: float | None, message: str | None) -> None:
        del progress, total, message

    caller = ScriptedCaller()
    await Executor(KnownPolicies(), caller).run(asking(), params(), hear)

    assert caller.progress is hear


async def test_a_credential_goes_to_its_own_server_alone() -> None:
    """DESIGN 6."""
    caller = ScriptedCaller()
    executor = Executor(KnownPolicies(), caller)
    await executor.run(asking(credentials={"/lab": "Bearer a", "/other": "Bearer b"}), params("srv-1"), None)
    await executor.run(asking(credentials={"/other": "Bearer b", "/labs": "x", "/": "y"}), params(), None)

    assert [call.authorization for _, call in caller.calls] == ["Bearer a", None]


async def test_a_caller_without_a_key_shares_no_named_session() -> None:
    caller = ScriptedCaller()
    await Executor(KnownPolicies(), caller).run(Asking(None, "2025-11-25"), params(), None)

    assert caller.calls[0][1].session == ""


async def test_trace_context_passes_and_what_is_about_this_connection_does_not() -> None:
    caller = ScriptedCaller()
    meta = {"traceparent": "00-1", "progressToken": "p", "io.modelcontextprotocol/clientInfo": {}, "n": Number("1")}
    await result_of(caller, params(more={"_meta": meta}))

    assert caller.calls[0][1].meta == {"traceparent": "00-1", "n": 1}


@pytest.mark.parametrize("meta", [None, 5, []])
async def test_a_meta_that_is_no_object_passes_nothing(meta: Any) -> None:
    caller = ScriptedCaller()
    await result_of(caller, params(more={"_meta": meta}))

    assert caller.calls[0][1].meta == {}


async def test_the_second_round_of_a_call_carries_its_answers() -> None:
    """MCP 2026-07-28: a retry sends inputResponses and requestState."""
    caller = ScriptedCaller()
    retry = {"inputResponses": {"a": {"n": Number("1")}}, "requestState": "s"}
    await result_of(caller, params(more={**retry, "task": {}}), revision="2026-07-28")

    assert caller.calls[0][1].retry == {"inputResponses": {"a": {"n": 1}}, "requestState": "s"}


# Which server


async def test_a_path_without_its_slash_is_found() -> None:
    policies, caller = KnownPolicies(), ScriptedCaller()
    await Executor(policies, caller).run(asking(), params("lab"), None)

    assert policies.asked == [Asked(HASH, "lab"), Asked(HASH, "/lab")]
    assert len(caller.calls) == 1


@pytest.mark.parametrize(("server", "reads"), [("/nowhere", 1), ("nowhere", 2)])
async def test_an_unknown_server_is_a_result(server: str, reads: int) -> None:
    policies, caller = KnownPolicies(), ScriptedCaller()
    result = await Executor(policies, caller).run(asking(), params(server), None)

    assert isinstance(result, Mapping)
    assert error_text(result) == "There is no such server, or this key may not see it."
    assert (len(policies.asked), caller.calls) == (reads, [])


# What is refused


@pytest.mark.parametrize(
    "known",
    [
        facts(server=policy(disabled_tools=frozenset({"t"}))),
        facts(server=policy(retired_disabled_tools=frozenset({"t"}))),
        facts(switches=(Switch(None, "t"),)),
        facts(key=key(tools=(Grant("srv-1", frozenset({"u"})),))),
        facts(key=key(scopes=frozenset({Scope.MCP}))),
    ],
)
async def test_a_refused_tool_is_unknown_whatever_the_reason_and_is_not_called(known: Facts) -> None:
    caller = ScriptedCaller()

    assert error_text(await result_of(caller, known=known)) == "Unknown tool: t"
    assert caller.calls == []


@pytest.mark.parametrize(
    ("style", "said"),
    [
        (RefusalStyle.UNKNOWN, "Unknown tool: t"),
        (RefusalStyle.EXPLAIN, "Tool t is disabled on this server by its owner."),
        (RefusalStyle.LEGACY, "tool 't' is switched off"),
    ],
)
async def test_a_refusal_is_worded_in_the_style_of_the_setting(style: RefusalStyle, said: str) -> None:
    policies = KnownPolicies(facts(server=policy(disabled_tools=frozenset({"t"}))))
    result = await Executor(policies, ScriptedCaller(), style).run(asking(), params(), None)

    assert isinstance(result, Mapping)
    assert error_text(result) == said


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (facts(entries=()), "There is no such server"),
        (facts(server=policy(enabled=False)), "There is no such server"),
        (facts(server=policy(fault="unreadable")), "The policy of this server cannot be read"),
        (facts(key=key(enabled=False)), "The API key is not valid any more"),
        (facts(key=key(scopes=frozenset({Scope.READ}))), "The API key may not use tools any more"),
    ],
)
async def test_a_caller_that_may_not_reach_the_server_is_told_so_and_nothing_is_called(known: Facts, said: str) -> None:
    caller = ScriptedCaller()

    assert error_text(await result_of(caller, known=known)).startswith(said)
    assert caller.calls == []


@pytest.mark.parametrize("name", sorted(OWN))
async def test_nothing_runs_itself(name: str) -> None:
    """DESIGN 6: nested names are refused."""
    policies, caller = KnownPolicies(), ScriptedCaller()
    result = await Executor(policies, caller).run(asking(), params(tool=name), None)

    assert isinstance(result, Mapping)
    assert name in error_text(result)
    assert (policies.asked, caller.calls) == ([], [])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "execute_tool"}, "server: "),
        ({"name": "execute_tool", "arguments": None}, "arguments: "),
        (params(tool=""), "tool: "),
        (params(n=Number("1e999")), "out of range"),
        (params(n=Number("-1e999")), "out of range"),
        (params(n=Number("9" * 5000)), ""),
        (params("\ud800"), "server: "),
        (params(tool="\ud800"), "tool: "),
    ],
)
async def test_arguments_that_do_not_fit_are_a_result_before_anything_is_asked(given: Any, said: str) -> None:
    policies, caller = KnownPolicies(), ScriptedCaller()
    result = await Executor(policies, caller).run(asking(), given, None)

    assert isinstance(result, Mapping)
    assert error_text(result).startswith("execute_tool was not run: ")
    assert said in error_text(result)
    assert (policies.asked, caller.calls) == ([], [])


@pytest.mark.parametrize("number", [Number("1e999"), Number("9" * 5000)], ids=["range", "digits"])
@pytest.mark.parametrize("member", ["_meta", "inputResponses"])
async def test_a_number_that_cannot_be_sent_beside_the_arguments_is_a_result_too(member: str, number: Number) -> None:
    caller = ScriptedCaller()

    assert error_text(await result_of(caller, params(more={member: {"n": number}}))).startswith("execute_tool was not")
    assert caller.calls == []


# What comes back


async def test_what_the_tool_answers_comes_through_as_it_is() -> None:
    given = {"content": [], "isError": True, "structuredContent": [1], "other": {"a": None}, "_meta": {"x": 1}}

    assert await result_of(ScriptedCaller(CallResult(given))) == {**given, "resultType": "complete"}


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_tool_that_needs_more_is_a_failure_where_that_cannot_be_carried(revision: str) -> None:
    """MCP 2026-07-28 resultType; revisions before have no such answer."""
    more = CallResult({"resultType": "input_required", "inputRequests": {}})

    assert "input_required" in error_text(await result_of(ScriptedCaller(more), revision=revision))


async def test_a_tool_that_needs_more_says_so_by_2026() -> None:
    more = CallResult({"resultType": "input_required", "inputRequests": {"a": {}}, "requestState": "s"})

    assert await result_of(ScriptedCaller(more), revision="2026-07-28") == more.content


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
async def test_an_error_of_the_server_is_a_result(revision: str) -> None:
    error = CallError(-32603, "it broke", {"secret": 1})

    assert error_text(await result_of(ScriptedCaller(error), revision=revision)) == (
        "The server answered with the error -32603: it broke"
    )


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2026-07-28"])
async def test_an_address_for_a_person_is_a_failure_where_it_cannot_be_carried(revision: str) -> None:
    error = CallError(-32042, "go there", {"elicitations": []})

    assert "-32042" in error_text(await result_of(ScriptedCaller(error), revision=revision))


async def test_an_address_for_a_person_is_carried_by_2025_11_25() -> None:
    """MCP 2025-11-25 client/elicitation: URLElicitationRequiredError."""
    error = CallError(-32042, "go there", {"elicitations": []})

    assert await outcome_of(ScriptedCaller(error)) is error


@pytest.mark.parametrize("failure", [DownstreamUnusable("the downstream broke"), DownstreamTimeout("too late")])
async def test_a_downstream_that_fails_is_a_result(failure: OwnFailure) -> None:
    assert error_text(await result_of(ScriptedCaller(failure))) == f"The tool gave no answer: {failure}."


async def test_an_authority_that_does_not_answer_is_no_result() -> None:
    policies, caller = KnownPolicies(), ScriptedCaller()
    policies.failure = PolicyUnknown("gone")

    with pytest.raises(PolicyUnknown):
        await Executor(policies, caller).run(asking(), params(), None)
    assert caller.calls == []


async def test_an_authority_that_is_lost_during_the_call_is_no_result() -> None:
    with pytest.raises(PolicyUnknown):
        await outcome_of(ScriptedCaller(PolicyUnknown("gone")))

"""A message becomes one question to the one decision (DESIGN 2)."""

import pytest

from proxy.jsonrpc import Message, Notification, Request, Response
from proxy.policy import decide
from registry.access import Permit, Reason, Refusal
from tests.build import facts, policy

OFF = facts(server=policy(disabled_tools=frozenset({"danger"}), retired_disabled_tools=frozenset({"gone"})))


def _call(name: str, **params: object) -> Request:
    return Request("7", "tools/call", {"name": name, **params})


def _permitted(message: Message) -> str | None:
    verdict = decide(OFF, message)
    assert isinstance(verdict, Permit)
    return verdict.tool


@pytest.mark.parametrize("tool", ["danger", "gone"])
def test_a_call_of_a_disabled_tool_is_refused(tool: str) -> None:
    assert decide(OFF, _call(tool)) == Refusal(Reason.TOOL_DISABLED, tool)


def test_a_notification_that_calls_a_disabled_tool_is_refused() -> None:
    message = Notification("tools/call", {"name": "danger"})

    assert decide(OFF, message) == Refusal(Reason.TOOL_DISABLED, "danger")


@pytest.mark.parametrize("extra", [{}, {"arguments": None}, {"arguments": {"x": 1}}, {"task": {"ttl": 1}}])
def test_a_call_of_another_tool_is_a_permit_for_that_tool(extra: dict[str, object]) -> None:
    assert _permitted(_call("safe", **extra)) == "safe"


@pytest.mark.parametrize("name", ["Danger", "danger ", "dan\u200bger", "danger\x00", "lab/danger"])
def test_names_are_compared_code_point_by_code_point(name: str) -> None:
    assert _permitted(_call(name)) == name


@pytest.mark.parametrize(
    "message",
    [
        Request("7", "tools/list", {}),
        Request("7", "prompts/get", {"name": "danger"}),
        Request("7", "Tools/Call", {"name": "danger"}),
        Request("7", "tools/call ", {"name": "danger"}),
        Notification("notifications/initialized", {}),
        Response("7"),
        Response(None),
    ],
)
def test_any_other_message_needs_the_server_alone(message: Message) -> None:
    assert _permitted(message) is None


@pytest.mark.parametrize("message", [_call("safe"), Request("7", "ping", {}), Response("7")])
def test_no_message_reaches_a_server_that_is_not_visible(message: Message) -> None:
    verdict = decide(facts(entries=()), message)

    assert isinstance(verdict, Refusal)
    assert verdict.reason is Reason.NOT_VISIBLE

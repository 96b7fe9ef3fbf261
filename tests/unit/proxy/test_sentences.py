"""What a refusal says, word for word: DESIGN 3 fixes the legacy texts and the first of each other style."""

import pytest

from proxy import sentences
from proxy.ports import RefusalStyle
from registry.access import Reason, Refusal

EXPLAINED = {
    Reason.TOOL_DISABLED: "Tool d{0}ang is disabled on this server by its owner.",
    Reason.TOOL_SWITCHED_OFF: "Tool d{0}ang is switched off by the operator of this gateway.",
    Reason.NOT_IN_KEY_TOOLS: "Tool d{0}ang is not among the tools that this API key may use.",
    Reason.SCOPE_WRITE: (
        "Tool d{0}ang may change something, and this caller may only read: it lacks the 'write' scope."
    ),
    Reason.ARGUMENT_REFUSED: "Tool d{0}ang may not be used with these arguments.",
}
LEGACY = {
    Reason.TOOL_DISABLED: "tool 'd{0}ang' is switched off",
    Reason.TOOL_SWITCHED_OFF: "tool 'd{0}ang' is switched off",
    Reason.NOT_IN_KEY_TOOLS: "API key may not use tool 'd{0}ang'",
    Reason.SCOPE_WRITE: "tool 'd{0}ang' needs the 'write' scope",
    Reason.ARGUMENT_REFUSED: "tool 'd{0}ang' may not be used with these arguments",
}
ABOUT_SERVER = {
    Reason.KEY_INVALID: "The API key is not valid any more.",
    Reason.SCOPE_MCP: "The API key may not use tools any more.",
    Reason.NOT_VISIBLE: "There is no such server, or this key may not see it.",
    Reason.POLICY_UNREADABLE: "The policy of this server cannot be read, so nothing was run.",
}


@pytest.mark.parametrize(
    ("style", "texts"),
    [
        (RefusalStyle.UNKNOWN, dict.fromkeys(EXPLAINED, "Unknown tool: d{0}ang") | ABOUT_SERVER),
        (RefusalStyle.EXPLAIN, EXPLAINED | ABOUT_SERVER),
        (RefusalStyle.LEGACY, LEGACY | ABOUT_SERVER),
    ],
)
def test_every_reason_has_its_sentence_in_every_style(style: RefusalStyle, texts: dict[Reason, str]) -> None:
    assert {reason: sentences.of_refusal(Refusal(reason, "d{0}ang"), style) for reason in Reason} == texts


@pytest.mark.parametrize("style", RefusalStyle)
@pytest.mark.parametrize("reason", ABOUT_SERVER)
def test_what_is_not_about_a_tool_names_none(reason: Reason, style: RefusalStyle) -> None:
    assert "d{0}ang" not in sentences.of_refusal(Refusal(reason, "d{0}ang"), style)

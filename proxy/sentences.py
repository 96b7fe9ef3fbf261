"""What a refusal says in words: one sentence for each reason and style, the same on every surface.

Source: DESIGN 3 (Block), DESIGN 6 (`execute_tool` answers with a result). A sentence names the tool as its caller named
it, and nothing that the caller may not know: what is not visible is told as what is not there.
"""

from collections.abc import Mapping

from proxy.ports import RefusalStyle
from registry.access import Reason, Refusal

NO_SUCH_SERVER = "There is no such server, or this key may not see it."


def of_refusal(refusal: Refusal, style: RefusalStyle) -> str:
    """One sentence; any code points, lone surrogates included, since a tool's name is among them.

    Rows 1 to 3 of DESIGN 2 are told alike in every style: they are not about a tool.
    """
    about_server = _ABOUT_SERVER.get(refusal.reason)
    return about_server or _ABOUT_TOOL[style][refusal.reason].format(tool=refusal.tool)


_ABOUT_SERVER: Mapping[Reason, str] = {
    Reason.KEY_INVALID: "The API key is not valid any more.",
    Reason.SCOPE_MCP: "The API key may not use tools any more.",
    Reason.NOT_VISIBLE: NO_SUCH_SERVER,
    Reason.POLICY_UNREADABLE: "The policy of this server cannot be read, so nothing was run.",
}

_EXPLAINED: Mapping[Reason, str] = {
    Reason.TOOL_DISABLED: "Tool {tool} is disabled on this server by its owner.",
    Reason.TOOL_SWITCHED_OFF: "Tool {tool} is switched off by the operator of this gateway.",
    Reason.NOT_IN_KEY_TOOLS: "Tool {tool} is not among the tools that this API key may use.",
    Reason.SCOPE_WRITE: "Tool {tool} may change something, and this caller may only read: it lacks the 'write' scope.",
    Reason.ARGUMENT_REFUSED: "Tool {tool} may not be used with these arguments.",
}
"""For a model. A caller without a key may get the one about the scope, so that one speaks of no key."""

_LEGACY: Mapping[Reason, str] = {
    Reason.TOOL_DISABLED: "tool '{tool}' is switched off",
    Reason.TOOL_SWITCHED_OFF: "tool '{tool}' is switched off",
    Reason.NOT_IN_KEY_TOOLS: "API key may not use tool '{tool}'",
    Reason.SCOPE_WRITE: "tool '{tool}' needs the 'write' scope",
    Reason.ARGUMENT_REFUSED: "tool '{tool}' may not be used with these arguments",
}
"""The texts of older gateways."""

_ABOUT_TOOL: Mapping[RefusalStyle, Mapping[Reason, str]] = {
    RefusalStyle.UNKNOWN: dict.fromkeys(_EXPLAINED, "Unknown tool: {tool}"),
    RefusalStyle.EXPLAIN: _EXPLAINED,
    RefusalStyle.LEGACY: _LEGACY,
}

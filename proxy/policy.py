"""A message, put as a question to the one decision. Nothing is decided here.

Source: DESIGN 2; PROTOCOL 10.4 rule 7.
"""

from proxy.jsonrpc import TOOLS_CALL, Message, Notification, Request
from registry import access
from registry.access import Permit, Refusal
from registry.model import Facts


def decide(facts: Facts, message: Message) -> Permit | Refusal:
    """May this message go to the server that the facts are about?

    Args:
        facts: one read of the authority, begun after the request was complete.
        message: from `jsonrpc.parse`, which has seen to it that a `tools/call` has a name.
    """
    match message:
        case Request(method=method, params=params) | Notification(method=method, params=params) if method == TOOLS_CALL:
            arguments = params.get("arguments")
            return access.use_tool(facts, params["name"], {} if arguments is None else arguments)
        case _:
            return access.use_server(facts)

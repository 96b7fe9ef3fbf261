"""Our own MCP endpoint: one address for all servers. It finds tools and runs what was found.

Nouns:
    revision   what a request is read by: one of the handshake revisions, or 2026-07-28, where each request says all
    method     a handler of one JSON-RPC method
    tool       `discover_servers`, `execute_tool`: tools of the gateway itself, no catalogue tools, never switched
    flight     a call that is under way and may be cancelled

It is stateless: nothing of a client is kept between two requests, and any replica takes any of them.
"""

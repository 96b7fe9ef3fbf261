"""The data plane: what an MCP client sends, and what it may see of the answer.

Nouns:
    client      who sends MCP requests to us
    downstream  the MCP server behind us
    exchange    one HTTP request and its response, as a state machine without a socket
    message     one JSON-RPC 2.0 request, notification or response
    forward     a request that may go downstream; made of permits, by an exchange alone
    reply       an answer that we author; the downstream never hears of that request
    held        a tool list that waits for facts younger than itself, then goes out less what its reader may not use

Files in this folder are pure: bytes and facts in, a value out. Folders drive them: `transport` (HTTP), `gateway`.
"""

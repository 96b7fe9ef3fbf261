"""The control plane: servers, tools, owners, keys, and the one decision over them.

Nouns:
    server      a downstream MCP server that somebody registered under a path
    tool        one entry of a server's last snapshot of `tools/list`
    policy      those fields of a server that decide: enabled, disabled tools, tombstones, read-only marks
    tombstone   a disabled tool that the downstream no longer lists; still refused, disabled again when it returns
    principal   who asks: a key, and the user, groups and roles that the key acts for
    facts       everything one read of the authority says about one principal and one server
    permit      power to have one tool used, made by `access` alone
    refusal     the expected "no", with the reason

Files in this folder are ours: no framework, no driver. A folder is an edge, named for what is behind it.
"""

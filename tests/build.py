"""Valid objects for tests; a test names only what it is about."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from registry.credentials import key_hash
from registry.entries import Server, Tool
from registry.model import DEFAULT_SCOPES, OWNER, AccessEntry, ApiKey, Asked, Facts, PrincipalType, ServerPolicy

NOW = datetime(2026, 12, 1, tzinfo=UTC)
KEY = "sg_" + "k" * 43
"""The text of the key that `key()` stands for."""


def key(**changes: Any) -> ApiKey:
    """An agent's key with the default scopes, for the user `ann`."""
    made = ApiKey(
        id="key-1",
        hash=key_hash(KEY),
        name="agent",
        user="ann",
        groups=frozenset(),
        roles=frozenset(),
        scopes=DEFAULT_SCOPES,
        enabled=True,
        created_at=NOW,
        created_by="admin",
    )
    return replace(made, **changes)


def policy(**changes: Any) -> ServerPolicy:
    """An enabled server under /lab with nothing switched off."""
    return replace(ServerPolicy("srv-1", "/lab", "http://127.0.0.1:9/mcp"), **changes)


def entry(**changes: Any) -> AccessEntry:
    """OWNER on that server for `ann`."""
    return replace(AccessEntry("srv-1", PrincipalType.USER, "ann", OWNER), **changes)


def facts(**changes: Any) -> Facts:
    """What lets `key()` use every tool of `policy()`."""
    return replace(Facts(NOW, key(), policy(), (entry(),)), **changes)


def asked() -> Asked:
    """The question that `facts()` answers."""
    return Asked(key_hash(KEY), "/lab")


def server(*tools: str, **changes: Any) -> Server:
    """A server with these tools and a good snapshot."""
    listed = tuple(Tool(name, {"name": name, "inputSchema": {"type": "object"}}) for name in tools)
    made = Server(
        "srv-1",
        "lab",
        "/lab",
        "http://127.0.0.1:9/mcp",
        "streamable-http",
        policy(),
        tools=listed,
        snapshot_good=True,
        refreshed_at=NOW,
    )
    return replace(made, **changes)

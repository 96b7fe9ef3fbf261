"""What a row of the activity log says of access entries, and of a server that is no more.

Source: DESIGN 5 (Activity). Plain values, as every store keeps them; nothing secret is among them.
"""

from collections.abc import Iterable
from typing import Any

from registry.entries import Server
from registry.lists import Lists
from registry.model import AccessEntry


def of_entries(entries: Iterable[AccessEntry]) -> list[dict[str, Any]]:
    """Who holds which bits, until when."""
    return [
        {
            "principal_type": entry.principal_type.value,
            "principal_id": entry.principal_id or None,
            "perm_bits": int(entry.permissions),
            "expired_at": entry.expires_at,
        }
        for entry in entries
    ]


def of_removed(server: Server, entries: Iterable[AccessEntry]) -> dict[str, Any]:
    """Enough to register the server again as it was: its address, what was switched off, who held which rights."""
    return {
        "name": server.name,
        "path": server.path,
        "url": server.url,
        "type": server.type,
        "title": server.title,
        "enabled": server.policy.enabled,
        **Lists.of(server.policy).as_row(),
        "permissions": of_entries(entries),
    }

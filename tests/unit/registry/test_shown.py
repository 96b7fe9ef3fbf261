"""What rows say of entries, and of a server that is no more (DESIGN 5)."""

from datetime import UTC, datetime

from registry import shown
from registry.model import EDITOR, OWNER, VIEWER, AccessEntry, PrincipalType
from tests import build

ENDS = datetime(2030, 1, 1, tzinfo=UTC)


def test_entries_are_shown_whole() -> None:
    entries = [
        AccessEntry("srv-1", PrincipalType.PUBLIC, "", VIEWER),
        AccessEntry("srv-1", PrincipalType.GROUP, "qa", EDITOR, ENDS),
    ]
    assert shown.of_entries(entries) == [
        {"principal_type": "public", "principal_id": None, "perm_bits": 1, "expired_at": None},
        {"principal_type": "group", "principal_id": "qa", "perm_bits": 3, "expired_at": ENDS},
    ]


def test_of_a_removed_server_remains_what_it_takes_to_register_it_again() -> None:
    server = build.server("a", "b", policy=build.policy(disabled_tools=frozenset({"b"}), enabled=False))
    ann = AccessEntry(server.id, PrincipalType.USER, "ann", OWNER)
    assert shown.of_removed(server, [ann]) == {
        "name": server.name,
        "path": server.path,
        "url": server.url,
        "type": server.type,
        "title": server.title,
        "enabled": False,
        "disabled_tools": ["b"],
        "retired_disabled_tools": [],
        "read_only_tools": [],
        "permissions": [{"principal_type": "user", "principal_id": "ann", "perm_bits": 15, "expired_at": None}],
    }

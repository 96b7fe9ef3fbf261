"""What may tell a downstream who asks (DESIGN 3, `cacheScope`)."""

import pytest

from proxy.identity import may_tell_who
from proxy.ports import Fields

USUAL: Fields = (
    ("Accept", "application/json, text/event-stream"),
    ("content-type", "application/json"),
    ("MCP-Protocol-Version", "2025-11-25"),
    ("User-Agent", "client/1"),
    ("Accept-Encoding", "identity"),
    ("Via", "1.1 sluicegate"),
)


def test_what_every_client_sends_tells_nobody() -> None:
    assert not may_tell_who("", USUAL)
    assert not may_tell_who("", ())


@pytest.mark.parametrize("name", ["Authorization", "authorization", "COOKIE", "X-Api-Key", "Mcp-Session-Id", "X-Any"])
def test_any_other_field_may_tell_who(name: str) -> None:
    assert may_tell_who("", (*USUAL, (name, "x")))


def test_a_query_may_tell_who() -> None:
    assert may_tell_who("a=b", USUAL)

"""What the gateway says, in the shapes of the official models."""

from mcp_types import CallToolResult, DiscoverResult, InitializeResult

from proxy.gateway.answers import Identity, error_result, text_result


def test_the_handshake_names_the_revision_the_product_and_what_it_can() -> None:
    answer = Identity("1.2").initialized("2025-06-18")

    read = InitializeResult.model_validate(answer)
    assert (read.protocol_version, read.server_info.name, read.server_info.version) == (
        "2025-06-18",
        "sluicegate",
        "1.2",
    )
    assert answer["capabilities"] == {"tools": {"listChanged": False}}
    assert "discover_servers" in answer["instructions"]


def test_discovery_of_the_server_says_all_that_2026_asks_for() -> None:
    """MCP 2026-07-28 server/discover: versions, capabilities, cache hints, resultType, the server's name in _meta."""
    answer = Identity("1.2").discovered(("2026-07-28",), 5)

    DiscoverResult.model_validate(answer)
    assert answer["supportedVersions"] == ["2026-07-28"]
    assert answer["capabilities"] == {"tools": {"listChanged": False}}
    assert (answer["ttlMs"], answer["cacheScope"], answer["resultType"]) == (5, "private", "complete")
    info = answer["_meta"]["io.modelcontextprotocol/serverInfo"]
    assert info == {"name": "sluicegate", "title": "Sluicegate", "version": "1.2"}


def test_a_text_is_a_complete_result() -> None:
    """MCP 2026-07-28 demands resultType; PROTOCOL 5: an older client passes over it."""
    answer = text_result("done")

    assert answer["content"] == [{"type": "text", "text": "done"}]
    assert (answer["isError"], answer["resultType"]) == (False, "complete")
    assert "structuredContent" not in answer


def test_a_program_gets_the_structured_form_beside_the_text() -> None:
    answer = text_result("done", structured={"a": None})

    assert answer == {**text_result("done"), "structuredContent": {"a": None}}
    assert CallToolResult.model_validate(answer).structured_content == {"a": None}


def test_an_empty_structured_form_is_one() -> None:
    assert text_result("done", structured={})["structuredContent"] == {}


def test_a_failure_is_a_complete_result_too() -> None:
    assert error_result("no") == {
        "content": [{"type": "text", "text": "no"}],
        "isError": True,
        "resultType": "complete",
    }

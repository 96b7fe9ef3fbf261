"""The gateway's own tools, and their arguments."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from mcp_types import Tool

from proxy.gateway.definitions import (
    DISCOVER,
    EXECUTE,
    OWN,
    TOOLS,
    BadArguments,
    DiscoverArguments,
    ExecuteArguments,
    discover_arguments,
    execute_arguments,
)


def test_two_tools_are_listed_as_the_official_models_read_them() -> None:
    read = [Tool.model_validate(tool) for tool in TOOLS]

    assert [tool.name for tool in read] == [DISCOVER, EXECUTE]
    assert all(tool.description and tool.title and tool.annotations for tool in read)
    assert {DISCOVER, EXECUTE} < OWN


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool["name"])
def test_the_schemas_are_schemas_of_objects(tool: dict[str, Any]) -> None:
    """MCP server/tools: inputSchema and outputSchema are JSON Schema 2020-12 with an object at the root."""
    for schema in [tool["inputSchema"], *([tool["outputSchema"]] if tool["name"] == DISCOVER else [])]:
        Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"


def test_what_is_left_out_has_its_default() -> None:
    assert discover_arguments({"query": "q"}) == DiscoverArguments(
        query="q", limit=10, server=None, include_disabled=False
    )
    assert execute_arguments({"server": "/lab", "tool": "t"}) == ExecuteArguments(server="/lab", tool="t", arguments={})


def test_what_is_given_is_taken_as_it_is() -> None:
    found = discover_arguments({"query": " q ", "limit": 100, "server": "/lab", "include_disabled": True})
    assert (found.query, found.limit, found.server, found.include_disabled) == (" q ", 100, "/lab", True)
    nested = {"a": [1, 2.5, None, {"b": "\u00e9"}], "": True}
    assert execute_arguments({"server": "id", "tool": " t", "arguments": nested}).arguments == nested


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({}, "query"),
        ({"query": ""}, "query"),
        ({"query": "x" * 1001}, "query"),
        ({"query": 5}, "query"),
        ({"query": "\ud800"}, "query"),
        ({"query": "q", "limit": 0}, "limit"),
        ({"query": "q", "limit": 101}, "limit"),
        ({"query": "q", "limit": "5"}, "limit"),
        ({"query": "q", "limit": 5.0}, "limit"),
        ({"query": "q", "limit": True}, "limit"),
        ({"query": "q", "server": 5}, "server"),
        ({"query": "q", "include_disabled": 1}, "include_disabled"),
        ({"query": "q", "includeDisabled": True}, "includeDisabled"),
        ([], "arguments"),
        (None, "arguments"),
        ("q", "arguments"),
    ],
)
def test_what_does_not_fit_a_search_names_the_member(given: Any, named: str) -> None:
    with pytest.raises(BadArguments, match=f"^{named}: "):
        discover_arguments(given)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"tool": "t"}, "server"),
        ({"server": "/lab"}, "tool"),
        ({"server": "", "tool": "t"}, "server"),
        ({"server": "/lab", "tool": ""}, "tool"),
        ({"server": "/lab", "tool": ["t"]}, "tool"),
        ({"server": "/lab", "tool": "t", "arguments": "{}"}, "arguments"),
        ({"server": "/lab", "tool": "t", "arguments": None}, "arguments"),
        ({"server": "/lab", "tool": "t", "arguments": []}, "arguments"),
        ({"server": "/lab", "tool": "t", "nonce": 1}, "nonce"),
    ],
)
def test_what_does_not_fit_a_call_names_the_member(given: Any, named: str) -> None:
    with pytest.raises(BadArguments, match=f"^{named}: "):
        execute_arguments(given)


def test_a_complaint_does_not_repeat_what_was_given() -> None:
    with pytest.raises(BadArguments) as caught:
        execute_arguments({"server": "/lab", "tool": "t", "arguments": "secret"})
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_the_listed_schema_and_the_check_agree() -> None:
    """DESIGN 6: the schema that a client sees is the one that arguments are checked by."""
    cases: list[dict[str, Any]] = [{"query": "q"}, {"query": ""}, {"query": "q", "limit": 0}, {"query": "q", "x": 1}]
    listed = Draft202012Validator(TOOLS[0]["inputSchema"])
    for case in cases:
        assert listed.is_valid(case) == _fits(case)


def _fits(case: dict[str, Any]) -> bool:
    try:
        discover_arguments(case)
    except BadArguments:
        return False
    return True

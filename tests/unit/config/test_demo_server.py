"""The demonstration downstream is a true MCP server with true annotations."""

import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from mcp import Client

import examples
from config.children import Child

PROGRAM = Path(examples.__file__).with_name("demo_server.py")
READING = {"list_repositories", "get_file", "search_code"}
DESTROYING = {"delete_branch", "delete_repository", "send_announcement"}
ADDING = {"create_issue", "merge_pull_request"}


@pytest.fixture(params=[(), ("--json",), ("--stateless",), ("--json", "--stateless")], ids=" ".join)
async def url(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    child = await Child.spawn("demo", [sys.executable, PROGRAM, "--port", "0", *request.param])
    yield (await child.ready(re.compile(r"listening on (\S+)")))[1]
    await child.stop()


async def test_its_annotations_say_which_tools_read_add_and_destroy(url: str) -> None:
    async with Client(url) as client:
        tools = (await client.list_tools()).tools

    hints = {tool.name: tool.annotations for tool in tools}
    assert {name for name, a in hints.items() if a and a.read_only_hint} == READING
    assert {name for name, a in hints.items() if a and not a.read_only_hint and a.destructive_hint} == DESTROYING
    assert set(hints) == READING | DESTROYING | ADDING
    assert all(tool.description for tool in tools)


async def test_its_tools_change_what_it_holds(url: str) -> None:
    async with Client(url) as client:
        before = await client.call_tool("list_repositories", {})
        await client.call_tool("delete_repository", {"repository": "website"})
        after = await client.call_tool("list_repositories", {})

    assert before.structured_content == {"result": ["payments", "website"]}
    assert after.structured_content == {"result": ["payments"]}


async def test_a_mistake_is_an_error_that_a_model_can_read(url: str) -> None:
    async with Client(url) as client:
        result = await client.call_tool("get_file", {"repository": "nothing", "path": "a"})

    assert result.is_error
    assert "there are: payments, website" in str(result.content)

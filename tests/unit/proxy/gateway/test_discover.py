"""`discover_servers` without a socket."""

from collections.abc import Mapping
from typing import Any

import pytest

from proxy.errors import PolicyUnknown
from proxy.gateway.answers import Json
from proxy.gateway.asking import Asking
from proxy.gateway.discover import Discoverer
from proxy.jsontext import Number
from proxy.ports import FindRefused

ASKING = Asking("hash", "2025-11-25")


class ScriptedFinder:
    """Answers as told, and keeps what it was asked."""

    def __init__(self, *tools: Mapping[str, Any], degraded: bool = False, truncated: bool = False) -> None:
        self.answer = {"tools": list(tools), "degraded": degraded, "truncated": truncated}
        self.asked: list[tuple[Any, ...]] = []
        self.failure: Exception | None = None

    async def find(
        self, key_hash: str | None, query: str, limit: int, server: str | None, *, include_disabled: bool
    ) -> Mapping[str, Any]:
        self.asked.append((key_hash, query, limit, server, include_disabled))
        if self.failure is not None:
            raise self.failure
        return self.answer


def tool(**changes: Any) -> dict[str, Any]:
    made = {"server": "/lab", "tool": "safe", "description": "Gives it back.", "inputSchema": {}, "enabled": True}
    return made | changes


async def ran(finder: ScriptedFinder, **arguments: Any) -> Json:
    return await Discoverer(finder).run(ASKING, {"name": "discover_servers", "arguments": arguments})


async def text(*tools: Mapping[str, Any], **more: bool) -> str:
    answer = await ran(ScriptedFinder(*tools, **more), query="q")
    words: str = answer["content"][0]["text"]
    return words


async def test_the_search_is_the_callers_own() -> None:
    finder = ScriptedFinder()
    await ran(finder, query="mail", limit=Number("3"), server="/lab", include_disabled=True)
    await ran(finder, query="mail")

    assert finder.asked == [("hash", "mail", 3, "/lab", True), ("hash", "mail", 10, None, False)]


async def test_what_was_found_is_there_for_a_program_as_it_came() -> None:
    finder = ScriptedFinder(tool(), degraded=True)
    answer = await ran(finder, query="q")

    assert answer["structuredContent"] == finder.answer
    assert (answer["isError"], answer["resultType"]) == (False, "complete")


async def test_a_model_reads_server_tool_and_arguments() -> None:
    schema = {"properties": {"nonce": {"type": "string"}, "n": {"type": ["integer", "null"]}, "x": True}}

    assert await text(tool(inputSchema={**schema, "required": ["nonce"]})) == (
        "- server /lab, tool safe: Gives it back.\n  arguments: nonce (string, required), n (any), x (any)"
    )


@pytest.mark.parametrize("schema", [None, {}, {"properties": []}, {"properties": {}}, []])
async def test_a_tool_without_arguments_has_one_line(schema: Any) -> None:
    assert await text(tool(inputSchema=schema)) == "- server /lab, tool safe: Gives it back."


async def test_a_schema_whose_required_members_cannot_be_read_has_none() -> None:
    schema = {"properties": {"a": {"type": "string"}}, "required": "a"}

    assert (await text(tool(inputSchema=schema))).endswith("arguments: a (string)")


async def test_a_tool_without_the_member_has_one_line() -> None:
    bare = tool()
    del bare["inputSchema"]

    assert await text(bare) == "- server /lab, tool safe: Gives it back."


async def test_a_tool_that_cannot_be_used_says_why() -> None:
    shown = await text(tool(enabled=False, reason="tool_disabled"))

    assert shown == "- server /lab, tool safe [cannot be used: tool_disabled]: Gives it back."


async def test_a_long_description_is_cut_in_the_text_alone() -> None:
    answer = await ran(ScriptedFinder(tool(description="x" * 301)), query="q")

    assert answer["content"][0]["text"].endswith(": " + "x" * 300)
    assert answer["structuredContent"]["tools"][0]["description"] == "x" * 301


async def test_nothing_found_is_said() -> None:
    assert (await text()).startswith("No tool was found.")


async def test_a_fallback_and_a_cut_are_said() -> None:
    lines = (await text(tool(), degraded=True, truncated=True)).splitlines()

    assert [line.split()[:2] for line in lines] == [["-", "server"], ["Some", "schemas"], ["The", "search"]]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "query: "),
        ({"query": "q", "limit": Number("0")}, "limit: "),
        ({"query": "q", "limit": Number("1e999")}, "out of range"),
        ({"query": "q", "limit": Number("9" * 5000)}, ""),
        ({"query": "q", "limit": Number("9" * 4000)}, "limit: "),
        ({"\ud800": True, "query": "q"}, "arguments: "),
    ],
)
async def test_arguments_that_do_not_fit_are_a_result_and_no_search(arguments: dict[str, Any], said: str) -> None:
    finder = ScriptedFinder()
    answer = await ran(finder, **arguments)

    assert answer["isError"] is True
    assert said in answer["content"][0]["text"]
    assert answer["content"][0]["text"].startswith("discover_servers was not run: ")
    assert finder.asked == []


@pytest.mark.parametrize("params", [{}, {"arguments": None}, {"arguments": []}])
async def test_no_arguments_at_all_are_a_result(params: dict[str, Any]) -> None:
    answer = await Discoverer(ScriptedFinder()).run(ASKING, params)

    assert answer["isError"] is True


async def test_a_search_that_is_not_carried_out_is_a_result() -> None:
    finder = ScriptedFinder()
    finder.failure = FindRefused("there is no such server")

    assert (await ran(finder, query="q"))["content"] == [
        {"type": "text", "text": "discover_servers was not run: there is no such server"}
    ]


async def test_an_authority_that_does_not_answer_is_no_result() -> None:
    finder = ScriptedFinder()
    finder.failure = PolicyUnknown("gone")

    with pytest.raises(PolicyUnknown):
        await ran(finder, query="q")

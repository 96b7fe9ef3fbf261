"""Discovery and the mirror over the API: shapes, rights, bad input."""

from collections.abc import AsyncIterator

import pytest

from registry.entries import Tool
from registry.model import VIEWER, Scope
from registry.refresh import Cause
from registry.terms import Terms
from tests.integration.test_api import Api, api

__all__ = ["api"]

AGENT = (Scope.MCP, Scope.READ, Scope.WRITE)
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@pytest.fixture
async def searching(api: Api) -> AsyncIterator[Api]:
    async with api.plane.indexed():
        yield api


async def with_tools(api: Api, *definitions: Tool) -> str:
    """A server of ann's with these tools; returns its id."""
    server = await api.plane.server("/lab", owner="ann")
    api.plane.source.tools = definitions
    await api.plane.refresher.refresh(server.id, Cause("test"))
    return server.id


async def test_what_is_found_can_be_called_at_once(api: Api) -> None:
    tool = Tool("make_branch", {"name": "make_branch", "description": "Makes a branch.", "inputSchema": SCHEMA})
    server_id = await with_tools(api, tool)
    ann = await api.plane.key("ann", *AGENT)
    async with api.plane.indexed():
        status, found = await api(ann, "GET", "/discovery/search?q=branches")
    score = found["tools"][0].pop("score")
    assert (status, score > 0) == (200, True)
    assert found == {
        "tools": [
            {
                "server": "/lab",
                "serverId": server_id,
                "serverName": "lab",
                "tool": "make_branch",
                "description": "Makes a branch.",
                "inputSchema": SCHEMA,
                "proxyUrl": "http://proxy.test/proxy/lab",
                "enabled": True,
            }
        ],
        "degraded": False,
        "truncated": False,
    }


async def test_a_schema_that_is_too_large_is_cut_and_said(api: Api) -> None:
    huge = {"type": "object", "description": "x" * 70_000}
    tools = [
        Tool("tool_big", {"name": "tool_big", "description": "d" * 5_000, "inputSchema": huge}),
        Tool("tool_small", {"name": "tool_small", "description": "small", "inputSchema": SCHEMA}),
    ]
    await with_tools(api, *tools)
    ann = await api.plane.key("ann", *AGENT)
    async with api.plane.indexed():
        _, found = await api(ann, "GET", "/discovery/search?q=tool")
    by_name = {tool["tool"]: tool for tool in found["tools"]}
    assert found["truncated"]
    assert (by_name["tool_big"]["inputSchema"], by_name["tool_big"]["cut"]) == (None, ["description", "inputSchema"])
    assert len(by_name["tool_big"]["description"]) == 4_000
    assert (by_name["tool_small"]["inputSchema"], "cut" in by_name["tool_small"]) == (SCHEMA, False)


async def test_disabled_tools_and_their_reasons_are_shown_to_the_owner(api: Api) -> None:
    server = await api.plane.server("/lab", tools=["tool_a"], owner="ann")
    api.plane.store.write(server.id, disabled_tools=frozenset({"tool_a"}))
    owner = await api.plane.key("ann", *AGENT, Scope.MANAGE)
    async with api.plane.indexed():
        _, found = await api(owner, "GET", "/discovery/search?q=tool&include_disabled=true")
        assert [(tool["enabled"], tool["reason"]) for tool in found["tools"]] == [(False, "tool_disabled")]
        assert (await api(owner, "GET", "/discovery/search?q=tool"))[1]["tools"] == []


async def test_a_viewer_gets_no_disabled_tools(api: Api) -> None:
    server = await api.plane.server("/lab", tools=["tool_a"], owner="bob")
    await api.plane.share(server, "ann", VIEWER)
    api.plane.store.write(server.id, disabled_tools=frozenset({"tool_a"}))
    viewer = await api.plane.key("ann", *AGENT, Scope.MANAGE)
    async with api.plane.indexed():
        assert (await api(viewer, "GET", "/discovery/search?q=tool&include_disabled=true"))[1]["tools"] == []


@pytest.mark.parametrize(
    ("query", "status", "code", "field"),
    [
        ("", 422, "invalid", "q"),
        ("?q=", 422, "invalid", "q"),
        ("?q=%20%09", 422, "invalid", "q"),
        (f"?q={'x' * 1001}", 422, "invalid", "q"),
        ("?q=x&limit=0", 422, "invalid", "limit"),
        ("?q=x&limit=-3", 422, "invalid", "limit"),
        ("?q=x&limit=10000", 422, "invalid", "limit"),
        ("?q=x&limit=ten", 422, "invalid_query", "limit"),
        ("?q=x&limit=1.5", 422, "invalid_query", "limit"),
        ("?q=x&limit=", 422, "invalid_query", "limit"),
        ("?q=x&limit=99999999999999999999", 422, "invalid_query", "limit"),
        ("?q=x&include_disabled=yes", 422, "invalid_query", "include_disabled"),
        ("?q=x&q=y", 422, "invalid_query", "q"),
        ("?q=%ff", 400, "invalid_query", None),
        ("?q=%zz", 400, "invalid_query", None),
        ("?q=x&filter=all", 422, "invalid_query", "filter"),
        ("?q=x&server=%2Fnone", 404, "not_found", None),
        ("?q=x&server=", 422, "invalid_query", "server"),
        ("?q=x&include_disabled=true", 403, "forbidden", None),
    ],
)
async def test_a_search_that_makes_no_sense_says_why(
    searching: Api, query: str, status: int, code: str, field: str | None
) -> None:
    agent = await searching.plane.key("ann", *AGENT)
    answered, body = await searching(agent, "GET", f"/discovery/search{query}")
    assert (answered, body["code"], body.get("field")) == (status, code, field)


async def test_a_search_takes_a_key_with_mcp(searching: Api) -> None:
    assert (await searching(None, "GET", "/discovery/search?q=x"))[0] == 401
    reader = await searching.plane.key("ann", Scope.READ)
    status, body = await searching(reader, "GET", "/discovery/search?q=x")
    assert (status, body["required_scope"]) == (403, "mcp")


async def test_the_mirror_is_an_admins(searching: Api) -> None:
    admin = await searching.plane.key("root", *Scope)
    owner = await searching.plane.key("ann", *AGENT, Scope.MANAGE)
    for method, path in (
        ("GET", "/mirror"),
        ("POST", "/mirror/reconcile"),
        ("POST", "/mirror/rebuild"),
        ("POST", "/mirror/prepare"),
    ):
        status, body = await searching(owner, method, path)
        assert (status, body["required_scope"]) == (403, "admin")
    status, told = await searching(admin, "GET", "/mirror")
    assert (status, told["holder"], told["mirrors"], told["local"]["state"]) == (200, None, [], "up")
    status, body = await searching(admin, "POST", "/mirror/reconcile")
    assert (status, body["code"]) == (409, "conflict")
    status, body = await searching(admin, "POST", "/mirror/prepare")
    assert (status, body["code"]) == (400, "invalid")


TEMPLATE = {"Authorization": "Bearer ${SLUICEGATE_CREDENTIAL_X}"}


@pytest.mark.parametrize(
    "templates",
    [
        {"Authorization": "Bearer secret"},
        {"Authorization": "Bearer ${HOME}"},
        {"Authorization": "${SLUICEGATE_CREDENTIAL_X} ${SLUICEGATE_MONGODB_URL}"},
        {"Authorization": "${SLUICEGATE_CREDENTIAL_UNSET}"},
        {"Authorization": "${SLUICEGATE_CREDENTIAL_X}\r\nX: y"},
        {"Host": "${SLUICEGATE_CREDENTIAL_X}"},
        {"Mcp-Name": "${SLUICEGATE_CREDENTIAL_X}"},
        {"Content-Length": "${SLUICEGATE_CREDENTIAL_X}"},
        {"X-Sluicegate-Key": "${SLUICEGATE_CREDENTIAL_X}"},
        {"a b": "${SLUICEGATE_CREDENTIAL_X}"},
        {"a": "${SLUICEGATE_CREDENTIAL_X}", "A": "${SLUICEGATE_CREDENTIAL_X}"},
    ],
)
async def test_credentials_that_cannot_be_sent_are_refused(api: Api, templates: dict[str, str]) -> None:
    api.plane.editor._terms = Terms(variables={"SLUICEGATE_CREDENTIAL_X"})
    root = await api.plane.key("root", *Scope)
    await api.plane.server("/lab", owner="root")
    status, body = await api(root, "PATCH", "/servers/%2Flab", {"credentials": templates})
    assert (status, body["field"]) == (422, "credentials")
    assert "secret" not in body["detail"]


async def test_credentials_are_set_by_admins_and_shown_as_templates(api: Api) -> None:
    api.plane.editor._terms = Terms(variables={"SLUICEGATE_CREDENTIAL_X"})
    server = await api.plane.server("/lab", owner="root")
    owner = await api.plane.key("root", *AGENT, Scope.MANAGE)
    status, body = await api(owner, "PATCH", "/servers/%2Flab", {"credentials": TEMPLATE})
    assert (status, body["required_scope"]) == (403, "admin")
    root = await api.plane.key("root", *Scope)
    for _ in range(2):
        status, body = await api(root, "PATCH", "/servers/%2Flab", {"credentials": TEMPLATE})
        assert (status, body["credentials"]) == (200, TEMPLATE)
    assert dict((await api.plane.now(server)).policy.credentials) == TEMPLATE
    assert [row.after for row in await api.plane.rows()] == [{"credentials": TEMPLATE}]
    status, body = await api(root, "PATCH", "/servers/%2Flab", {"credentials": {}})
    assert (status, "credentials" in body) == (200, False)

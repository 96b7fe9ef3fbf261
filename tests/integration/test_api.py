"""The REST API over loopback: what each route answers, to whom, and every refusal."""

import contextlib
import io
import zlib
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from yarl import URL

from registry.api import Services, application
from registry.errors import OutcomeUnknown, StoreUnavailable
from registry.model import Asked, Facts, Permission, Scope
from registry.rows import Action
from tests.control_plane import ControlPlane

AGENT = (Scope.MCP, Scope.READ, Scope.WRITE)
OWNER = (*AGENT, Scope.MANAGE)
SERVER = {
    "serverName": "demo",
    "path": "/demo",
    "type": "streamable-http",
    "url": "http://127.0.0.1:9/mcp",
    "title": "Demo",
}


class Api:
    """The API on a control plane of twins, as a client sees it."""

    def __init__(self, client: TestClient[Any, Any], plane: ControlPlane, services: Services) -> None:
        self.client = client
        self.plane = plane
        self.services = services

    async def __call__(
        self, key: str | None, method: str, path: str, body: Any = None, **options: Any
    ) -> tuple[int, Any]:
        """Status and decoded body; `path` goes out as it is written."""
        response = await self.raw(key, method, path, json=body, **options)
        return response.status, await response.json()

    async def raw(self, key: str | None, method: str, path: str, **options: Any) -> Any:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        headers |= options.pop("headers", {})
        url = URL(str(self.client.make_url("/")).rstrip("/") + "/api/v1" + path, encoded=True)
        return await self.client.session.request(method, url, headers=headers, **options)


@contextlib.asynccontextmanager
async def served(plane: ControlPlane) -> AsyncIterator[Api]:
    """The API on these twins, while the context is open."""
    use_cases = Services(
        servers=plane.servers,
        editor=plane.editor,
        tools=plane.tools,
        permissions=plane.permissions,
        keys=plane.keys,
        activity=plane.activity,
        discovery=plane.discovery,
        mirrors=plane.mirrors,
        observed=plane.observed,
        public_url="http://proxy.test/",
    )
    root = web.Application()
    root.add_subapp("/api/v1", application(use_cases))
    async with TestClient(TestServer(root)) as client:
        yield Api(client, plane, use_cases)


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with served(ControlPlane()) as served_api:
        yield served_api


async def test_the_story_of_a_server_from_registration_to_a_switch(api: Api) -> None:
    root = await api.plane.key("root", *Scope)
    api.plane.source.lists("read", "delete")
    status, made = await api(root, "POST", "/servers", SERVER)
    assert status == 201
    assert made == {
        "id": made["id"],
        "serverName": "demo",
        "path": "/demo",
        "url": "http://127.0.0.1:9/mcp",
        "type": "streamable-http",
        "tags": [],
        "registrySettings": {
            "trusted": False,
            "listTtlMs": None,
            "downstreamTimeoutS": None,
            "passCookies": False,
        },
        "title": "Demo",
        "description": "",
        "enabled": True,
        "toolFunctions": {
            f"{name}_mcp_demo": {
                "type": "function",
                "function": {"name": f"{name}_mcp_demo", "description": "", "parameters": {}},
                "mcpToolName": name,
            }
            for name in ("read", "delete")
        },
        "disabledTools": [],
        "retiredDisabledTools": [],
        "readOnlyTools": [],
        "revision": made["revision"],
        "refreshedAt": made["refreshedAt"],
        "refreshError": None,
        "proxyUrl": "http://proxy.test/proxy/demo",
    }
    assert made["refreshedAt"].endswith("Z")
    tools = f"/servers/{made['id']}/tools"
    status, patched = await api(root, "PATCH", tools, {"disabledTools": ["delete", "x"], "readOnlyTools": ["read"]})
    changed = {"disabledTools": ["delete"], "readOnlyTools": ["read"], "revision": made["revision"] + 1}
    assert (status, patched) == (200, {**made, **changed, "ignoredTools": ["x"]})
    for path in (f"/servers/{made['id']}", "/servers/%2Fdemo"):
        assert await api(root, "GET", path) == (200, {**made, **changed})
        assert await api(root, "GET", f"{path}/tools") == (200, {**made, **changed, "observedTools": []})
    status, switched = await api(root, "PUT", f"{tools}/delete", {"enabled": True})
    assert (status, switched["disabledTools"], switched["revision"]) == (200, [], made["revision"] + 2)
    api.plane.source.failure = "it is down"
    status, refreshed = await api(root, "POST", "/servers/%2Fdemo/refresh")
    assert (status, refreshed["refreshError"]) == (200, "it is down")
    status, listed = await api(root, "GET", "/servers")
    [summary] = listed["servers"]
    assert (status, summary["path"], summary["refreshError"]) == (200, "/demo", "it is down")
    assert "toolFunctions" not in summary


async def test_activity_is_spelled_as_everything_else(api: Api) -> None:
    server = await api.plane.server(tools=["a"])
    owner, root = await api.plane.key("ann", *OWNER), await api.plane.key("root", Scope.ADMIN)
    answer = await api.raw(owner, "PATCH", "/servers/%2Fdemo/tools", json={"disabledTools": ["a"], "reason": "why"})
    _, body = await api(root, "GET", "/activity")
    [row] = body["activity"]
    assert row["requestId"] == answer.headers["X-Request-Id"]
    assert (row["actor"], row["action"], row["serverId"]) == ("ann", "server_updated", server.id)
    assert (row["before"]["disabledTools"], row["after"]["disabledTools"]) == ([], ["a"])
    assert row["reason"] == "why"


async def test_a_key_is_shown_once_works_and_can_be_disabled(api: Api) -> None:
    owner = await api.plane.key("ann", *OWNER)
    status, made = await api(owner, "POST", "/keys", {"name": "agent", "scopes": ["mcp", "read"]})
    agent = made.pop("key")
    assert status == 201
    assert made == {
        "id": made["id"],
        "name": "agent",
        "user": "ann",
        "groups": [],
        "roles": [],
        "scopes": ["mcp", "read"],
        "tools": "*",
        "enabled": True,
        "createdAt": made["createdAt"],
        "createdBy": "ann",
        "expiresAt": None,
    }
    assert await api(agent, "GET", "/me") == (200, made)
    listing = await api.raw(owner, "GET", "/keys")
    assert made in (await listing.json())["keys"]
    assert agent not in await listing.text()
    assert await api(owner, "PATCH", f"/keys/{made['id']}", {"enabled": False}) == (
        200,
        {**made, "enabled": False},
    )
    assert (await api(agent, "GET", "/me"))[0] == 401


async def test_a_keys_tools_and_expiry_go_in_and_come_out(api: Api) -> None:
    server = await api.plane.server(tools=["a", "b"])
    owner = await api.plane.key("ann", *OWNER)
    wanted = {
        "name": "narrow",
        "tools": [{"server": "/demo", "tools": ["b", "a"]}, {"server": server.id, "tools": "*"}],
        "expiresAt": "2999-01-01T00:00:00+00:00",
    }
    status, made = await api(owner, "POST", "/keys", wanted)
    assert (status, made["expiresAt"]) == (201, "2999-01-01T00:00:00Z")
    assert made["tools"] == [
        {"server": server.id, "tools": ["a", "b"]},
        {"server": server.id, "tools": "*"},
    ]


NAMES = [
    "a/b",
    "a%2Fb",
    "100%",
    "a b",
    "a.b",
    "..",
    "$set",
    "{x}",
    "löschen",
    "工具",
    "a?b#c",
    "a+b",
    "a\nb",
    "tools/x",
    "/",
]


@pytest.mark.parametrize("name", NAMES)
async def test_any_tool_name_can_be_switched_by_its_address(api: Api, name: str) -> None:
    server = await api.plane.server(tools=[name, "other"])
    owner = await api.plane.key("ann", *OWNER)
    for ref in (server.id, "%2Fdemo"):
        address = f"/servers/{ref}/tools/{quote(name, safe='')}"
        status, body = await api(owner, "PUT", address, {"enabled": False})
        assert (status, body["disabledTools"], body["retiredDisabledTools"]) == (200, [name], [])
        status, body = await api(owner, "PUT", address, {"enabled": True})
        assert (status, body["disabledTools"]) == (200, [])


@pytest.mark.parametrize("name", NAMES)
async def test_any_tool_name_can_be_listed_in_a_patch(api: Api, name: str) -> None:
    await api.plane.server(tools=[name, "other"])
    owner = await api.plane.key("ann", *OWNER)
    status, body = await api(owner, "PATCH", "/servers/%2Fdemo/tools", {"disabledTools": [name, name]})
    assert (status, body["disabledTools"], body["ignoredTools"]) == (200, [name], [])
    assert body["toolFunctions"][f"{name}_mcp_demo"]["mcpToolName"] == name


async def test_a_slash_that_is_not_encoded_is_part_of_the_name(api: Api) -> None:
    await api.plane.server(tools=["a/b"])
    owner = await api.plane.key("ann", *OWNER)
    _, body = await api(owner, "PUT", "/servers/%2Fdemo/tools/a/b", {"enabled": False})
    assert body["disabledTools"] == ["a/b"]


@pytest.mark.parametrize("address", ["a%2", "a%zz", "%FF", "%C3"])
async def test_an_address_that_is_not_percent_encoded_utf_8_is_refused(api: Api, address: str) -> None:
    await api.plane.server()
    owner = await api.plane.key("ann", *OWNER)
    status, body = await api(owner, "PUT", f"/servers/%2Fdemo/tools/{address}", {"enabled": False})
    assert (status, body["code"]) == (400, "invalid_path")


READERS = {"read": 200, "manage": 200, "admin": 200, "mcp": 403, "write": 403}


@pytest.mark.parametrize("path", ["/servers", "/servers/%2Fdemo", "/servers/%2Fdemo/tools"])
@pytest.mark.parametrize("scope", Scope)
async def test_reading_takes_read_manage_or_admin(api: Api, path: str, scope: Scope) -> None:
    await api.plane.server()
    status, body = await api(await api.plane.key("ann", scope), "GET", path)
    assert status == READERS[scope]
    if status == 403:
        assert (body["code"], body["required_scope"]) == ("forbidden", "read")


ROUTES: dict[str, tuple[str, str, Any, int, str]] = {
    "register": ("POST", "/servers", SERVER | {"path": "/other"}, 201, "admin"),
    "refresh": ("POST", "/servers/%2Fdemo/refresh", None, 200, "manage"),
    "patch": ("PATCH", "/servers/%2Fdemo/tools", {"disabledTools": []}, 200, "manage"),
    "put": ("PUT", "/servers/%2Fdemo/tools/a", {"enabled": True}, 200, "manage"),
    "make a key": ("POST", "/keys", {"name": "x"}, 201, "manage"),
    "list keys": ("GET", "/keys", None, 200, "manage"),
    "activity": ("GET", "/activity", None, 200, "admin"),
}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("scope", Scope)
async def test_each_route_takes_its_scope(api: Api, route: str, scope: Scope) -> None:
    await api.plane.server(tools=["a"])
    method, path, body, success, required = ROUTES[route]
    if route == "make a key":
        body = {"name": "x", "scopes": [scope]}
    key = await api.plane.key("ann", scope)
    status, answer = await api(key, method, path, body)
    keys_of_all = "key" in route and scope == Scope.ADMIN
    if scope == required or keys_of_all:
        assert status == success
    else:
        assert (status, answer["code"], answer["required_scope"]) == (403, "forbidden", required)


@pytest.mark.parametrize(
    ("route", "bit"), [("refresh", Permission.EDIT), ("patch", Permission.SHARE), ("put", Permission.SHARE)]
)
@pytest.mark.parametrize("held", [Permission.VIEW, Permission.EDIT, Permission.DELETE, Permission.SHARE])
async def test_each_change_takes_its_bit(api: Api, route: str, bit: Permission, held: Permission) -> None:
    server = await api.plane.server(tools=["a"])
    await api.plane.share(server, "bob", Permission.VIEW | held)
    method, path, body, _, _ = ROUTES[route]
    status, answer = await api(await api.plane.key("bob", *OWNER), method, path, body)
    if held == bit:
        assert status == 200
    else:
        assert (status, answer["code"], "required_scope" in answer) == (403, "forbidden", False)


@pytest.mark.parametrize("ref", ["%2Fdemo", "%2Fnowhere", "nowhere"])
@pytest.mark.parametrize(
    ("method", "rest", "body"),
    [
        ("GET", "", None),
        ("GET", "/tools", None),
        ("POST", "/refresh", None),
        ("PATCH", "/tools", {"disabledTools": []}),
        ("PUT", "/tools/a", {"enabled": False}),
    ],
)
async def test_an_invisible_server_answers_as_an_unknown_one(
    api: Api, ref: str, method: str, rest: str, body: Any
) -> None:
    await api.plane.server()
    answer = await api(await api.plane.key("eve", *OWNER), method, f"/servers/{ref}{rest}", body)
    assert answer == (404, {"detail": "no such server", "code": "not_found"})


ALL_ROUTES = [
    *((method, path) for method, path, *_ in ROUTES.values()),
    ("GET", "/me"),
    ("GET", "/servers"),
    ("GET", "/servers/x"),
    ("GET", "/servers/x/tools"),
    ("PATCH", "/keys/x"),
]


@pytest.mark.parametrize(("method", "path"), ALL_ROUTES)
@pytest.mark.parametrize("key", [None, "sg_wrong"])
async def test_without_a_valid_key_every_route_is_401_before_the_body_is_judged(
    api: Api, method: str, path: str, key: str | None
) -> None:
    response = await api.raw(key, method, path, data=b"no json")
    assert response.status == 401
    assert response.headers["WWW-Authenticate"] == 'Bearer realm="sluicegate"'
    assert (await response.json())["code"] == "key_invalid"


async def test_two_keys_that_differ_are_refused_and_two_that_agree_are_one(api: Api) -> None:
    key, other = await api.plane.key("ann", Scope.READ), await api.plane.key("bob", Scope.READ)
    status, body = await api(key, "GET", "/me", headers={"X-Sluicegate-Key": other})
    assert (status, body["code"]) == (400, "ambiguous_credentials")
    status, body = await api(key, "GET", "/me", headers={"X-Sluicegate-Key": key})
    assert (status, body["user"]) == (200, "ann")
    status, body = await api(None, "GET", "/me", headers={"X-Sluicegate-Key": other})
    assert (status, body["user"]) == (200, "bob")


TOOLS, KEYS = "/servers/%2Fdemo/tools", "/keys"


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("PATCH", TOOLS, {"disabledTools": None}, "disabledTools"),
        ("PATCH", TOOLS, {"disabledTools": "a"}, "disabledTools"),
        ("PATCH", TOOLS, {"disabledTools": ["a", 1]}, "disabledTools"),
        ("PATCH", TOOLS, {"disabledTools": {"a": True}}, "disabledTools"),
        ("PATCH", TOOLS, {"disabledTools": ["a"], "readOnlyTools": None}, "readOnlyTools"),
        ("PATCH", TOOLS, {"disabledTools": ["a"], "disabled_tools": []}, "disabled_tools"),
        ("PATCH", TOOLS, {"disabledTools": ["a"], "reason": 5}, "reason"),
        ("PATCH", TOOLS, {"reason": "none"}, "disabledTools"),
        ("PATCH", TOOLS, {}, "disabledTools"),
        ("PUT", TOOLS + "/a", {}, "enabled"),
        ("PUT", TOOLS + "/a", {"enabled": "false"}, "enabled"),
        ("PUT", TOOLS + "/a", {"enabled": 0}, "enabled"),
        ("PUT", TOOLS + "/a", {"enabled": None}, "enabled"),
        ("PUT", TOOLS + "/a", {"enabled": False, "tool": "b"}, "tool"),
        ("POST", "/servers", SERVER | {"type": "sse"}, "type"),
        ("POST", "/servers", SERVER | {"type": "stdio"}, "type"),
        ("POST", "/servers", SERVER | {"path": "demo"}, "path"),
        ("POST", "/servers", SERVER | {"url": "ftp://x/"}, "url"),
        ("POST", "/servers", SERVER | {"url": "http://u:p@x/"}, "url"),
        ("POST", "/servers", SERVER | {"serverName": ""}, "serverName"),
        ("POST", "/servers", SERVER | {"config": {}}, "config"),
        ("POST", "/servers", {"path": "/x", "type": "streamable-http", "url": "http://x/"}, "serverName"),
        ("POST", KEYS, {}, "name"),
        ("POST", KEYS, {"name": "x", "scopes": "mcp"}, "scopes"),
        ("POST", KEYS, {"name": "x", "tools": ["a"]}, "tools"),
        ("POST", KEYS, {"name": "x", "tools": [{"server": "/demo"}]}, "tools"),
        ("POST", KEYS, {"name": "x", "expiresAt": "2999-01-01T00:00:00"}, "expiresAt"),
        ("POST", KEYS, {"name": "x", "expiresAt": 4102444800}, "expiresAt"),
        ("POST", KEYS, {"name": "x", "expiresAt": "2001-01-01T00:00:00Z"}, "expiresAt"),
        ("PATCH", "/keys/x", {"enabled": 1}, "enabled"),
    ],
)
async def test_a_body_of_the_wrong_shape_is_422_names_the_field_and_changes_nothing(
    api: Api, method: str, path: str, body: Any, field: str
) -> None:
    server = await api.plane.server(tools=["a", "b"])
    root = await api.plane.key("ann", *Scope)
    status, answer = await api(root, method, path, body)
    assert (status, answer["field"]) == (422, field)
    assert isinstance(answer["detail"], str)
    assert (await api.plane.now(server), await api.plane.rows()) == (server, [])
    assert len(await api.plane.store.keys.all()) == len(await api.plane.store.servers.all()) == 1


async def test_a_server_of_type_sse_is_said_to_come_later(api: Api) -> None:
    _, body = await api(await api.plane.key("root", *Scope), "POST", "/servers", SERVER | {"type": "sse"})
    assert "not supported yet" in body["detail"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b'{"enabled": false} x',
        b'{"enabled": true, "enabled": false}',
        b'{"enabled": false, "reason": NaN}',
        b'\xef\xbb\xbf{"enabled": false}',
        b'{"enabled": false, "reason": "\xff"}',
        b'{"enabled": false, "reason": "\\ud800"}',
        '{"enabled": false}'.encode("utf-16"),
        b"[" * 100_000,
        b'{"enabled": ' + b"1" * 5000 + b"}",
    ],
)
async def test_a_body_that_is_no_json_object_is_400_and_changes_nothing(api: Api, body: bytes) -> None:
    server = await api.plane.server(tools=["a"])
    owner = await api.plane.key("ann", *OWNER)
    response = await api.raw(owner, "PUT", "/servers/%2Fdemo/tools/a", data=body)
    assert (response.status, (await response.json())["code"]) == (400, "invalid_json")
    assert await api.plane.now(server) == server


async def test_an_unknown_scope_or_tool_is_400_and_named(api: Api) -> None:
    await api.plane.server(tools=["a"])
    owner = await api.plane.key("ann", *OWNER)
    answers = [
        await api(owner, "POST", "/keys", {"name": "x", "scopes": ["mcp", "root"]}),
        await api(owner, "POST", "/keys", {"name": "x", "tools": [{"server": "/demo", "tools": ["zz"]}]}),
    ]
    assert answers == [
        (400, {"detail": "unknown scope: root", "code": "invalid"}),
        (400, {"detail": "unknown tool: zz", "code": "invalid"}),
    ]


async def test_a_body_over_the_cap_is_413_even_without_a_key(api: Api) -> None:
    response = await api.raw(None, "PATCH", "/servers/x/tools", data=io.BytesIO(b" " * (1024 * 1024 + 1)))
    assert (response.status, (await response.json())["code"]) == (413, "body_too_large")


async def test_a_body_at_the_cap_is_read(api: Api) -> None:
    await api.plane.server(tools=["a"])
    owner = await api.plane.key("ann", *OWNER)
    body = b'{"disabledTools": ["a"]}'.ljust(1024 * 1024)
    response = await api.raw(owner, "PATCH", "/servers/%2Fdemo/tools", data=io.BytesIO(body))
    assert response.status == 200


async def test_a_compressed_body_is_refused(api: Api) -> None:
    owner = await api.plane.key("ann", *OWNER)
    headers = {"Content-Encoding": "deflate"}
    response = await api.raw(owner, "PATCH", "/servers/x/tools", data=zlib.compress(b"{}"), headers=headers)
    assert (response.status, (await response.json())["code"]) == (415, "unsupported_media_type")


async def test_a_path_that_is_taken_is_409(api: Api) -> None:
    await api.plane.server()
    status, body = await api(await api.plane.key("root", *Scope), "POST", "/servers", SERVER)
    assert (status, body["code"]) == (409, "conflict")


async def test_a_policy_that_cannot_be_read_is_shown_with_its_fault_and_not_changed(api: Api) -> None:
    server = await api.plane.server(tools=["a"])
    owner = await api.plane.key("ann", *OWNER)
    api.plane.store.write(server.id, fault="registryDisabledTools is null")
    status, body = await api(owner, "GET", "/servers/%2Fdemo/tools")
    assert (status, body["fault"]) == (200, "registryDisabledTools is null")
    _, listed = await api(owner, "GET", "/servers")
    assert [shown["fault"] for shown in listed["servers"]] == ["registryDisabledTools is null"]
    status, body = await api(owner, "PATCH", "/servers/%2Fdemo/tools", {"disabledTools": ["a"]})
    assert (status, body["code"]) == (409, "conflict")


@pytest.mark.parametrize("path", ["/nowhere", "/", "/servers/x/y", "/servers/x/tools/", "/openapi"])
async def test_an_unknown_route_is_404_in_json(api: Api, path: str) -> None:
    status, body = await api(None, "GET", path)
    assert (status, body["code"]) == (404, "not_found")


async def test_a_method_that_a_route_lacks_is_405_and_names_the_others(api: Api) -> None:
    response = await api.raw(None, "DELETE", "/keys")
    assert (response.status, (await response.json())["code"]) == (405, "method_not_allowed")
    assert {"GET", "POST"} <= set(response.headers["Allow"].split(","))


async def test_every_answer_has_its_own_request_id_and_is_not_stored(api: Api) -> None:
    key = await api.plane.key("ann", Scope.READ)
    answers = [
        await api.raw(key, "GET", "/me"),
        await api.raw(None, "GET", "/me"),
        await api.raw(None, "GET", "/nowhere"),
    ]
    assert len({answer.headers["X-Request-Id"] for answer in answers}) == 3
    assert {answer.headers["Cache-Control"] for answer in answers} == {"no-store"}
    assert {answer.headers["Content-Type"] for answer in answers} == {"application/json; charset=utf-8"}


@pytest.mark.parametrize(
    ("error", "code"),
    [(StoreUnavailable("no"), "store_unavailable"), (OutcomeUnknown("who knows"), "outcome_unknown")],
)
async def test_a_store_that_does_not_answer_is_503(api: Api, error: StoreUnavailable, code: str) -> None:
    class Down:
        async def read(self, asked: frozenset[Asked]) -> Mapping[Asked, Facts]:
            raise error

    key = await api.plane.key("ann", *OWNER)
    api.plane.reads.reader = Down()
    status, body = await api(key, "GET", "/me")
    assert (status, body) == (503, {"detail": str(error), "code": code})


async def test_who_sends_the_etag_overwrites_nothing_that_came_in_between(api: Api) -> None:
    root = await api.plane.key("root", *Scope)
    server = await api.plane.server("/demo", tools=["a", "b"], owner="root")
    first = await api.raw(root, "GET", "/servers/%2Fdemo/tools")
    seen = first.headers["ETag"]
    same = await api.raw(root, "GET", "/servers/%2Fdemo")
    assert (seen, first.headers["Cache-Control"]) == (same.headers["ETag"], "no-store")
    api.plane.store.write(server.id, disabled_tools=frozenset({"b"}))  # by another program: no new revision
    body = {"disabledTools": ["a"]}
    late = await api(root, "PATCH", "/servers/%2Fdemo/tools", body, headers={"If-Match": seen})
    assert late == (412, {"detail": "the server's policy has changed since it was read", "code": "precondition_failed"})
    switched = await api(root, "PUT", "/servers/%2Fdemo/tools/a", {"enabled": False}, headers={"If-Match": seen})
    assert switched[0] == 412
    now = (await api.raw(root, "GET", "/servers/%2Fdemo")).headers["ETag"]
    assert now != seen
    for form, names in (('"x", {}', ["a"]), ("*", ["b"]), ("{}", ["a"])):
        tags = {"If-Match": form.format(now)}
        changed = await api.raw(root, "PATCH", "/servers/%2Fdemo/tools", json={"disabledTools": names}, headers=tags)
        assert changed.status == 200
        now = changed.headers["ETag"]


@pytest.mark.parametrize(
    ("tags", "status"),
    [("W/{}", 412), ('"nothing"', 412), ('""', 412), ("{} x", 400), ("nothing", 400), ("*, {}", 400), ("", 400)],
)
async def test_a_weak_tag_never_matches_and_what_is_no_tag_is_an_error(api: Api, tags: str, status: int) -> None:
    root = await api.plane.key("root", *Scope)
    await api.plane.server("/demo", tools=["a"], owner="root")
    seen = (await api.raw(root, "GET", "/servers/%2Fdemo")).headers["ETag"]
    headers = {"If-Match": tags.format(seen)}
    assert (await api(root, "PATCH", "/servers/%2Fdemo/tools", {"disabledTools": []}, headers=headers))[0] == status


async def test_a_reader_that_sends_a_tag_gets_the_whole_answer(api: Api) -> None:
    root = await api.plane.key("root", *Scope)
    await api.plane.server("/demo", tools=["a"], owner="root")
    seen = (await api.raw(root, "GET", "/servers/%2Fdemo")).headers["ETag"]
    assert (await api.raw(root, "GET", "/servers/%2Fdemo", headers={"If-None-Match": seen})).status == 200


async def test_a_server_is_edited_and_shown_as_it_is_now(api: Api) -> None:
    ann = await api.plane.key("ann", *OWNER)
    await api.plane.server("/demo", tools=["a"], owner="ann")
    settings = {"trusted": True, "listTtlMs": 60000, "downstreamTimeoutS": 7, "passCookies": True}
    body = {"title": "New", "tags": ["x"], "enabled": False, "registrySettings": settings, "reason": "why not"}
    status, shown = await api(ann, "PATCH", "/servers/%2Fdemo", body)
    assert (status, shown["title"], shown["tags"], shown["enabled"]) == (200, "New", ["x"], False)
    assert shown["registrySettings"] == settings
    status, shown = await api(ann, "PATCH", "/servers/%2Fdemo", {"registrySettings": {"listTtlMs": None}})
    assert shown["registrySettings"] == {**settings, "listTtlMs": None}
    assert (await api(ann, "GET", "/servers/%2Fdemo"))[1] == shown


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({}, 400, None),
        ({"reason": "none"}, 400, None),
        ({"registrySettings": {}}, 400, None),
        ({"title": None}, 422, "title"),
        ({"enabled": "no"}, 422, "enabled"),
        ({"registrySettings": {"listTtlMs": -1}}, 422, "registrySettings"),
        ({"registrySettings": {"downstreamTimeoutS": 0}}, 422, "registrySettings"),
        ({"registrySettings": {"credentials": {}}}, 422, "registrySettings"),
        ({"registrySettings": None}, 422, "registrySettings"),
        ({"path": ""}, 422, "path"),
        ({"path": "demo"}, 422, "path"),
        ({"url": "http://[::"}, 422, "url"),
        ({"url": "http://169.254.169.254/latest"}, 422, "url"),
        ({"tags": [""]}, 422, "tags"),
        ({"name": "x"}, 422, "name"),
    ],
)
async def test_an_edit_that_makes_no_sense_says_which_field(
    api: Api, body: dict[str, Any], status: int, field: str | None
) -> None:
    root = await api.plane.key("ann", *Scope)
    await api.plane.server("/demo", tools=["a"], owner="ann")
    answered, shown = await api(root, "PATCH", "/servers/%2Fdemo", body)
    assert (answered, shown.get("field")) == (status, field)


async def test_a_second_way_to_a_downstream_is_refused_unless_an_admin_says_otherwise(api: Api) -> None:
    root = await api.plane.key("root", *Scope)
    assert (await api(root, "POST", "/servers", SERVER))[0] == 201
    second = {**SERVER, "path": "/second", "url": "http://127.1:9/mcp"}
    status, answer = await api(root, "POST", "/servers", second)
    assert (status, answer["detail"]) == (409, "a server with this downstream is registered already")
    assert (await api(root, "POST", "/servers", {**second, "allowDuplicate": True}))[0] == 201
    created = [row for row in await api.plane.rows() if row.action is Action.SERVER_CREATED]
    assert [row.after.get("allows_duplicate") for row in created] == [None, True]

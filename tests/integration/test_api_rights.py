"""Every line of the table of rights, asked of the running API (DESIGN 2)."""

from typing import Any

import pytest

from registry.api import application
from registry.api.rights import RIGHTS
from registry.entries import NewServer, ServerType
from registry.model import AccessEntry, Permission, PrincipalType, Scope
from registry.ports import Transaction
from tests.integration.test_api import Api, api

__all__ = ["api"]

BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/servers"): {"serverName": "n", "path": "/n", "type": "streamable-http", "url": "http://127.0.0.1:9/n"},
    ("PATCH", "/servers/{server}"): {"registrySettings": {"trusted": False}},
    ("PUT", "/servers/{server}/permissions"): {
        "permissions": [{"principalType": "user", "principalId": "ann", "permBits": 15}]
    },
    ("PATCH", "/servers/{server}/tools"): {"disabledTools": []},
    ("PUT", "/servers/{server}/tools/{tool}"): {"enabled": True},
    ("POST", "/keys"): {"name": "k", "scopes": ["mcp"]},
    ("PATCH", "/keys/{key}"): {"enabled": True},
}
Route = tuple[str, str]


def on_a_server() -> list[Route]:
    return [route for route in RIGHTS if "{server}" in route[1]]


def each_scope() -> list[tuple[Route, Scope]]:
    return [(route, scope) for route, right in RIGHTS.items() for scope in sorted(right.scopes)]


async def server(api: Api, bits: Permission) -> None:
    """One server, on which ann holds `bits`."""

    async def work(tx: Transaction) -> None:
        made = await tx.add_server(NewServer("s", "/s", "http://127.0.0.1:9/s", ServerType.STREAMABLE_HTTP))
        if bits:
            await tx.add_entry(AccessEntry(made.id, PrincipalType.USER, "ann", bits))

    await api.plane.store.ledger.change(work)


async def asked(api: Api, key: str | None, route: Route, new_key: Any = None) -> tuple[int, dict[str, Any]]:
    method, pattern = route
    body = new_key if new_key and pattern == "/keys" and method == "POST" else BODIES.get(route)
    path = pattern.replace("{server}", "%2Fs").replace("{tool}", "t").replace("{key}", "key-ann-manage")
    path = path + "?q=x" if pattern == "/discovery/search" else path
    response = await api.raw(key, method, path, json=body)
    return response.status, await response.json() if response.status not in (204,) else {}


async def test_every_route_has_a_line_and_every_line_a_route(api: Api) -> None:
    routes = {
        (route.method, route.resource.canonical)
        for route in application(api.services).router.routes()
        if route.resource is not None and route.method != "HEAD"
    }
    assert routes == set(RIGHTS)


@pytest.mark.parametrize("route", RIGHTS, ids=" ".join)
async def test_without_a_key_it_is_401(api: Api, route: Route) -> None:
    await server(api, Permission(15))
    assert (await asked(api, None, route))[0] == 401


@pytest.mark.parametrize("route", RIGHTS, ids=" ".join)
async def test_every_other_scope_together_is_403_and_the_answer_names_one_that_would_do(api: Api, route: Route) -> None:
    right = RIGHTS[route]
    others = sorted(set(Scope) - right.scopes)
    await server(api, Permission(15))
    if not others:
        return
    status, answer = await asked(api, await api.plane.key("ann", *others), route)
    assert (status, Scope(answer["required_scope"]) in right.scopes) == (403, True)


@pytest.mark.parametrize(("route", "scope"), each_scope(), ids=str)
async def test_each_scope_of_the_line_will_do(api: Api, route: Route, scope: Scope) -> None:
    await server(api, Permission(15))
    key = await api.plane.key("ann", scope)
    if scope is not Scope.MANAGE:
        await api.plane.key("ann", Scope.MANAGE)  # that which is patched
    status, answer = await asked(api, key, route, {"name": "k", "scopes": [scope.value]})
    is_order = route[1].startswith("/mirror/")
    assert status < 300 or is_order, answer
    assert not is_order or answer["code"] in ("conflict", "invalid"), "there is no Weaviate here"


@pytest.mark.parametrize("route", on_a_server(), ids=" ".join)
async def test_a_server_that_is_not_visible_is_404(api: Api, route: Route) -> None:
    right = RIGHTS[route]
    await server(api, Permission.NONE)
    scopes = sorted(right.scopes - {Scope.ADMIN}) or sorted(right.scopes)
    status, _ = await asked(api, await api.plane.key("ann", *scopes), route)
    assert status == (200 if Scope.ADMIN in scopes else 404)


@pytest.mark.parametrize("route", on_a_server(), ids=" ".join)
async def test_with_every_other_permission_it_is_403_and_the_answer_names_the_one(api: Api, route: Route) -> None:
    right = RIGHTS[route]
    if right.permission is Permission.VIEW:
        return  # whoever lacks it does not see the server
    others = Permission(15) & ~right.permission
    await server(api, others)
    key = await api.plane.key("ann", *sorted(right.scopes - {Scope.ADMIN}))
    status, answer = await asked(api, key, route)
    assert (status, answer["required_permission"]) == (403, right.permission.name)


@pytest.mark.parametrize("route", on_a_server(), ids=" ".join)
async def test_admin_alone_does_what_its_line_says(api: Api, route: Route) -> None:
    right = RIGHTS[route]
    await server(api, Permission.NONE)
    status, _ = await asked(api, await api.plane.key("root", Scope.ADMIN, Scope.MANAGE), route)
    assert (status < 300) is right.admin

"""Every line of the table of rights, asked of the running API by every kind of caller (DESIGN 2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from registry.api import application
from registry.api.bodies import ServerPatchBody
from registry.api.rights import Line, Right, rights
from registry.entries import NewServer, ServerType
from registry.model import DEFAULT_SCOPES, OWNER, AccessEntry, Permission, PrincipalType, Scope
from registry.ports import Transaction
from registry.terms import Terms
from tests.control_plane import ControlPlane
from tests.integration.test_api import Api, served

NEW = {"serverName": "n", "path": "/n", "type": "streamable-http", "url": "http://127.0.0.1:9/n"}
CREDENTIALS = {"Authorization": "Bearer ${SLUICEGATE_CREDENTIAL_N}"}

BODIES: Mapping[Line, Any] = {
    Line("POST", "/servers"): NEW,
    Line("POST", "/servers", "credentials"): {**NEW, "credentials": CREDENTIALS},
    Line("POST", "/servers", "allowDuplicate"): {**NEW, "allowDuplicate": True},
    Line("PATCH", "/servers/{server}", "title"): {"title": "t"},
    Line("PATCH", "/servers/{server}", "description"): {"description": "d"},
    Line("PATCH", "/servers/{server}", "tags"): {"tags": ["t"]},
    Line("PATCH", "/servers/{server}", "enabled"): {"enabled": False},
    Line("PATCH", "/servers/{server}", "registrySettings"): {"registrySettings": {"trusted": False}},
    Line("PATCH", "/servers/{server}", "url"): {"url": "http://127.0.0.1:9/moved"},
    Line("PATCH", "/servers/{server}", "path"): {"path": "/moved"},
    Line("PATCH", "/servers/{server}", "credentials"): {"credentials": CREDENTIALS},
    Line("PUT", "/servers/{server}/permissions"): {
        "permissions": [{"principalType": "user", "principalId": "ann", "permBits": 15}]
    },
    Line("PATCH", "/servers/{server}/tools"): {"disabledTools": []},
    Line("PUT", "/servers/{server}/tools/{tool}"): {"enabled": True},
    Line("POST", "/keys"): {"name": "k"},
    Line("POST", "/keys", "user"): {"name": "k", "user": "bob"},
    Line("PATCH", "/keys/{key}"): {"enabled": True},
}
QUERIES = {
    Line("GET", "/discovery/search"): "?q=x",
    Line("GET", "/discovery/search", "include_disabled"): "?q=x&include_disabled=true",
}

ALL = frozenset(Scope)
MANAGE, ADMIN = frozenset({Scope.MANAGE}), frozenset({Scope.ADMIN})
PATCHED = "key-ann-mcp-read-admin"


@dataclass(frozen=True, slots=True)
class Asking:
    """A key's scopes, and the bits that its user holds on the server."""

    scopes: frozenset[Scope]
    bits: Permission = Permission.NONE


def callers(right: Right) -> Mapping[str, Asking]:
    """Who is tried on a line; those without `admin` where it says so, or all would see every server."""
    fitting = right.scopes | ({right.besides} if right.besides else set())
    ordinary = (fitting if fitting == ADMIN else fitting - ADMIN) | {Scope.MCP}
    held = {"view": 1, "edit": 3, "delete": 5, "share": 9, "all": 15, "all but view": 14, "all but share": 7}
    asking = {
        **{f"with {name}": Asking(ordinary, Permission(bits)) for name, bits in held.items()},
        "without an entry": Asking(ordinary),
        "without the scopes": Asking(ALL - right.scopes, OWNER),
        "without the scope besides": Asking(ALL - {right.besides}, OWNER),
        "an agent's ordinary key": Asking(DEFAULT_SCOPES, OWNER),
        "admin alone": Asking(ADMIN),
        "admin and manage without an entry": Asking(ADMIN | MANAGE),
        **{f"{scope} alone": Asking(frozenset({scope}), OWNER) for scope in Scope},
    }
    return {name: one for name, one in asking.items() if one.scopes}


def expected(right: Right, asking: Asking) -> tuple[int, str | None]:
    """The status, 200 for any that is a yes; and what a 403 must name."""
    if not asking.scopes & right.scopes or not asking.scopes >= {right.besides} - {None}:
        return 403, "required_scope"
    is_admin = Scope.ADMIN in asking.scopes
    if right.permission is Permission.NONE or (is_admin and right.admin):
        return 200, None
    if not is_admin and Permission.VIEW not in asking.bits:
        return 404, None
    return (200, None) if right.permission in asking.bits else (403, "required_permission")


def cases() -> list[Any]:
    """Both tables, line by line and caller by caller; of the second one only where it differs."""
    usual, other = rights(), rights(Scope.MANAGE)
    lines = [(Scope.ADMIN, line, right) for line, right in usual.items()]
    lines += [
        (Scope.MANAGE, line, right) for line, right in other.items() if right != usual[line] or right.scopes == ADMIN
    ]
    return [
        pytest.param(scope, line, asking, id=f"{' '.join(filter(None, line))}, {name}, registration by {scope}")
        for scope, line, right in lines
        for name, asking in callers(right).items()
    ]


async def prepared(plane: ControlPlane, bits: Permission) -> None:
    """One server, on which ann holds `bits`, and a key of ann's to be patched."""

    async def work(tx: Transaction) -> None:
        made = await tx.add_server(NewServer("s", "/s", "http://127.0.0.1:9/s", ServerType.STREAMABLE_HTTP))
        if bits:
            await tx.add_entry(AccessEntry(made.id, PrincipalType.USER, "ann", bits))

    await plane.store.ledger.change(work)
    await plane.key("ann", Scope.MCP, Scope.READ, Scope.ADMIN)


async def asked(api: Api, key: str | None, line: Line, scopes: frozenset[Scope]) -> tuple[int, dict[str, Any]]:
    path = line.pattern.replace("{server}", "%2Fs").replace("{tool}", "t").replace("{key}", PATCHED)
    body = BODIES.get(line)
    if line.pattern == "/keys" and body is not None:
        body = {**body, "scopes": sorted(scopes)}  # no wider than one's own
    response = await api.raw(key, line.method, path + QUERIES.get(line, ""), json=body)
    return response.status, {} if response.status == 204 else await response.json()


def is_a_yes(line: Line, status: int, answer: Mapping[str, Any]) -> bool:
    if line.method == "POST" and line.pattern.startswith("/mirror/"):
        return answer.get("code") in ("conflict", "invalid")  # there is no Weaviate here
    return 200 <= status < 300


def terms(registration: Scope = Scope.ADMIN) -> Terms:
    return Terms(registration, variables=("SLUICEGATE_CREDENTIAL_N",))


@pytest.mark.parametrize(("registration", "line", "asking"), cases())
async def test_a_route_asks_what_its_line_says(registration: Scope, line: Line, asking: Asking) -> None:
    right = rights(registration)[line]
    status, named = expected(right, asking)
    async with served(ControlPlane(terms(registration))) as api:
        await prepared(api.plane, asking.bits)
        key = await api.plane.key("ann", *sorted(asking.scopes))
        got, answer = await asked(api, key, line, asking.scopes)
    if status == 200:
        assert is_a_yes(line, got, answer), (got, answer)
        return
    assert (got, set(answer)) == (status, {"detail", "code", *filter(None, [named])}), answer
    assert answer["code"] == {403: "forbidden", 404: "not_found"}[status]
    if named == "required_permission":
        assert answer[named] == right.permission.name
    if named == "required_scope":
        assert answer[named] in {*right.scopes, right.besides} - asking.scopes


@pytest.mark.parametrize("line", rights(), ids=lambda line: " ".join(filter(None, line)))
async def test_without_a_key_it_is_401(line: Line) -> None:
    async with served(ControlPlane(terms())) as api:
        await prepared(api.plane, OWNER)
        status, answer = await asked(api, None, line, ALL)
    assert (status, answer["code"]) == (401, "key_invalid")


async def test_every_route_has_a_line_and_every_line_a_route() -> None:
    async with served(ControlPlane()) as api:
        routes = {
            (route.method, route.resource.canonical)
            for route in application(api.services).router.routes()
            if route.resource is not None and route.method != "HEAD"
        }
    assert routes == {(line.method, line.pattern) for line in rights()}


def test_every_member_of_a_patch_of_a_server_has_a_line() -> None:
    members = {field.alias for field in ServerPatchBody.model_fields.values()}
    assert members - {"reason"} == {line.member for line in rights() if line[:2] == ("PATCH", "/servers/{server}")}


def test_an_agents_ordinary_key_changes_nothing() -> None:
    open_to_it = {line for line, right in rights(Scope.MANAGE).items() if right.scopes & DEFAULT_SCOPES}
    assert {line.method for line in open_to_it} == {"GET"}

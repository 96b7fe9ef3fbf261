"""The routes of /api/v1 and what each of them asks.

Source: DESIGN 2 (rights), DESIGN 5 (registry). A handler reads the request, asks one use case, shows the result.
"""

from collections.abc import Sequence
from typing import Literal

from aiohttp import web
from pydantic import BaseModel

from registry.api import views
from registry.api.bodies import (
    KeyPatchBody,
    NewKeyBody,
    NewServerBody,
    PermissionsBody,
    ServerPatchBody,
    SwitchBody,
    ToolsBody,
)
from registry.api.context import CALLER, SERVICES, Services, services
from registry.api.edits import edit_of
from registry.api.frame import framed
from registry.api.grants import entries_of
from registry.api.models import ActivityList, KeyList, ServerList
from registry.api.parse import body_as, reason_in, seen_in, server_in, tool_in, wanted_in
from registry.entries import NewServer, Server
from registry.errors import Invalid
from registry.fingerprint import fingerprint
from registry.keys import NewKey, ToolsOf
from registry.mirroring import Order
from registry.model import ALL_TOOLS
from registry.sightings import Sighting


def application(use_cases: Services) -> web.Application:
    """The API as an application of its own, to be mounted at /api/v1."""
    app = web.Application(middlewares=[framed])
    app[SERVICES] = use_cases
    app.add_routes([*_of_servers(), *_of_the_rest()])
    return app


def _of_servers() -> list[web.RouteDef]:
    return [
        web.post("/servers", _create_server),
        web.get("/servers", _list_servers),
        web.get("/servers/{server}", _get_server),
        web.patch("/servers/{server}", _patch_server),
        web.delete("/servers/{server}", _delete_server),
        web.get("/servers/{server}/permissions", _permissions),
        web.put("/servers/{server}/permissions", _replace_permissions),
        web.post("/servers/{server}/refresh", _refresh_server),
        web.get("/servers/{server}/tools", _get_tools),
        web.patch("/servers/{server}/tools", _replace_tools),
        web.put(r"/servers/{server}/tools/{tool:[\s\S]+}", _switch_tool),
    ]


def _of_the_rest() -> list[web.RouteDef]:
    return [
        web.get("/me", _me),
        web.post("/keys", _create_key),
        web.get("/keys", _list_keys),
        web.patch("/keys/{key}", _set_key_enabled),
        web.get("/activity", _newest_activity),
        web.get("/discovery/search", _search),
        web.get("/mirror", _mirrors),
        web.post("/mirror/reconcile", _reconcile_mirrors),
        web.post("/mirror/rebuild", _rebuild_mirrors),
        web.post("/mirror/prepare", _prepare_existing),
    ]


async def _me(request: web.Request) -> web.Response:
    return _json(views.key(await services(request).keys.own(request[CALLER])))


async def _create_server(request: web.Request) -> web.Response:
    body = body_as(NewServerBody, request)
    new = NewServer(
        name=body.server_name,
        path=body.path,
        url=body.url,
        type=body.type,
        title=body.title,
        description=body.description,
        tags=tuple(body.tags),
        credentials=tuple(sorted(body.credentials.items())),
        allows_duplicate=body.allow_duplicate,
    )
    return _detail(request, await services(request).servers.create(request[CALLER], new), status=201)


async def _list_servers(request: web.Request) -> web.Response:
    public_url = services(request).public_url
    servers = await services(request).servers.list(request[CALLER])
    return _json(ServerList(servers=[views.summary(server, public_url) for server in servers]))


async def _get_server(request: web.Request) -> web.Response:
    return _detail(request, await services(request).servers.get(request[CALLER], server_in(request)))


async def _get_tools(request: web.Request) -> web.Response:
    server = await services(request).servers.get(request[CALLER], server_in(request))
    return _detail(request, server, observed=await services(request).observed.of(request[CALLER], server))


async def _patch_server(request: web.Request) -> web.Response:
    ref, body = server_in(request), body_as(ServerPatchBody, request)
    edit = edit_of(body)
    if not edit.given():
        raise Invalid("give at least one member to change")
    edited = await services(request).editor.edit(request[CALLER], ref, edit, reason=body.reason, seen=seen_in(request))
    return _detail(request, edited)


async def _delete_server(request: web.Request) -> web.Response:
    await services(request).servers.delete(request[CALLER], server_in(request), reason_in(request))
    return web.Response(status=204)


async def _permissions(request: web.Request) -> web.Response:
    return _json(views.permissions(await services(request).permissions.list(request[CALLER], server_in(request))))


async def _replace_permissions(request: web.Request) -> web.Response:
    ref, body = server_in(request), body_as(PermissionsBody, request)
    stored = await services(request).permissions.replace(request[CALLER], ref, entries_of(body), body.reason)
    return _json(views.permissions(stored))


async def _refresh_server(request: web.Request) -> web.Response:
    return _detail(request, await services(request).servers.refresh(request[CALLER], server_in(request)))


async def _replace_tools(request: web.Request) -> web.Response:
    ref, body = server_in(request), body_as(ToolsBody, request)
    given = body.model_fields_set
    if given.isdisjoint({"disabled_tools", "read_only_tools"}):
        raise Invalid("give disabledTools, readOnlyTools or both", field="disabled_tools")
    changed = await services(request).tools.replace(
        request[CALLER],
        ref,
        disabled=body.disabled_tools if "disabled_tools" in given else None,
        read_only=body.read_only_tools if "read_only_tools" in given else None,
        reason=body.reason,
        seen=seen_in(request),
    )
    return _detail(request, changed.server, ignored=changed.ignored)


async def _switch_tool(request: web.Request) -> web.Response:
    ref, tool, body = server_in(request), tool_in(request), body_as(SwitchBody, request)
    changed = await services(request).tools.switch(
        request[CALLER], ref, tool, enabled=body.enabled, reason=body.reason, seen=seen_in(request)
    )
    return _detail(request, changed.server)


async def _create_key(request: web.Request) -> web.Response:
    new = _new_key(body_as(NewKeyBody, request))
    return _json(views.made_key(await services(request).keys.create(request[CALLER], new)), status=201)


def _new_key(body: NewKeyBody) -> NewKey:
    return NewKey(
        name=body.name,
        scopes=tuple(body.scopes),
        user=body.user,
        groups=None if body.groups is None else frozenset(body.groups),
        roles=None if body.roles is None else frozenset(body.roles),
        expires_at=body.expires_at,
        tools=_wanted_tools(body),
    )


def _wanted_tools(body: NewKeyBody) -> tuple[ToolsOf, ...] | Literal["*"]:
    if body.tools == ALL_TOOLS:
        return ALL_TOOLS
    return tuple(ToolsOf(of.server, ALL_TOOLS if of.tools == ALL_TOOLS else frozenset(of.tools)) for of in body.tools)


async def _list_keys(request: web.Request) -> web.Response:
    return _json(KeyList(keys=[views.key(k) for k in await services(request).keys.list(request[CALLER])]))


async def _set_key_enabled(request: web.Request) -> web.Response:
    body = body_as(KeyPatchBody, request)
    key = await services(request).keys.set_enabled(
        request[CALLER], request.match_info["key"], enabled=body.enabled, reason=body.reason
    )
    return _json(views.key(key))


async def _newest_activity(request: web.Request) -> web.Response:
    rows = await services(request).activity.newest(request[CALLER])
    return _json(ActivityList(activity=[views.activity(row) for row in rows]))


async def _search(request: web.Request) -> web.Response:
    answer = await services(request).discovery.search(request[CALLER], wanted_in(request))
    return _json(views.search_answer(answer, services(request).public_url))


async def _mirrors(request: web.Request) -> web.Response:
    return _json(views.mirrors(await services(request).mirrors.report(request[CALLER])))


async def _reconcile_mirrors(request: web.Request) -> web.Response:
    return _json(views.mirrors(await services(request).mirrors.order(request[CALLER], Order.RECONCILE)), status=202)


async def _rebuild_mirrors(request: web.Request) -> web.Response:
    return _json(views.mirrors(await services(request).mirrors.order(request[CALLER], Order.REBUILD)), status=202)


async def _prepare_existing(request: web.Request) -> web.Response:
    await services(request).mirrors.prepare_existing(request[CALLER])
    return _json(views.mirrors(await services(request).mirrors.report(request[CALLER])))


def _detail(
    request: web.Request,
    server: Server,
    *,
    status: int = 200,
    ignored: frozenset[str] | None = None,
    observed: Sequence[Sighting] | None = None,
) -> web.Response:
    response = _json(views.detail(server, services(request).public_url, ignored, observed), status=status)
    response.headers["ETag"] = f'"{fingerprint(server.policy)}"'
    return response


def _json(model: BaseModel, *, status: int = 200) -> web.Response:
    body = model.model_dump_json(by_alias=True)
    return web.Response(text=body, status=status, content_type="application/json")

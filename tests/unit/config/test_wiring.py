"""The application as a whole, on the in-memory store: what is mounted where, and what an outage looks like."""

from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web

from config.address import Address
from config.serve import listen, serving
from config.settings import Settings
from config.wiring import App, build
from registry.memory import MemoryStore
from tests.waiting import asked_until

ADMIN = "sg_" + "a" * 43
CALL = {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def app(store: MemoryStore) -> App:
    return build(Settings(), store)


@pytest.fixture
async def http(app: App) -> AsyncIterator[aiohttp.ClientSession]:
    await app.keys.bootstrap(ADMIN)
    with listen(Address("127.0.0.1", 0)) as listener:
        base = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with serving(app.web, listener, grace_s=1), aiohttp.ClientSession(base) as session:
            yield session


async def _get(http: aiohttp.ClientSession, path: str, **fields: str) -> tuple[int, object]:
    async with http.get(path, headers=fields) as answer:
        return answer.status, await answer.json()


async def test_alive_and_ready_are_told(http: aiohttp.ClientSession) -> None:
    assert await _get(http, "/healthz") == (200, {"status": "alive"})

    async def is_complete() -> bool:
        status, told = await _get(http, "/readyz")
        assert status == 200
        return told == {"status": "ready", "store": "available", "discovery": "available"}

    assert not await is_complete(), "everything was indexed before anything could run"
    await asked_until(is_complete)


async def test_without_the_store_it_is_alive_but_not_ready(http: aiohttp.ClientSession, store: MemoryStore) -> None:
    store.available = False

    assert await _get(http, "/healthz") == (200, {"status": "alive"})
    assert await _get(http, "/readyz") == (503, {"status": "unready", "store": "unavailable"})


async def test_without_the_store_the_data_plane_refuses_and_names_the_callers_id(
    http: aiohttp.ClientSession, store: MemoryStore
) -> None:
    store.available = False

    async with http.post("/proxy/demo", json=CALL, headers={"Authorization": f"Bearer {ADMIN}"}) as answer:
        body = await answer.json()

    assert (answer.status, body["id"], body["error"]["code"]) == (503, 7, -32603)


async def test_without_the_store_the_api_answers_503(http: aiohttp.ClientSession, store: MemoryStore) -> None:
    store.available = False

    status, body = await _get(http, "/api/v1/servers", Authorization=f"Bearer {ADMIN}")

    assert (status, body) == (503, {"detail": "the store is unavailable", "code": "store_unavailable"})


async def test_the_api_is_mounted(http: aiohttp.ClientSession) -> None:
    assert await _get(http, "/api/v1/servers", Authorization=f"Bearer {ADMIN}") == (200, {"servers": []})


async def test_an_unknown_server_is_404_on_the_data_plane(http: aiohttp.ClientSession) -> None:
    async with http.post("/proxy/nothing", json=CALL, headers={"Authorization": f"Bearer {ADMIN}"}) as answer:
        assert answer.status == 404


@pytest.mark.parametrize("path", ["/", "/nothing", "/console/", "/mcp/"])
async def test_any_other_address_is_404_as_json(path: str, http: aiohttp.ClientSession) -> None:
    assert await _get(http, path) == (404, {"detail": "nothing is served at this address", "code": "not_found"})


async def test_a_method_that_is_not_served_is_405_and_names_those_that_are(http: aiohttp.ClientSession) -> None:
    async with http.delete("/healthz") as answer:
        assert (answer.status, answer.headers["Allow"]) == (405, "GET,HEAD")
        assert (await answer.json())["code"] == "method_not_allowed"


@pytest.mark.parametrize("path", ["/proxy/demo", "/api/v1/servers", "/nothing"])
async def test_a_foreign_host_is_421_everywhere(path: str, http: aiohttp.ClientSession) -> None:
    async with http.get(path, headers={"Host": "evil.example"}) as answer:
        assert answer.status == 421


@pytest.mark.parametrize("path", ["/proxy/demo", "/api/v1/servers", "/nothing"])
async def test_a_foreign_origin_is_403_everywhere(path: str, http: aiohttp.ClientSession) -> None:
    async with http.get(path, headers={"Origin": "https://evil.example"}) as answer:
        assert answer.status == 403


async def test_a_probe_needs_no_known_host(http: aiohttp.ClientSession) -> None:
    assert (await _get(http, "/readyz", Host="10.1.2.3:8470"))[0] == 200


async def _statuses(app: web.Application | None, hosts: str, *paths: str) -> list[int]:
    assert app is not None
    with listen(Address("127.0.0.1", 0)) as listener:
        base, fields = f"http://127.0.0.1:{listener.getsockname()[1]}", {"Host": hosts}
        async with serving(app, listener, grace_s=1), aiohttp.ClientSession(base) as session:
            answers = [await session.get(path, headers=fields) for path in paths]
            return [answer.status for answer in answers]


PATHS = ("/api/v1/servers", "/proxy/demo", "/mcp", "/healthz", "/readyz")


async def test_without_an_admin_listener_everything_is_on_the_one(store: MemoryStore) -> None:
    app = build(Settings(), store)

    assert app.admin is None
    assert await _statuses(app.web, "localhost", *PATHS) == [401, 401, 405, 200, 200]


async def test_with_an_admin_listener_the_api_is_there_alone_and_the_rest_is_not(store: MemoryStore) -> None:
    settings = Settings(admin_listen=Address("127.0.0.1", 1))

    assert await _statuses(build(settings, store).web, "localhost", *PATHS) == [404, 401, 405, 200, 200]
    assert await _statuses(build(settings, store).admin, "localhost", *PATHS) == [401, 404, 404, 200, 200]


async def test_the_admin_listener_has_its_own_names(store: MemoryStore) -> None:
    settings = Settings(admin_listen=Address("10.0.0.5", 1), public_url="https://mcp.example.com")

    for host, on_web, on_admin in (("mcp.example.com", 404, 421), ("10.0.0.5", 421, 401)):
        assert await _statuses(build(settings, store).web, host, "/api/v1/me") == [on_web]
        assert await _statuses(build(settings, store).admin, host, "/api/v1/me") == [on_admin]


async def test_two_listeners_share_one_set_of_use_cases_that_is_opened_and_closed_once(store: MemoryStore) -> None:
    app = build(Settings(admin_listen=Address("127.0.0.1", 1)), store)
    assert app.admin is not None
    opened: list[str] = []

    async def note(_app: web.Application) -> AsyncIterator[None]:
        opened.append("opened")
        yield
        opened.append("closed")

    app.web.cleanup_ctx.append(note)
    app.admin.on_shutdown.append(lambda _app: _appended(opened, "admin ended"))
    await app.keys.bootstrap(ADMIN)
    fields = {"Authorization": f"Bearer {ADMIN}"}
    with listen(Address("127.0.0.1", 0)) as first, listen(Address("127.0.0.1", 0)) as second:
        urls = [f"http://127.0.0.1:{listener.getsockname()[1]}" for listener in (first, second)]
        async with serving(app.web, first, (app.admin, second), grace_s=1), aiohttp.ClientSession() as http:
            made = await http.post(f"{urls[1]}/api/v1/keys", json={"name": "one"}, headers=fields)
            key = (await made.json())["key"]
            told = await http.post(f"{urls[0]}/mcp", json=CALL, headers={"Authorization": f"Bearer {key}"})
            assert (made.status, told.status) == (201, 200)

    assert opened == ["opened", "admin ended", "closed"]


async def _appended(to: list[str], what: str) -> None:
    to.append(what)

"""Names in passing lists, from a downstream's answer to what its owner is shown (`registry.observed`)."""

import json
from typing import Any

import pytest

from registry.model import DEFAULT_SCOPES, Scope
from tests import build
from tests.build import KEY
from tests.fake_downstream import Connection, FakeDownstream, Received, answer, chunked
from tests.integration.conftest import Plane, running
from tests.raw_client import LIST, post, request
from tests.waiting import asked_until

HIDDEN = "hidden from the registry"


def listing(*names: str) -> bytes:
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}).encode()


def manages(plane: Plane) -> None:
    """Ann's key may switch the tools of her server."""
    plane.store.state.keys["key-1"] = build.key(scopes=DEFAULT_SCOPES | {Scope.MANAGE})


async def shown(plane: Plane, path: str = "/servers/%2Flab/tools") -> Any:
    return (await plane.ask(request("GET", path=f"/api/v1{path}", key=KEY))).json


async def seen(plane: Plane, *names: str) -> list[dict[str, str]]:
    """What is shown, once it is these."""

    async def are_shown() -> bool:
        return [tool["name"] for tool in (await shown(plane))["observedTools"]] == list(names)

    await asked_until(are_shown)
    tools: list[dict[str, str]] = (await shown(plane))["observedTools"]
    return tools


STREAMED = [b"event: message\ndata: " + listing("b", HIDDEN) + b"\n\n"]


@pytest.mark.parametrize("script", [answer(listing("b", HIDDEN)), chunked(STREAMED)], ids=["JSON", "SSE"])
async def test_an_owner_sees_what_is_listed_to_others_alone_and_can_switch_it_off(script: Any) -> None:
    async with FakeDownstream(script) as downstream, running(downstream) as plane:
        manages(plane)
        plane.disable("b")
        assert (await shown(plane))["observedTools"] == []
        assert HIDDEN.encode() in (await plane.ask(post(LIST))).body
        [tool] = await seen(plane, HIDDEN)
        assert set(tool) == {"name", "firstSeenAt"}

        body = b'{"enabled": false}'
        head = ("Content-Type: application/json", f"Content-Length: {len(body)}")
        path = f"/api/v1/servers/%2Flab/tools/{HIDDEN.replace(' ', '%20')}"
        switched = await plane.ask(request("PUT", *head, path=path) + body)
        assert switched.json["retiredDisabledTools"] == [HIDDEN]
        assert HIDDEN.encode() not in (await plane.ask(post(LIST))).body


async def test_what_is_observed_is_for_the_tools_alone_and_for_who_may_switch_them(downstream: FakeDownstream) -> None:
    downstream.script = answer(listing(HIDDEN))
    async with running(downstream) as plane:
        manages(plane)
        await plane.ask(post(LIST))
        await seen(plane, HIDDEN)
        assert "observedTools" not in await shown(plane, "/servers/%2Flab")
        plane.store.state.keys["key-1"] = build.key()
        told = await shown(plane)
        assert ("observedTools" in told, HIDDEN in json.dumps(told)) == (False, False)


async def test_a_list_that_does_not_leave_is_not_heard(downstream: FakeDownstream) -> None:
    async with running(downstream) as plane:
        manages(plane)

        async def disables(received: Received, connection: Connection) -> None:
            plane.policy(enabled=False)
            await answer(listing(HIDDEN))(received, connection)

        downstream.script = disables
        assert (await plane.ask(post(LIST))).status == 404
        plane.policy(enabled=True)
        downstream.script = answer(listing("later"))
        await plane.ask(post(LIST))
        await seen(plane, "later")

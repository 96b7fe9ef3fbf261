"""Where downstreams may be: what is refused when it is set, and when it is connected to, by both clients."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from registry.access import Permit, use_tool
from registry.calls import ToolCall
from registry.destinations import Destinations
from registry.downstream import McpCatalogue, McpToolCaller, Network, lookup
from registry.egress import Egress, Entries
from registry.errors import DownstreamFailed
from registry.model import Scope
from tests import build
from tests.fake_downstream import FakeDownstream, answer
from tests.integration.conftest import Plane, running
from tests.names import fake_names
from tests.raw_client import Answer, call, post

CALL = post(call("a", '"the id"'))
METADATA = "169.254.169.254"
RULE = (
    "the address is a metadata address of a cloud (169.254.169.254/32), "
    "which is refused unless SLUICEGATE_EGRESS_ALLOW names it"
)
LINK_LOCAL = "the address is link-local (fe80::/10), which is refused unless SLUICEGATE_EGRESS_ALLOW names it"
DENIED = "the address is in 127.0.0.0/8, which SLUICEGATE_EGRESS_DENY names"


def told(reply: Answer) -> tuple[int, Any]:
    return reply.status, reply.json


UNREACHABLE = (
    502,
    {"jsonrpc": "2.0", "id": "the id", "error": {"code": -32603, "message": "the downstream cannot be reached"}},
)


async def asked(plane: Plane) -> tuple[tuple[int, Any], list[Any]]:
    """What the client hears of a call, and the causes in the log."""
    with capture_logs() as logs:
        reply = await plane.ask(CALL)
    return told(reply), [line["cause"] for line in logs if line["event"] == "exchange.failed"]


@pytest.mark.parametrize(
    "host", [METADATA, "2852039166", "0xa9.0xfe.0xa9.0xfe", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]"]
)
async def test_a_refused_address_is_not_connected_to_and_only_the_log_says_why(plane: Plane, host: str) -> None:
    plane.policy(url=f"http://{host}/mcp")

    assert await asked(plane) == (UNREACHABLE, [RULE])


async def test_a_zone_does_not_hide_an_address(plane: Plane) -> None:
    plane.policy(url="http://[fe80::1%25lo]/mcp")

    assert await asked(plane) == (UNREACHABLE, [LINK_LOCAL])


@pytest.mark.parametrize("host", ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.01", "[::ffff:127.0.0.1]"])
async def test_an_address_that_is_not_refused_is_connected_to_in_every_spelling(plane: Plane, host: str) -> None:
    plane.policy(url=f"http://{host}:{plane.downstream.port}/mcp")

    assert (await plane.ask(CALL)).status == 200


@pytest.mark.parametrize("host", ["127.0.0.1", "0x7f.1", "[::ffff:127.0.0.1]"])
async def test_a_denied_network_is_not_connected_to(downstream: FakeDownstream, host: str) -> None:
    async with running(downstream, egress_deny="127.0.0.0/8") as plane:
        plane.policy(url=f"http://{host}:{downstream.port}/mcp")

        assert await asked(plane) == (UNREACHABLE, [DENIED])
    assert downstream.connections == 0


async def test_an_allow_list_without_the_downstream_keeps_it_out(downstream: FakeDownstream) -> None:
    async with running(downstream, egress_allow="*.example,10.0.0.0/8") as plane:
        assert (await plane.ask(CALL)).status == 502
    assert downstream.connections == 0


async def test_an_allowed_name_is_connected_to(downstream: FakeDownstream, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(downstream, egress_allow="*.example") as plane:
        fake_names(monkeypatch, ["127.0.0.1"])
        plane.policy(url=f"http://good.example:{downstream.port}/mcp")

        assert (await plane.ask(CALL)).status == 200
    assert downstream.received[0].values("host") == [f"good.example:{downstream.port}"]


async def test_a_denied_name_is_not_looked_up(downstream: FakeDownstream, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(downstream, egress_deny="bad.example") as plane:
        names = fake_names(monkeypatch, ["127.0.0.1"])
        plane.policy(url=f"http://bad.example:{downstream.port}/mcp")

        assert await asked(plane) == (
            UNREACHABLE,
            ["the host is one of bad.example, which SLUICEGATE_EGRESS_DENY names"],
        )
    assert names.asked == []


async def test_a_name_that_changes_its_mind_is_refused_when_it_is_connected_to(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = fake_names(monkeypatch, ["127.0.0.1"], [METADATA])
    plane.store.state.keys["key-1"] = build.key(scopes=frozenset(Scope))

    registered = await plane.ask(registration("http://turn.example/mcp"))

    assert (registered.status, names.asked) == (201, ["turn.example", "turn.example"])  # when set, and for the refresh
    assert registered.json["refreshError"] == "the downstream could not be connected to"
    plane.policy(url="http://turn.example/mcp")
    assert await asked(plane) == (UNREACHABLE, [RULE])


async def test_the_address_that_was_judged_is_the_one_that_is_connected_to(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = fake_names(monkeypatch, ["127.0.0.1"], [METADATA])
    plane.policy(url=f"http://turn.example:{plane.downstream.port}/mcp")

    assert (await plane.ask(CALL)).status == 200
    assert names.asked == ["turn.example"]


async def test_of_a_name_with_a_good_and_a_bad_address_the_good_one_is_used(
    downstream: FakeDownstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = fake_names(monkeypatch, [METADATA, "fe80::1%1", "127.0.0.1"])
    async with running(downstream) as plane:
        plane.policy(url=f"http://both.example:{downstream.port}/mcp")
        assert (await plane.ask(CALL)).status == 200
    assert names.asked == ["both.example"]


async def test_a_name_that_does_not_resolve_is_told_from_one_that_is_refused(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_names(monkeypatch, [])
    plane.policy(url="http://nowhere.example/mcp")

    assert await asked(plane) == (UNREACHABLE, ["the downstream cannot be reached: its name cannot be resolved"])


async def test_a_port_where_nobody_listens_is_told_as_such(plane: Plane) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    plane.policy(url=f"http://127.0.0.1:{port}/mcp")

    [cause] = (await asked(plane))[1]
    assert cause.startswith("the downstream cannot be reached: ")
    assert "resolved" not in cause


def registration(url: str) -> bytes:
    body = {"serverName": "new", "path": "/new", "type": "streamable-http", "url": url}
    return post(json.dumps(body).encode(), path="/api/v1/servers")


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        (f"http://{METADATA}/latest", RULE),
        ("http://0xA9FEA9FE/latest", RULE),
        ("http://[::ffff:a9fe:a9fe]/latest", RULE),
        ("http://bad.example/mcp", LINK_LOCAL),
        (
            "https://metadata.google.internal/mcp",
            "the host is the metadata service of a cloud, which is refused unless SLUICEGATE_EGRESS_ALLOW has its name",
        ),
    ],
)
async def test_a_refused_address_is_not_registered_and_the_answer_names_the_rule(
    plane: Plane, url: str, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_names(monkeypatch, ["fe80::1%1"])
    plane.store.state.keys["key-1"] = build.key(scopes=frozenset(Scope))

    assert told(await plane.ask(registration(url))) == (
        422,
        {"detail": f"the url cannot be used: {rule}", "code": "invalid", "field": "url"},
    )


async def test_a_name_that_does_not_resolve_yet_is_registered(plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_names(monkeypatch, [])
    plane.store.state.keys["key-1"] = build.key(scopes=frozenset(Scope))

    assert (await plane.ask(registration("http://later.example/mcp"))).status == 201


async def test_who_may_not_register_does_not_learn_where_a_name_leads(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = fake_names(monkeypatch, ["fe80::1"])

    assert (await plane.ask(registration("http://bad.example/mcp"))).status == 403
    assert names.asked == []


Use = Callable[[Network, str], Awaitable[object]]


async def listed(network: Network, url: str) -> object:
    return await McpCatalogue(network=network, timeout_s=5).snapshot(build.policy(url=url))


async def called(network: Network, url: str) -> object:
    permit = use_tool(build.facts(server=build.policy(url=url)), "a")
    assert isinstance(permit, Permit)
    caller = McpToolCaller(lambda _: {}, network, timeout_s=5, connect_timeout_s=1)
    try:
        return await caller.call(permit, ToolCall({}, "ann"))
    finally:
        await caller.close()


async def failed(use: Use, network: Network, url: str) -> tuple[str, list[Any]]:
    """What the registry's client says, and the causes in the log."""
    with capture_logs() as logs, pytest.raises(DownstreamFailed) as caught:
        await use(network, url)
    return str(caught.value), list(dict.fromkeys(line["cause"] for line in logs if line["event"] == UNCONNECTED))


UNCONNECTED = "downstream.unreachable"
SAID = "the downstream could not be connected to"


@pytest.mark.parametrize("use", [listed, called])
@pytest.mark.parametrize("host", [METADATA, "2852039166", "[::ffff:169.254.169.254]", "bad.example"])
async def test_the_registrys_client_connects_to_no_refused_address(
    use: Use, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_names(monkeypatch, [METADATA])

    assert await failed(use, Network(), f"http://{host}/mcp") == (SAID, [RULE])


@pytest.mark.parametrize("use", [listed, called])
async def test_the_registrys_client_keeps_to_the_lists(use: Use, downstream: FakeDownstream) -> None:
    network = Network(Destinations(Egress(deny=Entries.of(["127.0.0.0/8"])), lookup))

    assert await failed(use, network, downstream.url) == (SAID, [DENIED])
    assert downstream.connections == 0


@pytest.mark.parametrize("use", [listed, called])
async def test_each_connection_of_the_registrys_client_goes_where_the_one_look_up_before_it_was_judged(
    use: Use, downstream: FakeDownstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    downstream.script = answer(b"", "", "401 Unauthorized")  # after which the library makes another connection
    names = fake_names(monkeypatch, [METADATA, "127.0.0.1"], [METADATA])

    said = await failed(use, Network(), f"http://turn.example:{downstream.port}/mcp")

    assert (downstream.connections, len(names.asked), said) == (1, 2, (SAID, [RULE]))


@pytest.mark.parametrize("use", [listed, called])
async def test_a_look_up_of_the_registrys_client_that_hangs_is_bounded_like_a_connection(
    use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_arguments: object, **_options: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", never)
    monkeypatch.setattr("registry.downstream.http.CONNECT_TIMEOUT_S", 0.2)

    said, causes = await failed(use, Network(), "http://slow.example/mcp")

    assert (said, causes) == (
        "the downstream could not be connected to in time",
        ["the host's name was not resolved in time"],
    )


@pytest.mark.parametrize("use", [listed, called])
async def test_the_registrys_client_tries_the_next_address_where_one_does_not_answer(
    use: Use, downstream: FakeDownstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    downstream.script = answer(b"", "", "401 Unauthorized")
    fake_names(monkeypatch, ["127.0.0.2", "127.0.0.1"])

    said, causes = await failed(use, Network(), f"http://two.example:{downstream.port}/mcp")

    assert (said, causes) == ("the downstream answered with HTTP status 401", [])


@pytest.mark.parametrize("use", [listed, called])
async def test_the_registrys_client_says_that_a_name_does_not_resolve(
    use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_names(monkeypatch, [])

    said, [cause] = await failed(use, Network(), "http://nowhere.example/mcp")

    assert said == SAID
    assert cause.startswith("the host's name cannot be resolved: ")


@pytest.mark.parametrize("use", [listed, called])
async def test_a_proxy_of_the_environment_is_not_used(
    use: Use, downstream: FakeDownstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    downstream.script = answer(b"", "", "401 Unauthorized")
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.getsockname()[1]}")

        said, _ = await failed(use, Network(), downstream.url)

    assert said == "the downstream answered with HTTP status 401"


async def test_a_look_up_gives_each_address_once_and_zones_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def getaddrinfo(*_arguments: object, **_options: object) -> list[Any]:
        rest = (socket.SOCK_STREAM, 6, "")
        four, six = (socket.AF_INET, *rest, ("10.0.0.1", 80)), (socket.AF_INET6, *rest, ("fe80::1", 80, 0, 3))
        return [six, four, four]

    monkeypatch.setattr("asyncio.BaseEventLoop.getaddrinfo", lambda _loop, *args, **more: getaddrinfo(*args, **more))

    assert await lookup("name.example", 80) == ["fe80::1%3", "10.0.0.1"]


async def test_what_cannot_be_a_host_name_does_not_resolve() -> None:
    with pytest.raises(OSError, match="no host name"):
        await lookup("x" * 64 + ".example", 80)

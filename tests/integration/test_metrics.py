"""GET /metrics of a running Sluicegate (DESIGN 1)."""

import asyncio

import pytest
from prometheus_client.parser import text_string_to_metric_families

from registry.model import Scope
from tests import build
from tests.fake_downstream import Connection, FakeDownstream, Received, head
from tests.integration.conftest import Plane, running
from tests.raw_client import LIST, Client, call, post, request


async def counted(plane: Plane) -> dict[tuple[str, ...], float]:
    """Samples by name and values of labels, as an admin sees them."""
    plane.store.state.keys["key-1"] = build.key(scopes=frozenset(Scope))
    answer = await plane.ask(request("GET", path="/metrics"))
    assert answer.status == 200
    families = text_string_to_metric_families(answer.body.decode())
    return {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}


async def test_what_passes_and_what_is_refused_is_counted(plane: Plane) -> None:
    plane.disable("b")
    for data in (post(call("a")), post(call("a")), post(call("b")), post(call("made up")), post(LIST)):
        await plane.ask(data)
    await plane.ask(post(call("a"), key="sg_" + "x" * 43))
    found = await counted(plane)
    expected = {
        ("sluicegate_decisions_total", "allowed"): 4,
        ("sluicegate_decisions_total", "tool_disabled"): 1,
        ("sluicegate_decisions_total", "key_invalid"): 1,
        ("sluicegate_tool_refusals_total", "/lab", "b"): 1,
        ("sluicegate_http_requests_total", "200", "proxy"): 5,
        ("sluicegate_http_requests_total", "401", "proxy"): 1,
        ("sluicegate_added_seconds_count",): 4,
        ("sluicegate_downstream_seconds_count",): 4,
    }
    assert {name: found.get(name) for name in expected} == expected
    assert found["sluicegate_policy_read_questions_sum",] >= 6


async def test_open_streams_are_counted_while_they_are_open(plane: Plane) -> None:
    async def silence(_request: Received, connection: Connection) -> None:
        connection.write(head())
        await asyncio.Event().wait()

    plane.downstream.script = silence
    async with await Client.connect(plane.port) as client:
        client.writer.write(request("GET", "Accept: text/event-stream"))
        await client.head()
        assert (await counted(plane))["sluicegate_open_streams",] == 1
    await plane.downstream.until(lambda downstream: not downstream.open_connections)
    assert (await counted(plane))["sluicegate_open_streams",] == 0


async def test_the_age_of_facts_that_are_used_again_is_observed(downstream: FakeDownstream) -> None:
    async with running(downstream, max_staleness_s=60) as plane:
        for _ in range(3):
            await plane.ask(post(call("a")))
        assert (await counted(plane))["sluicegate_policy_age_seconds_count",] >= 2


@pytest.mark.parametrize(
    ("scopes", "status", "code"),
    [
        (None, 401, "key_invalid"),
        (frozenset(Scope) - {Scope.ADMIN}, 403, "forbidden"),
        (frozenset({Scope.ADMIN}), 200, None),
    ],
)
async def test_metrics_are_for_admins(
    plane: Plane, scopes: frozenset[Scope] | None, status: int, code: str | None
) -> None:
    if scopes is not None:
        plane.store.state.keys["key-1"] = build.key(scopes=scopes)
    answer = await plane.ask(request("GET", path="/metrics", key=None if scopes is None else build.KEY))
    assert answer.status == status
    assert code is None or answer.json["code"] == code


async def test_two_keys_that_differ_are_an_error(plane: Plane) -> None:
    answer = await plane.ask(request("GET", "X-Sluicegate-Key: other", path="/metrics"))
    assert (answer.status, answer.json["code"]) == (400, "ambiguous_credentials")

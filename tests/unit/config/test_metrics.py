"""What is counted, and who may see it (DESIGN 1 and 5)."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from config import metrics as module
from config.metrics import Metrics
from registry.access import Reason, Refusal
from registry.mirroring import MirrorState, MirrorStatus
from tests.build import policy


def values(metrics: Metrics, name: str) -> dict[tuple[str, ...], float]:
    """By the values of the labels."""
    body = metrics.exposition().body
    assert isinstance(body, bytes)
    families = text_string_to_metric_families(body.decode())
    samples = (sample for family in families for sample in family.samples)
    return {tuple(sample.labels.values()): sample.value for sample in samples if sample.name == name}


def test_decisions_are_counted_by_reason() -> None:
    metrics = Metrics()
    metrics.decided(policy(), 3, ())
    metrics.decided(policy(), 0, (Refusal(Reason.TOOL_DISABLED, "t"), Refusal(Reason.SCOPE_WRITE, "u")))
    metrics.decided(None, 0, (Refusal(Reason.KEY_INVALID),))
    assert values(metrics, "sluicegate_decisions_total") == {
        ("allowed",): 3,
        ("tool_disabled",): 1,
        ("scope_write",): 1,
        ("key_invalid",): 1,
    }


def test_a_name_that_nobody_has_listed_makes_no_series_of_its_own() -> None:
    metrics = Metrics()
    server = policy(
        disabled_tools=frozenset({"off"}),
        retired_disabled_tools=frozenset({"gone"}),
        read_only_tools=frozenset({"look"}),
    )
    for name in ("off", "gone", "look", "made up", "made up too", "off"):
        metrics.decided(server, 0, (Refusal(Reason.TOOL_DISABLED, name),))
    assert values(metrics, "sluicegate_tool_refusals_total") == {
        (server.path, "off"): 2,
        (server.path, "gone"): 1,
        (server.path, "look"): 1,
        (server.path, "other"): 2,
    }


def test_there_are_no_more_series_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_TOOLS", 2)
    metrics = Metrics()
    server = policy(disabled_tools=frozenset("abcd"))
    for name in "abcda":
        metrics.decided(server, 0, (Refusal(Reason.TOOL_DISABLED, name),))
    assert values(metrics, "sluicegate_tool_refusals_total") == {
        (server.path, "a"): 2,
        (server.path, "b"): 1,
        ("other", "other"): 2,
    }


def test_times_reads_and_ages_are_observed() -> None:
    metrics = Metrics()
    metrics.relayed(0.0002, 0.02)
    metrics.read(32, 0.004)
    metrics.used_again(0.3)
    metrics.streams(1)
    metrics.streams(1)
    metrics.streams(-1)
    metrics.refreshed(True)
    metrics.refreshed(False)
    sums = {
        name: round(values(metrics, f"sluicegate_{name}_sum")[()], 6)
        for name in (
            *("added_seconds", "downstream_seconds", "policy_read_seconds"),
            *("policy_read_questions", "policy_age_seconds"),
        )
    }
    assert sums == {
        "added_seconds": 0.0002,
        "downstream_seconds": 0.02,
        "policy_read_seconds": 0.004,
        "policy_read_questions": 32,
        "policy_age_seconds": 0.3,
    }
    assert values(metrics, "sluicegate_open_streams") == {(): 1}
    assert values(metrics, "sluicegate_refreshes_total") == {("succeeded",): 1, ("failed",): 1}


def test_mirrors_are_shown_as_they_are_at_the_scrape() -> None:
    metrics = Metrics()
    statuses = [MirrorStatus("local", MirrorState.UP, objects=5, drift=1, pending=2, lag_s=0.5)]
    metrics.watch(lambda: statuses)
    assert values(metrics, "sluicegate_mirror_up") == {("local",): 1}
    statuses.append(MirrorStatus("weaviate", MirrorState.DOWN))
    assert values(metrics, "sluicegate_mirror_up") == {("local",): 1, ("weaviate",): 0}
    assert values(metrics, "sluicegate_mirror_lag_seconds")[("local",)] == 0.5


def test_two_in_one_process_do_not_count_into_each_other() -> None:
    one, other = Metrics(), Metrics()
    one.decided(policy(), 1, ())
    assert values(other, "sluicegate_decisions_total") == {}

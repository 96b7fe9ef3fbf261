"""The limit of open files is raised as far as the system lets us."""

import resource

import pytest
import structlog

from config import descriptors

ENDLESS = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "becomes", "is_told"),
    [
        (1_024, 4_096, 2_000, False),
        (1_024, ENDLESS, 2_000, False),
        (1_024, 1_500, 1_500, True),
        (1_500, 1_500, None, True),
        (2_000, 4_096, None, False),
        (ENDLESS, ENDLESS, None, False),
    ],
)
def test_the_soft_limit_is_raised_to_what_is_wanted_and_never_lowered(
    soft: int, hard: int, becomes: int | None, is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _kind: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _kind, given: limits.append(given))

    with structlog.testing.capture_logs() as log:
        descriptors.allow(2_000)

    assert limits == ([] if becomes is None else [(becomes, hard)])
    assert [line["event"] for line in log] == (["descriptors.few"] if is_told else [])


def test_this_system_takes_what_is_asked_of_it() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
        descriptors.allow(300)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (300, before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)

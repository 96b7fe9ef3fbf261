"""What a machine may lack: tests that need it are skipped by name, or fail where it is required."""

import os

import pytest


def need(name: str, *, present: bool) -> None:
    """Skip the test when `name` is not there; fail it when SLUICEGATE_REQUIRE (comma separated) lists it."""
    if present:
        return
    required = os.environ.get("SLUICEGATE_REQUIRE", "").split(",")  # noqa: TID251  the tests' own switch, no setting
    if name in required:
        pytest.fail(f"{name} is required (SLUICEGATE_REQUIRE) and missing")
    pytest.skip(f"{name} is missing on this machine")

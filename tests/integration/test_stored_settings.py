"""`registrySettings` as other programs may have left it."""

from typing import Any

import pytest

from registry.model import Passing
from registry.mongo.stored_settings import is_trusted, passing


def test_settings_are_read() -> None:
    stored = {"trusted": True, "listTtlMs": 5_000.0, "downstreamTimeoutS": 7, "passCookies": True}
    assert passing({"registrySettings": stored}) == Passing(5_000, 7.0, passes_cookies=True)
    assert is_trusted({"registrySettings": stored})


@pytest.mark.parametrize(
    "stored",
    [
        None,
        [],
        "x",
        {},
        {"trusted": 1, "listTtlMs": -1, "downstreamTimeoutS": 0, "passCookies": "true"},
        {"trusted": "true", "listTtlMs": True, "downstreamTimeoutS": True, "passCookies": 1},
        {"listTtlMs": 0.5, "downstreamTimeoutS": 86_401},
        {"listTtlMs": float("inf"), "downstreamTimeoutS": float("nan")},
        {"listTtlMs": "5", "downstreamTimeoutS": "5"},
    ],
)
def test_what_is_malformed_is_as_if_it_were_not_there(stored: Any) -> None:
    assert passing({"registrySettings": stored}) == Passing()
    assert not is_trusted({"registrySettings": stored})

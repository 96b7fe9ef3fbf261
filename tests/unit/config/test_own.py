"""Where Sluicegate itself is reached (DESIGN 2)."""

import socket

import pytest

from config.own import own_origins
from config.settings import Settings

LOOPBACK = {("localhost", 8470), ("127.0.0.1", 8470), ("::1", 8470)}


@pytest.mark.parametrize(
    ("settings", "own"),
    [
        ({}, LOOPBACK),
        ({"listen": "192.0.2.7:8470"}, {("192.0.2.7", 8470)}),
        ({"listen": "0.0.0.0:8470"}, {*LOOPBACK, ("0.0.0.0", 8470), (socket.gethostname().lower(), 8470)}),
        ({"public_url": "https://MCP.example/gw"}, {*LOOPBACK, ("mcp.example", 443)}),
        ({"admin_listen": "192.0.2.7:9000"}, {*LOOPBACK, ("192.0.2.7", 9000)}),
    ],
)
def test_each_address_of_the_settings_is_our_own(settings: dict[str, str], own: set[tuple[str, int]]) -> None:
    assert own_origins(Settings.model_validate(settings)) == own

"""Connections are counted; what happens on the wire is in tests/integration/test_limits.py."""

from aiohttp import web
from structlog.testing import capture_logs

from config.connections import DEFAULTS, Connections, Limits
from config.settings import Settings


async def _no_handler(_request: web.BaseRequest) -> web.StreamResponse:
    raise AssertionError("nothing is asked")


def test_the_defaults_are_those_of_the_settings() -> None:
    assert Limits.of(Settings()) == DEFAULTS


async def test_being_full_is_logged_once_until_a_tenth_is_free() -> None:
    connections = Connections(web.Server(_no_handler), Limits(max_connections=20))
    opened = [connections() for _ in range(21)]

    with capture_logs() as log:
        taken = [connections.enter(connection) for connection in opened]
        assert taken == [True] * 20 + [False]
        connections.leave(opened[0])
        assert [connections.enter(opened[0]), connections.enter(opened[20])] == [True, False]
        assert [line["event"] for line in log] == ["connections.full"]

        for connection in opened[:2]:
            connections.leave(connection)
        assert [connections.enter(connection) for connection in (*opened[:2], opened[20])] == [True, True, False]
        assert [line["event"] for line in log] == ["connections.full"] * 2


async def test_one_that_was_not_taken_in_makes_no_room() -> None:
    connections = Connections(web.Server(_no_handler), Limits(max_connections=1))
    first, second = connections(), connections()

    assert (connections.enter(first), connections.enter(second)) == (True, False)
    connections.leave(second)
    assert not connections.enter(second)

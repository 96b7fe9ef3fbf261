"""Logs: one way out for everything, and no credential on it."""

import io
import json
import logging
import time
from collections.abc import Iterator

import pytest
import structlog

from config import logs

KEY = "sg_" + "Az9_-" * 9


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_elsewhere_than_on_a_terminal_an_event_is_one_json_line() -> None:
    out = io.StringIO()
    logs.configure("info", "auto", out)

    structlog.get_logger("a").info("server.created", server_id="7")

    assert json.loads(out.getvalue()).items() >= {"event": "server.created", "server_id": "7", "level": "info"}.items()
    assert out.getvalue().count("\n") == 1


def test_on_a_terminal_an_event_is_readable() -> None:
    out = Terminal()
    logs.configure("info", "auto", out)

    structlog.get_logger("b").warning("store.lost", retry_after_s=2)

    assert "store.lost" in out.getvalue()
    assert not out.getvalue().startswith("{")


def test_the_format_that_is_set_wins_over_the_terminal() -> None:
    out = Terminal()
    logs.configure("info", "json", out)

    structlog.get_logger("c").info("a.b")

    assert json.loads(out.getvalue())["event"] == "a.b"


def test_records_of_the_standard_library_take_the_same_way_out() -> None:
    out = io.StringIO()
    logs.configure("info", "json", out)

    logging.getLogger("aiohttp.server").error("Error from %s", KEY)

    record = json.loads(out.getvalue())
    assert (record["event"], record["logger"], record["level"]) == ("Error from sg_***", "aiohttp.server", "error")


def test_less_than_the_level_is_not_logged() -> None:
    out = io.StringIO()
    logs.configure("warning", "json", out)

    structlog.get_logger("d").info("quiet")
    logging.getLogger("d").info("quiet")

    assert out.getvalue() == ""


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (KEY, "sg_***"),
        (f"key={KEY}!", "key=sg_***!"),
        ("Authorization: Bearer eyJh.b.c", "Authorization: Bearer ***"),
        ("basic dXNlcjpwYXNz", "basic ***"),
        ("mongodb://me:hunter2@db:27017/?x=1", "mongodb://***@db:27017/?x=1"),
        ("https://token@git.example/a", "https://***@git.example/a"),
        ("sg_short is not a key", "sg_short is not a key"),
        (KEY.encode(), "sg_***"),
        ({"fields": [("X-Sluicegate-Key", KEY)]}, {"fields": [["X-Sluicegate-Key", "sg_***"]]}),
        ({KEY: 1}, {"sg_***": 1}),
        (ValueError(KEY), "sg_***"),
        (7, 7),
        (None, None),
        (True, True),
    ],
)
def test_whatever_looks_like_a_credential_is_replaced_at_any_depth(value: object, shown: object) -> None:
    assert logs.scrub(None, "info", {"event": "e", "value": value}) == {"event": "e", "value": shown}


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_traceback_is_scrubbed_too(form: str) -> None:
    out = io.StringIO()
    logs.configure("info", "json" if form == "json" else "console", out)

    try:
        int(f"refused {KEY}")
    except ValueError:
        structlog.get_logger(f"e.{form}").exception("request.failed")

    assert "'refused sg_***'" in out.getvalue()
    assert KEY not in out.getvalue()


@pytest.mark.parametrize("name", ["a." * 30_000, "sg_" * 20_000, "Bearer " * 9_000, "a://" * 15_000, "x" * 3_000_000])
def test_a_long_name_costs_little_and_fills_no_disk(name: str) -> None:
    """A client chooses the name of the tool that it is refused."""
    out = io.StringIO()
    logs.configure("info", "json", out)
    begun = time.process_time()
    structlog.get_logger("cost").info("exchange.refused", tool=name)

    assert time.process_time() - begun < 0.5
    assert len(out.getvalue()) < 50_000

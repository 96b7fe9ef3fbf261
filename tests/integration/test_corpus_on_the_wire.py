"""The bypass corpus as raw bytes over real sockets, against a recorder (PROTOCOL 10.5).

Tools `danger` and its accented twin are off. Whatever a payload tries, nothing that any reader would run as one of them
arrives, and the next ordinary call works.
"""

import asyncio
import base64
import contextlib
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.build import KEY
from tests.integration.conftest import Plane
from tests.raw_client import Client, call, post

CORPUS = Path(__file__).parents[1] / "corpus" / "payloads.json"
PAYLOADS = {entry["id"]: entry for entry in json.loads(CORPUS.read_text("utf-8"))}
OFF = ("danger", "da\u00f1ger")

_FIRST_ANSWER_S = 1.0
_NEXT_ANSWER_S = 0.05
"""After so long no more is taken to come. What was to be run has arrived by then, or the last call shows it."""


def raw_bytes(entry: dict[str, Any], port: int, *, key: str = KEY) -> bytes:
    """The request, aimed at us: our path and key in place of the corpus's placeholders."""
    coded = entry.get("raw_http_b64")
    raw = base64.b64decode(coded) if coded else gzip.decompress(base64.b64decode(entry["raw_http_gz_b64"]))
    raw = b"".join(line for line in raw.splitlines(keepends=True) if b"{{SESSION}}" not in line)
    for placeholder, value in (("HOST", f"localhost:{port}"), ("PATHUP", "/PROXY/LAB"), ("PATHB", "proxy/lab")):
        raw = raw.replace(b"{{%s}}" % placeholder.encode(), value.encode())
    raw = raw.replace(b"{{PATH}}", b"/proxy/lab")
    key_line = b"X-Sluicegate-Key: " + key.encode() + b"\r\n"
    return re.sub(rb"(HTTP/1\.[01]\r?\n)", lambda match: match[1] + key_line, raw)


async def sent(port: int, raw: bytes) -> list[int]:
    """Send, and read the statuses of all that is answered; some payloads promise more than they send."""
    statuses: list[int] = []
    patience_s = _FIRST_ANSWER_S
    async with await Client.connect(port) as client:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            client.writer.write(raw)
            while True:
                async with asyncio.timeout(patience_s):
                    statuses.append((await client.answer()).status)
                patience_s = _NEXT_ANSWER_S
    return [status for status in statuses if status != 100]


def would_run(body: bytes) -> set[str]:
    """The tools that a lenient reader would run: any charset, last or first of duplicates, any case."""
    found: set[str] = set()
    for charset in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-7", "latin-1"):
        for pairs in (dict, lambda pairs: dict(reversed(pairs)), lambda p: {k.casefold(): v for k, v in p}):
            try:
                message = json.loads(body.decode(charset), object_pairs_hook=pairs)
            except (ValueError, RecursionError):
                continue
            found |= {
                str(name) for one in (message if isinstance(message, list) else [message]) for name in _called(one)
            }
    return found


def _called(message: Any) -> list[Any]:
    if isinstance(message, dict) and message.get("method") == "tools/call" and isinstance(message.get("params"), dict):
        return [message["params"].get("name")]
    return []


@pytest.mark.parametrize("payload", PAYLOADS)
async def test_no_payload_runs_a_tool_that_is_off(plane: Plane, payload: str) -> None:
    plane.disable(*OFF)
    entry = PAYLOADS[payload]

    statuses = await sent(plane.port, raw_bytes(entry, plane.port))

    for request in plane.downstream.received:
        assert not would_run(request.body) & set(OFF)
    if entry["negative_control"]:
        assert statuses == [200]
        assert len(plane.downstream.received) == 1
    plane.downstream.received.clear()
    assert (await plane.ask(post(call("safe")))).status == 200
    await asyncio.wait_for(plane.downstream.until(lambda downstream: len(downstream.received) == 1), 5)


@pytest.mark.parametrize("payload", ["A03", "C03", "D01", "F17", "H01", "K37"])
async def test_the_same_payload_arrives_while_the_tool_is_on(plane: Plane, payload: str) -> None:
    """So that the recorder and its lenient readers are known to see what there is to see."""
    await sent(plane.port, raw_bytes(PAYLOADS[payload], plane.port))

    (request,) = plane.downstream.received
    assert would_run(request.body) & set(OFF)

"""The bypass corpus against the pure pieces: nothing that would run a disabled tool is permitted (PROTOCOL 10).

Each payload is one HTTP request as raw bytes. Tools `danger` and `dañger` are disabled. Framing that an HTTP library
refuses never reaches the core and is judged on sockets, as are path, verb, Host, Origin and size.
"""

import base64
import gzip
import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from proxy.errors import ClientFault
from proxy.headers import check_mcp_fields, check_request_fields
from proxy.jsonrpc import parse
from proxy.paths import PREFIX, server_path, split_target
from proxy.policy import decide
from proxy.ports import Fields
from registry.access import Permit
from tests.build import facts, policy

CORPUS = Path(__file__).parents[2] / "corpus" / "payloads.json"
OFF = facts(server=policy(disabled_tools=frozenset({"danger", "da\u00f1ger"})))


class Outcome(StrEnum):
    """What the core makes of a request."""

    FORWARD = "forward"
    BLOCK = "block"
    REJECT = "reject"


OTHERWISE = {
    "A31": (Outcome.BLOCK, "its size is the transport's to refuse"),
    "B13": (Outcome.REJECT, "without a method it is no message"),
    "C20": (Outcome.REJECT, "no store can hold that name, so not knowing means refusing"),
    "H03": (Outcome.REJECT, "header and body disagree: -32020, whichever of the two is disabled"),
}
"""Where DESIGN asks for something else than the corpus's own verdict, and why."""

REFUSED_BEFORE = {
    "A07": "id null",
    "A10": "id true",
    "A11": "id an object",
    "D08": "a batch with mirrored headers",
    "G39": "two session ids",
    "G42": "misleading mirrors on a legacy call",
    "H02": "mirror of another name",
    "H04": "mirror of another method",
    "H09": "sentinel in upper case",
    "H11": "two mirrors of the name",
    "H12": "two mirrors of the name",
    "H15": "two versions",
    "H18": "two version fields",
    "H32": "raw UTF-8 in a mirror",
    "H34": "mirror in another normal form",
    "H36": "base64 that is not canonical",
    "I27": "Connection lists end-to-end fields",
}
"""Payloads to block that are ambiguous besides: rejected before the name is asked for."""


@dataclass(frozen=True)
class Payload:
    """One request of the corpus: `ran_on` are servers that ran a disabled tool for it."""

    id: str
    category: str
    verdict: str
    ran_on: tuple[str, ...]
    raw: bytes

    @property
    def reaches_the_core(self) -> bool:
        """False for what the HTTP library refuses by framing or method."""
        return not (self.verdict == "refused by aiohttp" and self.category in {"framing", "smuggling", "verb"})


def _payload(entry: dict[str, Any]) -> Payload:
    coded = entry.get("raw_http_b64")
    raw = base64.b64decode(coded) if coded else gzip.decompress(base64.b64decode(entry["raw_http_gz_b64"]))
    ran_on = tuple(entry["ran_a_disabled_tool_on"])
    return Payload(entry["id"], entry["category"], entry["strict_verdict"], ran_on, raw)


PAYLOADS = [_payload(entry) for entry in json.loads(CORPUS.read_text("utf-8"))]
JUDGED = [payload for payload in PAYLOADS if payload.reaches_the_core]


def _split(raw: bytes) -> tuple[str, Fields, bytes]:
    """The target, the fields and the body, as an HTTP library hands them on."""
    head, _, body = raw.lstrip(b"\r\n").partition(b"\r\n\r\n")
    request_line, *lines = head.decode("utf-8", "surrogateescape").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    fields = tuple((name, value.strip(" \t")) for name, _, value in pairs)
    is_chunked = any(name == "Transfer-Encoding" and value.lower().endswith("chunked") for name, value in fields)
    return request_line.split(" ")[1], fields, _unchunked(body) if is_chunked else body


def _unchunked(body: bytes) -> bytes:
    whole = b""
    size_line, _, rest = body.partition(b"\r\n")
    while size := int(size_line.partition(b";")[0], 16):
        whole += rest[:size]
        size_line, _, rest = rest[size + 2 :].partition(b"\r\n")
    return whole


def _outcome(raw: bytes) -> Outcome:
    _, fields, body = _split(raw)
    try:
        check_request_fields(fields)
        messages = parse(body)
        check_mcp_fields(fields, messages)
    except ClientFault:
        return Outcome.REJECT
    verdicts = [decide(OFF, message) for message in messages.messages]
    return Outcome.FORWARD if all(isinstance(verdict, Permit) for verdict in verdicts) else Outcome.BLOCK


def _expected(payload: Payload) -> Outcome:
    if payload.id in OTHERWISE:
        return OTHERWISE[payload.id][0]
    if payload.id in REFUSED_BEFORE:
        return Outcome.REJECT
    same = {"nobody": Outcome.BLOCK, "refused by aiohttp": Outcome.REJECT}
    return same.get(payload.verdict) or Outcome(payload.verdict)


def test_the_corpus_is_whole() -> None:
    assert len(PAYLOADS) == 207
    assert len(JUDGED) == 189
    assert {payload.id for payload in JUDGED} >= OTHERWISE.keys() | REFUSED_BEFORE.keys()
    assert {payload.verdict for payload in PAYLOADS if payload.id in REFUSED_BEFORE} == {"block"}


@pytest.mark.parametrize("payload", JUDGED, ids=lambda payload: payload.id)
def test_a_payload_has_the_outcome_that_the_design_asks_for(payload: Payload) -> None:
    assert _outcome(payload.raw) is _expected(payload)


RAN = [payload for payload in JUDGED if payload.ran_on]


@pytest.mark.parametrize("payload", RAN, ids=lambda payload: payload.id)
def test_what_ran_a_disabled_tool_anywhere_is_not_forwarded(payload: Payload) -> None:
    assert _outcome(payload.raw) is not Outcome.FORWARD


PLACEHOLDERS = {
    "{{PATHUP}}": "/PROXY/LAB/MCP",
    "{{PATHB}}": "proxy/lab/mcp",
    "{{PATH}}": "/proxy/lab/mcp",
    "{{HOST}}": "127.0.0.1",
}
OF_PATHS = [payload for payload in PAYLOADS if payload.category == "path"]
REACH_THE_SERVER = {"K37"}
"""A query: the only spelling among them that is the same address."""


@pytest.mark.parametrize("payload", OF_PATHS, ids=lambda payload: payload.id)
def test_an_odd_spelling_of_an_address_does_not_mean_the_same_server(payload: Payload) -> None:
    raw, _, _ = _split(payload.raw)
    for placeholder, text in PLACEHOLDERS.items():
        raw = raw.replace(placeholder, text)

    target = split_target(raw)

    below = target is not None and target.path.startswith(PREFIX + "/")
    found = server_path(target.path.removeprefix(PREFIX)) if target is not None and below else None
    assert (found == "/lab") is (payload.id in REACH_THE_SERVER)

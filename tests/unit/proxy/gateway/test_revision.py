"""Which revision a request is read by, and what each asks of it."""

import json
from typing import Any

import pytest

from proxy import jsonrpc
from proxy.errors import HeaderMismatch, InvalidParams, InvalidRequest, ProxyError, UnsupportedVersion
from proxy.gateway.revision import HANDSHAKE, MODERN, SPOKEN, Era, era_of, negotiated, revision_of
from proxy.ports import Fields

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
RESPONSE = {"jsonrpc": "2.0", "id": 1, "result": {}}


def request(method: str = "tools/list", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


def notification(**params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/x", "params": params}


def fields(version: str | None, **more: str) -> Fields:
    lines = {} if version is None else {"MCP-Protocol-Version": version}
    return tuple((name.replace("_", "-"), value) for name, value in (lines | more).items())


def read(lines: Fields, *messages: Any) -> str:
    """The revision of one message, or of a batch when they are several."""
    content = messages[0] if len(messages) == 1 else list(messages)
    return revision_of(lines, jsonrpc.parse(json.dumps(content).encode()))


def failed(lines: Fields, *messages: Any) -> tuple[type[ProxyError], str | None]:
    with pytest.raises(ProxyError) as caught:
        read(lines, *messages)
    return type(caught.value), caught.value.id


def test_four_revisions_are_spoken() -> None:
    assert SPOKEN == ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
    assert {revision: era_of(revision) for revision in SPOKEN} == {
        **dict.fromkeys(HANDSHAKE, Era.HANDSHAKE),
        **dict.fromkeys(MODERN, Era.MODERN),
    }


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2024-11-05", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("", "2025-11-25"),
        (None, "2025-11-25"),
    ],
)
def test_a_handshake_is_answered_with_what_was_asked_for_or_else_the_newest(asked: str | None, answered: str) -> None:
    """MCP 2025-11-25 basic/lifecycle, version negotiation; 2026-07-28 has no handshake."""
    assert negotiated(asked) == answered


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_the_field_names_the_revision(revision: str) -> None:
    assert read(fields(revision), request()) == revision
    assert read(fields(revision), RESPONSE) == revision


def test_a_request_without_the_field_is_of_the_first_revision() -> None:
    """MCP 2025-06-18 basic/transports: without the field 2025-03-26 is to be assumed."""
    assert read((), request()) == "2025-03-26"


@pytest.mark.parametrize("version", ["2024-11-05", "2099-01-01", "", "2025-03-26, 2025-06-18"])
def test_an_unknown_version_is_told_those_that_are_spoken(version: str) -> None:
    """MCP 2026-07-28: -32022 with `data.supported` and `data.requested`."""
    with pytest.raises(UnsupportedVersion) as caught:
        read(fields(version), request())

    assert (caught.value.status, caught.value.code, caught.value.id) == (400, -32022, "7")
    assert caught.value.data == {"supported": list(SPOKEN), "requested": version}


def test_a_batch_is_of_the_first_revision_alone() -> None:
    """MCP 2025-03-26 has batches, 2025-06-18 removed them."""
    assert read(fields("2025-03-26"), request(), request()) == "2025-03-26"
    assert read((), request(), RESPONSE) == "2025-03-26"


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_a_batch_of_another_revision_is_refused(revision: str) -> None:
    assert failed(fields(revision), request(_meta=META), request(_meta=META)) == (InvalidRequest, None)


# The body of a handshake revision


@pytest.mark.parametrize("meta", [None, 5, {}, {"io.modelcontextprotocol/protocolVersion": 5}])
def test_an_envelope_is_nothing_to_a_handshake_revision(meta: Any) -> None:
    assert read(fields("2025-11-25"), request(_meta=meta)) == "2025-11-25"


@pytest.mark.parametrize("version", [None, "2025-11-25"])
def test_a_body_of_2026_does_not_go_by_an_older_field(version: str | None) -> None:
    """Two readers, one of the field and one of the body, must not take it for two revisions."""
    assert failed(fields(version), request(_meta=META)) == (HeaderMismatch, "7")
    assert failed(fields(version), notification(_meta=META)) == (HeaderMismatch, None)


# The body of 2026-07-28


def test_a_request_of_2026_has_its_envelope_and_its_fields() -> None:
    lines = fields("2026-07-28", Mcp_Method="tools/list")
    assert read(lines, request(_meta=META)) == "2026-07-28"
    named = fields("2026-07-28", Mcp_Method="tools/call", Mcp_Name="t")
    assert read(named, request("tools/call", name="t", _meta=META)) == "2026-07-28"


def test_a_notification_or_response_of_2026_needs_neither() -> None:
    assert read(fields("2026-07-28"), notification()) == "2026-07-28"
    assert read(fields("2026-07-28"), RESPONSE) == "2026-07-28"


@pytest.mark.parametrize(
    "meta",
    [
        None,
        5,
        {},
        {"io.modelcontextprotocol/clientCapabilities": {}},
        {"io.modelcontextprotocol/protocolVersion": "2026-07-28"},
        {**META, "io.modelcontextprotocol/clientCapabilities": None},
        {**META, "io.modelcontextprotocol/clientCapabilities": []},
        {**META, "io.modelcontextprotocol/protocolVersion": 20260728},
    ],
)
def test_an_incomplete_envelope_is_refused(meta: Any) -> None:
    """MCP 2026-07-28 basic: what is required and missing is -32602 with status 400."""
    assert failed(fields("2026-07-28", Mcp_Method="tools/list"), request(_meta=meta)) == (InvalidParams, "7")


@pytest.mark.parametrize("more", [{}, {"Mcp_Name": "t"}, {"Mcp_Method": "tools/call"}])
def test_a_missing_mirror_is_refused(more: dict[str, str]) -> None:
    """MCP 2026-07-28 basic/transports: Mcp-Method on every request, Mcp-Name on a call."""
    call = request("tools/call", name="t", _meta=META)
    assert failed(fields("2026-07-28", **more), call) == (HeaderMismatch, "7")

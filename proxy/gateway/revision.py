"""Which revision a request is read by, and whether it keeps the rules of that revision. Pure.

Source: MCP 2026-07-28 basic/transports and basic/versioning; 2025-03-26 to 2025-11-25 basic/transports; PROTOCOL 1.3,
1.4 and 2. The header field decides, as in the official SDK; what it says must be what the body says.
"""

import enum
from collections.abc import Mapping
from typing import Any

from mcp_types.version import LATEST_HANDSHAKE_VERSION, MODERN_PROTOCOL_VERSIONS

from proxy import headers
from proxy.errors import HeaderMismatch, InvalidParams, InvalidRequest, UnsupportedVersion
from proxy.jsonrpc import VERSION_KEY, Body, Message, Request, Response
from proxy.jsontext import string
from proxy.ports import Fields

HANDSHAKE = ("2025-03-26", "2025-06-18", "2025-11-25")
"""Revisions of Streamable HTTP that begin with `initialize`."""

MODERN = tuple(MODERN_PROTOCOL_VERSIONS)

SPOKEN = (*HANDSHAKE, *MODERN)

_ASSUMED = "2025-03-26"
"""Of a request without the field: the first revision of Streamable HTTP had none."""

_CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
_NAMED = {"tools/call": "name"}


class Era(enum.Enum):
    """How requests are framed."""

    HANDSHAKE = enum.auto()
    MODERN = enum.auto()


def era_of(revision: str) -> Era:
    """The era of a revision that is spoken."""
    return Era.MODERN if revision in MODERN else Era.HANDSHAKE


def negotiated(asked: str | None) -> str:
    """The revision that an `initialize` is answered with: the one asked for, else the newest of its kind."""
    return asked if asked in HANDSHAKE else LATEST_HANDSHAKE_VERSION


def revision_of(fields: Fields, body: Body) -> str:
    """The revision that the whole body is read by.

    Args:
        fields: after `headers.check_request_fields` and `headers.check_mcp_fields`.

    Raises:
        UnsupportedVersion: one that is not spoken; carries the id of a single request, and those that are.
        HeaderMismatch, InvalidParams: a rule of 2026-07-28 is not kept.
        InvalidRequest: a batch in a revision that has none.
    """
    named = headers.values(fields, "mcp-protocol-version")
    revision = named[0] if named else _ASSUMED
    if revision not in SPOKEN:
        supported = {"supported": list(SPOKEN), "requested": revision}
        raise UnsupportedVersion("this protocol version is not spoken here", id=body.only_id, data=supported)
    if body.is_batch and named and revision != _ASSUMED:
        raise InvalidRequest(f"revision {revision} has no batches")
    for message in body.messages:
        _check(fields, message, revision)
    return revision


def _check(fields: Fields, message: Message, revision: str) -> None:
    if isinstance(message, Response):
        return
    meta = message.params.get("_meta")
    claimed = string(meta.get(VERSION_KEY)) if isinstance(meta, Mapping) else None
    id_text = message.id if isinstance(message, Request) else None
    if era_of(revision) is Era.HANDSHAKE:
        if claimed in MODERN:
            raise HeaderMismatch("the MCP-Protocol-Version field does not match the body", id=id_text)
    elif isinstance(message, Request):
        _check_modern(fields, message, claimed, meta)


def _check_modern(fields: Fields, request: Request, claimed: str | None, meta: Any) -> None:
    if claimed is None or not isinstance(meta, Mapping) or not isinstance(meta.get(_CAPABILITIES_KEY), Mapping):
        raise InvalidParams(f"_meta needs {VERSION_KEY} and {_CAPABILITIES_KEY}", id=request.id)
    needed = ["mcp-method"] + (["mcp-name"] if request.method in _NAMED else [])
    for name in needed:
        if not headers.values(fields, name):
            raise HeaderMismatch(f"the {name} field is missing", id=request.id)

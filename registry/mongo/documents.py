"""Documents as they are stored, and the values that they stand for.

Source: DESIGN 5. These are the collections of existing registries: every field may be missing, and what another program
wrote may be malformed. A policy that cannot be read becomes a server with a `fault`, never an exception.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bson import ObjectId
from bson.errors import InvalidId

from registry.model import Server, ServerPolicy, ServerType, Tool
from registry.mongo.client import as_utc
from registry.paths import path_fault

Doc = Mapping[str, Any]

DISABLED = "registryDisabledTools"
RETIRED = "registryRetiredDisabledTools"
READ_ONLY = "registryReadOnlyTools"
REVISION = "registryPolicyRevision"
TOOLS = "registryTools"
CAPABILITIES = "registryCapabilities"
REFRESHED_AT = "registryRefreshedAt"
REFRESH_ERROR = "registryRefreshError"
RESOURCE_TYPE = "mcpServer"
SHARED_PATH = "two servers are stored under this path"

POLICY_FIELDS = {
    "path": 1,
    "config.url": 1,
    "config.type": 1,
    "config.enabled": 1,
    DISABLED: 1,
    RETIRED: 1,
    READ_ONLY: 1,
    REVISION: 1,
    "registrySettings.trusted": 1,
    f"{TOOLS}.name": 1,
    f"{TOOLS}.annotations": 1,
}
"""The fields that decide, as a projection; the tools themselves can be megabytes."""


def any_id(text: str) -> list[Any]:
    """The forms that an id may be stored in: as text, and as an ObjectId where it can be one."""
    try:
        return [text, ObjectId(text)]
    except InvalidId:
        return [text]


def server_policy(doc: Doc) -> ServerPolicy:
    """The policy of one `mcpservers` document, whole or projected to POLICY_FIELDS."""
    config = _mapping(doc.get("config"))
    lists = {name: _names(doc, name) for name in (DISABLED, RETIRED, READ_ONLY)}
    return ServerPolicy(
        server_id=str(doc["_id"]),
        path=_text(doc.get("path")),
        url=_text(config.get("url")),
        enabled=config.get("enabled", True) is True,
        disabled_tools=lists[DISABLED] or frozenset(),
        retired_disabled_tools=lists[RETIRED] or frozenset(),
        read_only_tools=lists[READ_ONLY] or frozenset(),
        declared_read_only=frozenset(tool.name for tool in _stored_tools(doc) if tool.declares_read_only),
        trusted=_mapping(doc.get("registrySettings")).get("trusted") is True,
        revision=revision if isinstance(revision := doc.get(REVISION), int) else 0,
        fault=_fault(doc, config, lists),
    )


def _fault(doc: Doc, config: Doc, lists: Mapping[str, frozenset[str] | None]) -> str | None:
    if (fault := path_fault(doc.get("path"))) is not None:
        return fault
    if unreadable := [name for name, names in lists.items() if names is None]:
        return f"{unreadable[0]} is not a list of names"
    if not isinstance(config.get("url"), str):
        return "config.url is not a text"
    if not isinstance(config.get("enabled", True), bool):
        return "config.enabled is not a boolean"
    if config.get("type", ServerType.STREAMABLE_HTTP) != ServerType.STREAMABLE_HTTP:
        return "servers of this type are not supported yet"
    return None


def _names(doc: Doc, field: str) -> frozenset[str] | None:
    """A list of names; missing is empty, anything else is None."""
    value = doc.get(field, [])
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return frozenset(value)
    return None


def server(doc: Doc) -> Server:
    """One `mcpservers` document."""
    config, policy = _mapping(doc.get("config")), server_policy(doc)
    error = doc.get(REFRESH_ERROR)
    refreshed_at = doc.get(REFRESHED_AT)
    return Server(
        id=policy.server_id,
        name=_text(doc.get("serverName")),
        path=policy.path,
        url=policy.url,
        type=_text(config.get("type")) or ServerType.STREAMABLE_HTTP.value,
        policy=policy,
        title=_text(config.get("title")),
        description=_text(config.get("description")),
        tools=tuple(_stored_tools(doc)) if TOOLS in doc else tuple(_foreign_tools(config)),
        capabilities=_from_json(doc.get(CAPABILITIES)),
        snapshot_good=refreshed_at is not None and error is None,
        refreshed_at=None if refreshed_at is None else as_utc(refreshed_at),
        refresh_error=error if isinstance(error, str) else None,
    )


def _stored_tools(doc: Doc) -> Iterable[Tool]:
    """Our own entries; in a projection they have a name and annotations alone."""
    for entry in _list(doc.get(TOOLS)):
        if isinstance(entry, Mapping) and isinstance(name := entry.get("name"), str):
            yield Tool(name, _from_json(entry.get("definition")) or {"annotations": entry.get("annotations")})


def _foreign_tools(config: Doc) -> Iterable[Tool]:
    """What an existing registry knows of its tools."""
    for entry in _mapping(config.get("toolFunctions")).values():
        function = _mapping(_mapping(entry).get("function"))
        name = _mapping(entry).get("mcpToolName", function.get("name"))
        if isinstance(name, str):
            described = {"description": function.get("description"), "inputSchema": function.get("parameters")}
            yield Tool(name, {"name": name, **described})


def shared(found: Server) -> Server:
    """The server, refused because another one is stored under its path."""
    return replace(found, policy=replace(found.policy, fault=SHARED_PATH))


def json_text(value: Mapping[str, Any]) -> str:
    """A mapping as text, so that it comes back equal whatever it holds."""
    return json.dumps(value)


def tool_entries(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """`registryTools`: the name and what decides as fields, the whole definition as JSON text.

    As text it comes back equal whatever it holds: keys with dots, `$schema`, integers beyond 64 bits.
    """
    return [
        {
            "name": tool.name,
            "annotations": {"readOnlyHint": tool.declares_read_only},
            "definition": json_text(tool.definition),
        }
        for tool in tools
    ]


def tool_functions(tools: Sequence[Tool], server_name: str) -> dict[str, Any]:
    """`config.toolFunctions`, for the programs of an existing registry; ours read `registryTools`."""
    return {
        _function_key(tool.name, server_name): {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": _storable(tool.input_schema),
            },
            "mcpToolName": tool.name,
        }
        for tool in tools
    }


def _function_key(tool: str, server_name: str) -> str:
    """`<tool>_mcp_<server>`; NUL, which no key can hold, is escaped, and then so is `%`."""
    key = f"{tool}_mcp_{server_name}"
    return key.replace("%", "%25").replace("\0", "%00") if "\0" in key else key


def _storable(value: Any) -> Any:
    """The value with what BSON cannot hold spelled otherwise: NUL in a key, an integer beyond 64 bits."""
    match value:
        case Mapping():
            return {key.replace("\0", "%00"): _storable(item) for key, item in value.items()}
        case list():
            return [_storable(item) for item in value]
        case int() if not -(2**63) <= value < 2**63:
            return float(value) if abs(value) < 10**300 else str(value)
    return value


def _mapping(value: Any) -> Doc:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _from_json(text: Any) -> Mapping[str, Any]:
    try:
        return _mapping(json.loads(text)) if isinstance(text, str) else {}
    except ValueError:
        return {}

"""Documents as they are stored, and the values that they stand for.

Source: DESIGN 5. These are the collections of existing registries: every field may be missing, and what another program
wrote may be malformed. A policy that cannot be read becomes a server with a `fault`, never an exception.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from bson import ObjectId

from registry.entries import Server, ServerType, Tool
from registry.model import ServerPolicy
from registry.mongo import stored_settings
from registry.mongo.client import as_utc
from registry.mongo.stored_settings import CREDENTIALS, SETTINGS
from registry.mongo.values import Doc, whole_number
from registry.paths import SHARED_PATH, path_fault

DISABLED = "registryDisabledTools"
RETIRED = "registryRetiredDisabledTools"
READ_ONLY = "registryReadOnlyTools"
REVISION = "registryPolicyRevision"
ACCESS_REVISION = "registryAccessRevision"
TOOLS = "registryTools"
DECLARED = "registryDeclaredReadOnly"
CAPABILITIES = "registryCapabilities"
REFRESHED_AT = "registryRefreshedAt"
REFRESH_ERROR = "registryRefreshError"
RESOURCE_TYPE = "mcpServer"

POLICY_FIELDS = {
    "path": 1,
    "config.url": 1,
    "config.type": 1,
    "config.enabled": 1,
    DISABLED: 1,
    RETIRED: 1,
    READ_ONLY: 1,
    REVISION: 1,
    SETTINGS: 1,
    DECLARED: 1,
}
"""The fields that decide, as a projection. None grows with the number of tools, whose definitions can be megabytes."""


_MAX_DEPTH = 64
"""Levels of a schema that are stored as they are. MongoDB refuses documents of over 100 levels, with all around it."""

_MAX_REF_CHARS = 1_000
"""Of an id or a path that is looked up; what is stored is far shorter."""

_ESCAPED_NUL = re.compile("%(?=(?:25)*00)")


def is_storable(text: str) -> bool:
    """False for a lone surrogate, which has no UTF-8 form: the driver cannot even ask for it."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def any_id(text: str) -> list[Any]:
    """The forms that an id may be stored in: as text and, last, as an ObjectId where it is one's own spelling."""
    if len(text) > _MAX_REF_CHARS:
        return []  # nobody's, and megabytes of it would hold up the read that it shares with others
    if ObjectId.is_valid(text) and str(ObjectId(text)) == text:
        return [text, ObjectId(text)]
    return [text] if is_storable(text) else []


def shared_paths(docs: Iterable[Doc]) -> Collection[str]:
    """The paths that more than one of these documents hold."""
    counts = Counter(path for doc in docs if isinstance(path := doc.get("path"), str))
    return {path for path, count in counts.items() if count > 1}


def server_policy(doc: Doc, shared: Collection[str] = ()) -> ServerPolicy:
    """The policy of one `mcpservers` document, whole or projected to POLICY_FIELDS.

    A path in `shared` is a fault.
    """
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
        declared_read_only=_names(doc, DECLARED) or frozenset(),
        trusted=stored_settings.is_trusted(doc),
        credentials=stored_settings.credentials(doc) or (),
        passing=stored_settings.passing(doc),
        revision=whole_number(doc.get(REVISION)) or 0,
        fault=SHARED_PATH if doc.get("path") in shared else _fault(doc, config, lists),
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
    if stored_settings.credentials(doc) is None:
        return f"{CREDENTIALS} cannot be read"
    if config.get("type", ServerType.STREAMABLE_HTTP) != ServerType.STREAMABLE_HTTP:
        return "servers of this type are not supported yet"
    return None


def _names(doc: Doc, field: str) -> frozenset[str] | None:
    """A list of names; missing is empty, anything else is None."""
    value = doc.get(field, [])
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return frozenset(value)
    return None


def server(doc: Doc, shared: Collection[str] = ()) -> Server:
    """One `mcpservers` document; a path in `shared` is a fault."""
    config, policy = _mapping(doc.get("config")), server_policy(doc, shared)
    error, refreshed_at = doc.get(REFRESH_ERROR), doc.get(REFRESHED_AT)
    refreshed_at = as_utc(refreshed_at) if isinstance(refreshed_at, datetime) else None
    return Server(
        id=policy.server_id,
        name=_text(doc.get("serverName")),
        path=policy.path,
        url=policy.url,
        type=_text(config.get("type")) or ServerType.STREAMABLE_HTTP.value,
        policy=policy,
        title=_text(config.get("title")),
        description=_text(config.get("description")),
        tags=tuple(tag for tag in _list(doc.get("tags")) if isinstance(tag, str)),
        tools=tuple(_stored_tools(doc)) if TOOLS in doc else tuple(_foreign_tools(config)),
        capabilities=_from_json(doc.get(CAPABILITIES)),
        snapshot_good=refreshed_at is not None and error is None,
        refreshed_at=refreshed_at,
        refresh_error=error if isinstance(error, str) else None,
    )


def _stored_tools(doc: Doc) -> Iterable[Tool]:
    """Our own entries."""
    for entry in _list(doc.get(TOOLS)):
        if isinstance(entry, Mapping) and isinstance(name := entry.get("name"), str):
            yield Tool(name, _from_json(entry.get("definition")))


def _foreign_tools(config: Doc) -> Iterable[Tool]:
    """What an existing registry knows of its tools."""
    for entry in _mapping(config.get("toolFunctions")).values():
        function = _mapping(_mapping(entry).get("function"))
        if name := _text(_mapping(entry).get("mcpToolName")) or _text(function.get("name")):
            described = {"description": function.get("description"), "inputSchema": function.get("parameters")}
            yield Tool(name, {"name": name, **{key: value for key, value in described.items() if value is not None}})


def json_text(value: Mapping[str, Any]) -> str:
    """A mapping as text, so that it comes back equal whatever it holds."""
    return json.dumps(value)


def tool_entries(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """`registryTools`: the name, and the whole definition as JSON text.

    As text it comes back equal whatever it holds: keys with dots, `$schema`, integers beyond 64 bits.
    """
    return [{"name": tool.name, "definition": json_text(tool.definition)} for tool in tools]


def tool_functions(tools: Sequence[Tool], server_name: str) -> dict[str, Any]:
    """`config.toolFunctions`, for the programs of an existing registry; ours read `registryTools`."""
    return {
        _function_key(tool.name, server_name): {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": _storable(tool.description),
                "parameters": _storable(tool.input_schema),
            },
            "mcpToolName": tool.name,
        }
        for tool in tools
    }


def _function_key(tool: str, server_name: str) -> str:
    return _storable_key(f"{tool}_mcp_{server_name}")


def _storable_key(key: str) -> str:
    """NUL, which no key can hold, as `%00`; what looks like that already as `%2500`: two keys never become one."""
    return _ESCAPED_NUL.sub("%25", key).replace("\0", "%00")


def _storable(value: Any, depth: int = 0) -> Any:
    """The value with what BSON cannot hold spelled otherwise; `registryTools` has it exactly."""
    match value:
        case Mapping() | list() if depth == _MAX_DEPTH:
            return json.dumps(value)
        case Mapping():
            return {_storable_key(_storable(key)): _storable(item, depth + 1) for key, item in value.items()}
        case list():
            return [_storable(item, depth + 1) for item in value]
        case str() if not is_storable(value):
            return value.encode("utf-8", "replace").decode()
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

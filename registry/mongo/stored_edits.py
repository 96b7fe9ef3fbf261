"""Where the fields of an edit are stored.

Source: DESIGN 5 (`mcpservers`, `registrySettings`).
"""

from typing import Any

from registry.entries import ServerEdit
from registry.mongo.stored_settings import CREDENTIALS, SETTINGS

_PLACES = {
    "title": "config.title",
    "description": "config.description",
    "tags": "tags",
    "url": "config.url",
    "path": "path",
    "enabled": "config.enabled",
    "trusted": f"{SETTINGS}.trusted",
    "credentials": CREDENTIALS,
}

_PASSING = {
    "list_ttl_ms": "listTtlMs",
    "downstream_timeout_s": "downstreamTimeoutS",
    "passes_cookies": "passCookies",
}

_TEXTS = frozenset({"title", "description", "tags"})


def edited_fields(edit: ServerEdit) -> dict[str, Any]:
    """The stored fields and their values."""
    given = edit.given()
    passing = given.pop("passing", {})
    fields = {_PLACES[name]: _stored(name, value) for name, value in given.items()}
    return fields | {f"{SETTINGS}.{_PASSING[name]}": value for name, value in passing.items()}


def raises_revision(edit: ServerEdit) -> bool:
    """True when more than texts shall change."""
    return not _TEXTS.issuperset(edit.given())


def _stored(name: str, value: Any) -> Any:
    if name == "credentials":
        return dict(value)
    return list(value) if isinstance(value, tuple) else value

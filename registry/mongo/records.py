"""Documents of keys, access entries and activity, and the values that they stand for.

Source: DESIGN 5. A key or an entry that is malformed grants nothing.
"""

from typing import Any, Literal

from bson import ObjectId

from registry.model import ALL_TOOLS, AccessEntry, ApiKey, Grant, Permission, PrincipalType, Scope
from registry.mongo.client import as_utc
from registry.mongo.documents import RESOURCE_TYPE, any_id
from registry.mongo.values import Doc, whole_number
from registry.rows import Action, Activity

KEY_FIELDS = dict.fromkeys(
    (
        *("hash", "name", "user", "groups", "roles", "scopes"),
        *("tools", "enabled", "createdAt", "createdBy", "expiresAt"),
    ),
    1,
)
ENTRY_FIELDS = dict.fromkeys(
    ("principalType", "principalId", "resourceType", "resourceId", "permBits", "expiredAt"),
    1,
)
NOBODY = (None, "")
"""What an entry for the public has as `principalId`; None stands for a missing field too."""


def api_key(doc: Doc) -> ApiKey | None:
    """One `apikeys` document; None when it is malformed, which is as good as no key."""
    try:
        return ApiKey(
            id=str(doc["_id"]),
            hash=_exact_text(doc["hash"]),
            name=_exact_text(doc["name"]),
            user=_exact_text(doc["user"]),
            groups=_exact_names(doc["groups"]),
            roles=_exact_names(doc["roles"]),
            scopes=frozenset(Scope(name) for name in _exact_names(doc["scopes"])),
            enabled=doc["enabled"] is True,
            created_at=as_utc(doc["createdAt"]),
            created_by=_exact_text(doc["createdBy"]),
            expires_at=None if doc["expiresAt"] is None else as_utc(doc["expiresAt"]),
            tools=ALL_TOOLS if doc["tools"] == ALL_TOOLS else tuple(_grant(grant) for grant in doc["tools"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _grant(doc: Doc) -> Grant:
    tools: Literal["*"] | frozenset[str] = ALL_TOOLS if doc["tools"] == ALL_TOOLS else _exact_names(doc["tools"])
    return Grant(_exact_text(doc["server"]), tools)


def api_key_document(key: ApiKey) -> dict[str, Any]:
    """The document of one key."""
    return {
        "_id": key.id,
        "hash": key.hash,
        "name": key.name,
        "user": key.user,
        "groups": sorted(key.groups),
        "roles": sorted(key.roles),
        "scopes": sorted(key.scopes),
        "enabled": key.enabled,
        "createdAt": key.created_at,
        "createdBy": key.created_by,
        "expiresAt": key.expires_at,
        "tools": ALL_TOOLS if key.tools == ALL_TOOLS else [_grant_document(grant) for grant in key.tools],
    }


def _grant_document(grant: Grant) -> dict[str, Any]:
    return {"server": grant.server_id, "tools": ALL_TOOLS if grant.tools == ALL_TOOLS else sorted(grant.tools)}


def access_entry(doc: Doc) -> AccessEntry | None:
    """One `aclentries` document; None when it is malformed or for something else: it grants nothing then."""
    bits, expires_at = whole_number(doc.get("permBits")), doc.get("expiredAt")
    if doc.get("resourceType") != RESOURCE_TYPE or bits is None:
        return None
    try:
        principal_type = PrincipalType(_exact_text(doc.get("principalType")))
        principal_id = _principal_id(principal_type, doc.get("principalId"))
        expiry = None if expires_at is None else as_utc(expires_at)
        return AccessEntry(_id_text(doc.get("resourceId")), principal_type, principal_id, Permission(bits & 15), expiry)
    except (TypeError, ValueError):
        return None


def _principal_id(principal_type: PrincipalType, value: Any) -> str:
    """Nothing for the public, and something for everybody else; what is otherwise would name nobody, or too many."""
    is_nobody = value in NOBODY
    if is_nobody != (principal_type is PrincipalType.PUBLIC):
        raise ValueError("not whom an entry of this type names")
    return "" if is_nobody else _id_text(value)


def access_entry_document(entry: AccessEntry) -> dict[str, Any]:
    """The document of one access entry."""
    return {
        "principalType": entry.principal_type.value,
        "principalId": any_id(entry.principal_id)[-1] if entry.principal_id else None,
        "resourceType": RESOURCE_TYPE,
        "resourceId": any_id(entry.server_id)[-1],
        "permBits": int(entry.permissions),
        "expiredAt": entry.expires_at,
    }


def activity(doc: Doc) -> Activity:
    """One `activity` document."""
    return Activity(
        at=as_utc(doc["at"]),
        actor=doc["actor"],
        action=Action(doc["action"]),
        server_id=doc.get("serverId"),
        subject=doc.get("subject"),
        before=doc.get("before"),
        after=doc.get("after"),
        reason=doc.get("reason"),
        revision=doc.get("revision"),
        request_id=doc.get("requestId"),
    )


def activity_document(row: Activity) -> dict[str, Any]:
    """The document of one activity row."""
    return {
        "at": row.at,
        "actor": row.actor,
        "action": row.action.value,
        "serverId": row.server_id,
        "subject": row.subject,
        "before": row.before,
        "after": row.after,
        "reason": row.reason,
        "revision": row.revision,
        "requestId": row.request_id,
    }


def _id_text(value: Any) -> str:
    if isinstance(value, ObjectId):
        return str(value)
    return _exact_text(value)


def _exact_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _exact_names(value: Any) -> frozenset[str]:
    if not isinstance(value, list):
        raise TypeError("not a list")
    return frozenset(_exact_text(name) for name in value)

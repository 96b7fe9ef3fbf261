"""Rows of the activity log.

Source: DESIGN 5 (Activity).
"""

import enum
from dataclasses import dataclass
from datetime import datetime
from typing import Any


class Action(enum.StrEnum):
    """What an activity row records."""

    SERVER_CREATED = "server_created"
    TOOLS_REFRESHED = "tools_refreshed"
    TOOL_DISABLED = "tool_disabled"
    TOOL_ENABLED = "tool_enabled"
    SERVER_UPDATED = "server_updated"
    SERVER_DELETED = "server_deleted"
    PERMISSION_SET = "permission_set"
    KEY_CREATED = "key_created"
    KEY_UPDATED = "key_updated"


@dataclass(frozen=True, slots=True)
class Activity:
    """One change made through Sluicegate: who, what, before, after, why.

    `before` and `after` hold names, ids and flags only; never a secret, never arguments.
    """

    at: datetime
    actor: str
    action: Action
    server_id: str | None = None
    subject: str | None = None
    before: Any = None
    after: Any = None
    reason: str | None = None
    revision: int | None = None
    request_id: str | None = None

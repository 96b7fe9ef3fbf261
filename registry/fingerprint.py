"""What a policy is, in one short text: equal texts, equal policies.

Source: DESIGN 4 and 5. Caches and ETags go by it and never by the revision number, which writers of another program do
not raise.
"""

import dataclasses
import hashlib
import json
from typing import Any

from registry.model import ServerPolicy


def fingerprint(policy: ServerPolicy) -> str:
    """64 hex digits over every field of the policy as it was read, but the revision."""
    fields = dataclasses.asdict(policy)
    del fields["revision"]
    return hashlib.sha256(json.dumps(fields, sort_keys=True, default=_listed).encode()).hexdigest()


def _listed(value: Any) -> list[Any]:
    """A set in the one order that all equal sets have."""
    return sorted(value)

"""Values of documents that another program may have written."""

from collections.abc import Mapping
from typing import Any

Doc = Mapping[str, Any]


def whole_number(value: Any) -> int | None:
    """An integer, also as the double that some shells write; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value == value // 1 and abs(value) < 2**63 else None

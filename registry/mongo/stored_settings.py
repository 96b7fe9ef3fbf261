"""`registrySettings` of a server: how it is treated, beside what decides.

Source: DESIGN 5. Credentials that cannot be read are a fault of the whole policy, since a request without them goes to
a stranger's door. Anything else that is malformed is as if it were not there: none of it decides who may use what.
"""

from collections.abc import Mapping

from registry import references
from registry.model import Passing
from registry.mongo.values import Doc, whole_number

SETTINGS = "registrySettings"
CREDENTIALS = f"{SETTINGS}.credentials"

_LONGEST_S = 86_400.0
"""Of a timeout, as for the settings."""


def is_trusted(server: Doc) -> bool:
    """May the tools' own annotations say what is read-only?"""
    return _settings(server).get("trusted") is True


def credentials(server: Doc) -> tuple[tuple[str, str], ...] | None:
    """Field names and templates; missing is none, anything that is not usable as a whole is None."""
    stored = _settings(server).get("credentials", {})
    if not isinstance(stored, Mapping) or not all(isinstance(text, str) for text in stored.values()):
        return None
    return None if references.fault(stored) else tuple(sorted(stored.items()))


def passing(server: Doc) -> Passing:
    """How exchanges with it pass."""
    stored = _settings(server)
    ttl_ms = whole_number(stored.get("listTtlMs"))
    return Passing(
        list_ttl_ms=ttl_ms if ttl_ms is not None and ttl_ms >= 0 else None,
        downstream_timeout_s=_seconds(stored, "downstreamTimeoutS"),
        passes_cookies=stored.get("passCookies") is True,
    )


def _seconds(stored: Doc, name: str) -> float | None:
    value = stored.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value <= _LONGEST_S else None


def _settings(server: Doc) -> Doc:
    stored = server.get(SETTINGS)
    return stored if isinstance(stored, Mapping) else {}

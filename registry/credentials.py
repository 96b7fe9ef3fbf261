"""Our keys on the wire: where a request carries one, how one is made, how one is stored.

Source: DESIGN 3 (Credentials), DESIGN 5 (Keys). Ours is `Authorization: Bearer sg_...` or `X-Sluicegate-Key`. An
`Authorization` of any other form belongs to the downstream and is not read here. Pure, so that both planes and the
command line agree on it; part of the vocabulary that the data plane may see.
"""

import hashlib
import re
import secrets
from collections.abc import Iterable

KEY_PREFIX = "sg_"
"""Marks a key as ours, for people and for secret scanners."""

KEY_FIELD = "x-sluicegate-key"
"""Lower case; for clients whose `Authorization` belongs to the downstream."""

_KEY = re.compile(r"sg_[A-Za-z0-9_-]{43}")
_BEARER = re.compile(r"bearer +(sg_\S*)", re.IGNORECASE)


class AmbiguousCredentials(Exception):
    """Two keys that differ: there is no saying who asks."""


def presented_key(fields: Iterable[tuple[str, str]]) -> str | None:
    """The key that a request carries, None when it carries none.

    Args:
        fields: the header lines in order, names in any case.

    Raises:
        AmbiguousCredentials: the request carries two keys that differ.
    """
    found = {key for name, value in fields if (key := key_in(name, value)) is not None}
    if len(found) > 1:
        raise AmbiguousCredentials("the request carries two keys that differ")
    return next(iter(found), None)


def key_in(name: str, value: str) -> str | None:
    """The key in one header line, None when that line carries none of ours."""
    if name.lower() == KEY_FIELD:
        return value.strip()
    if name.lower() == "authorization" and (match := _BEARER.fullmatch(value.strip())):
        return match[1]
    return None


def new_key() -> str:
    """A fresh key text: `sg_` and 256 random bits as 43 base64url characters. Shown once, never stored."""
    return KEY_PREFIX + secrets.token_urlsafe(32)


def is_well_formed(key: str) -> bool:
    """True when the text has the form of a key that `new_key` makes."""
    return _KEY.fullmatch(key) is not None


def holds_key(text: str) -> bool:
    """True when something in the form of a key stands anywhere in the text."""
    return _KEY.search(text) is not None


def key_hash(key: str) -> str:
    """What is stored and looked up: the lower-case hex SHA-256. The key has 256 random bits, so no salt is needed."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()

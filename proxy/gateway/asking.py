"""Who asks, by which revision, and with which credentials for downstreams. Pure.

Source: DESIGN 6 (a caller's own credential for a downstream goes to that server only). Its form is one field a server,
    X-Sluicegate-Downstream-Authorization: /github Bearer abc
the server's path, a blank, and what that server shall get as `Authorization`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from proxy.errors import BadFields
from proxy.headers import values
from proxy.ports import Fields
from registry.paths import path_fault

DOWNSTREAM_FIELD = "x-sluicegate-downstream-authorization"

_CREDENTIAL = re.compile(r"(/\S+)[ \t]+(\S.*)")


@dataclass(frozen=True, slots=True)
class Asking:
    """One request's author. `session` is empty when the client has none; `credentials` are by server path."""

    key_hash: str | None
    revision: str
    session: str = ""
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)


def downstream_credentials(fields: Fields) -> Mapping[str, str]:
    """The caller's credentials by server path. Raises BadFields."""
    found: dict[str, str] = {}
    for value in values(fields, DOWNSTREAM_FIELD):
        match = _CREDENTIAL.fullmatch(value)
        if match is None or path_fault(match[1]) is not None:
            raise BadFields("X-Sluicegate-Downstream-Authorization is a server's path, a blank, and its credential")
        if found.setdefault(match[1], match[2]) != match[2]:
            raise BadFields("two credentials for one server")
    return found

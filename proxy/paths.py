"""Where a request is addressed: the raw target, and the server path in it.

Source: DESIGN 1; RFC 9112 section 3.2. Nothing is decoded or normalised: what two readers could map to different
places is no address of ours.
"""

import re
from dataclasses import dataclass

from registry.paths import path_fault

PREFIX = "/proxy"
"""Below it is the data plane."""

_ALIASES = ("", "/", "/mcp")  # `/sse` belongs to HTTP+SSE servers, of which none can be registered yet
_ORIGIN_FORM = re.compile(r"(/[!\"$->@-~]*)(?:\?([!\"$-~]*))?")  # visible ASCII without `#`


@dataclass(frozen=True, slots=True)
class Target:
    """An origin-form request target as it came. `query` is without `?`, empty when there is none."""

    path: str
    query: str


def split_target(raw: str) -> Target | None:
    """Split a raw request target at its first `?`.

    None for anything but origin-form in visible ASCII: absolute-form and `#fragment` make readers differ about the
    path, and a control character or blank about the request line.
    """
    match = _ORIGIN_FORM.fullmatch(raw)
    return Target(match[1], match[2] or "") if match else None


def server_path(raw_path: str) -> str | None:
    """The path of the one server that this address can mean, None when it can mean none.

    It is taken exactly first, then less one trailing `/` or `/mcp`. A server path never ends in those, so at most one
    of the three is a server path and no look-up has to be tried twice.

    Args:
        raw_path: what follows PREFIX in the target's path, undecoded: `/github`, `/github/mcp`.
    """
    for alias in _ALIASES:
        candidate = raw_path.removesuffix(alias)
        if raw_path.endswith(alias) and path_fault(candidate) is None:
            return candidate
    return None

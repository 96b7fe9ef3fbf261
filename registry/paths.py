"""Which paths a server may have.

Source: DESIGN 1. One or more segments, each `[a-z0-9][a-z0-9._-]*`, with a leading slash. A last segment `mcp` or `sse`
is refused, since clients append those to a path and mean the same server.
"""

import re

MAX_PATH_LENGTH = 200
"""Characters. It is part of every request line and of a document id; names people type are far shorter."""

_PATH = re.compile(r"(?:/[a-z0-9][a-z0-9._-]*)+")

SHARED_PATH = "two servers are stored under this path"
"""The fault of both: neither is reached by it."""


def path_fault(path: object) -> str | None:
    """Why this cannot be a server's path, None when it can."""
    if not isinstance(path, str) or _PATH.fullmatch(path) is None:
        return "a path is one or more segments of a-z 0-9 . _ -, each after a slash and begun by a letter or digit"
    if path.rpartition("/")[2] in {"mcp", "sse"}:
        return "the last segment of a path may not be 'mcp' or 'sse'"
    if len(path) > MAX_PATH_LENGTH:
        return f"a path has at most {MAX_PATH_LENGTH} characters"
    return None

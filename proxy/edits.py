"""Changes to a text in place: everything that no edit names stays as it is."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """`replacement` in place of the bytes from `start` to before `end`."""

    start: int
    end: int
    replacement: bytes = b""


def apply(data: bytes, edits: Sequence[Edit]) -> bytes:
    """The bytes with all edits made. They are in order and do not overlap; without any, `data` itself."""
    if not edits:
        return data
    pieces: list[bytes | memoryview] = []
    view = memoryview(data)  # whose slices are no copies: lists can be megabytes
    at = 0
    for edit in edits:
        pieces += (view[at : edit.start], edit.replacement)
        at = edit.end
    return b"".join((*pieces, view[at:]))

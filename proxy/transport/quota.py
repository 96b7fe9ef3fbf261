"""How many streams each caller holds open.

Source: RFC 6585 section 4 (429). A stream has no end of its own and costs a connection on either side of us, so one
key, or one address without a key, must not take those of all others.
"""

import contextlib
from collections import Counter
from collections.abc import Iterator


class StreamQuota:
    """Counts streams by their holder. `most` is for each."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: Counter[str] = Counter()

    @contextlib.contextmanager
    def taken(self, holder: str) -> Iterator[bool]:
        """Hold one more while the context is open; gives False, and holds none, when there are as many as may be."""
        if self._held[holder] >= self._most:
            yield False
            return
        self._held[holder] += 1
        try:
            yield True
        finally:
            self._held[holder] -= 1
            if not self._held[holder]:
                del self._held[holder]  # or every caller there ever was stays in memory

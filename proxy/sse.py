"""An event stream cut into events that keep their exact bytes.

Source: WHATWG HTML, section 9.2.6 (interpreting an event stream). Lines end in LF, CR or CRLF; a blank line ends an
event.

States: between events, where bytes leave as soon as their line is whole -> inside an event from its first field line
on, its bytes held -> the blank line, with which it leaves whole -> between events.

Invariant: the raw bytes of all events, joined, are the stream, but for an event that never ended. Comments between
events are keep-alives and wait for nothing. The cost is linear in the stream, however it is cut into chunks.
"""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from proxy.edits import Edit, apply

_LINE_END = re.compile(rb"\r\n?|\n")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


MAX_DATA_LINES = 65_536
"""Of one event. The place of each is remembered, which costs many times a short line; servers send a handful."""


class EventTooLarge(ValueError):
    """One event is over the limit of what we are ready to hold."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event with its blank line, or a line between two events.

    `spans` are the places in `raw` of the values of its `data` lines; none when it has no data.
    """

    raw: bytes
    spans: tuple[tuple[int, int], ...] = ()

    @property
    def data(self) -> bytes:
        """What a client takes for its data: the values of the `data` lines, joined by LF."""
        return b"\n".join(self.raw[start:end] for start, end in self.spans)

    def edited(self, edits: Sequence[Edit]) -> bytes:
        """The raw bytes with `edits`, given in offsets of `data`, made in place.

        Lines stay lines: of an edit that reaches over several, each gives its own bytes and keeps its end.
        """
        return apply(self.raw, list(self._in_raw(edits)))

    def _in_raw(self, edits: Sequence[Edit]) -> Iterator[Edit]:
        left = deque(edits)
        at = 0  # where in `data` this line's value begins
        for start, end in self.spans:
            stop = at + end - start
            while left and left[0].start <= stop:
                edit = left.popleft()
                yield Edit(start + edit.start - at, start + min(edit.end, stop) - at, edit.replacement)
                if edit.end > stop:
                    left.appendleft(Edit(stop + 1, edit.end))  # the LF between two values is no byte of `raw`
                    break
            at = stop + 1


class Decoder:
    """Turns the chunks of one stream into events.

    `max_event_bytes` bounds an unfinished event, and so the memory that a stream can take: a security limit.
    """

    def __init__(self, max_event_bytes: int) -> None:
        self._max_event_bytes = max_event_bytes
        self._held = bytearray()  # from the first byte that has not left
        self._line = 0  # where the current line starts in it
        self._scanned = 0  # there is no line end before this place
        self._spans: list[tuple[int, int]] = []
        self._is_inside = False
        self._is_first_line = True
        self._is_after_cr = False  # an LF that comes next belongs to the line end before it

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next bytes; returns what became whole, in order.

        Raises:
            EventTooLarge: the unfinished event is over the limit, or has more than MAX_DATA_LINES.
        """
        self._held += chunk
        events = list(self._events())
        if len(self._held) > self._max_event_bytes:
            raise EventTooLarge(f"an event is over {self._max_event_bytes} bytes")
        return events

    def eof(self) -> list[Event]:
        """The stream has ended. An event that has not is dropped, as clients drop it; a begun comment goes."""
        is_comment = not self._is_inside and self._held.startswith(b":")
        return [self._leave(len(self._held))] if is_comment else []

    def _events(self) -> Iterator[Event]:
        if self._is_after_cr and len(self._held) > self._line:
            yield from self._rest_of_line_end()
        while match := _LINE_END.search(self._held, self._scanned):
            self._is_after_cr = match[0] == b"\r" and match.end() == len(self._held)
            self._read_line(self._line, match.start())
            self._line = self._scanned = match.end()
            if not self._is_inside:
                yield self._leave(match.end())
        self._scanned = len(self._held)

    def _rest_of_line_end(self) -> Iterator[Event]:
        """A CR was the last byte of the chunk before, and could not wait: nothing might have come."""
        self._is_after_cr = False
        if self._held.startswith(b"\n", self._line):
            self._line = self._scanned = self._line + 1
            if not self._is_inside:
                yield self._leave(self._line)

    def _read_line(self, start: int, end: int) -> None:
        if self._is_first_line and self._held.startswith(_BYTE_ORDER_MARK):
            start = len(_BYTE_ORDER_MARK)
        self._is_first_line = False
        if start == end:
            self._is_inside = False
        elif not self._held.startswith(b":", start):
            self._is_inside = True
            self._note_data(start, end)

    def _note_data(self, start: int, end: int) -> None:
        if self._held.startswith(b"data:", start):
            after = start + len(b"data:")
            self._add_span(after + self._held.startswith(b" ", after, end), end)
        elif self._held[start : min(end, start + 5)] == b"data":  # a field without a colon has an empty value
            self._add_span(end, end)

    def _add_span(self, start: int, end: int) -> None:
        if len(self._spans) == MAX_DATA_LINES:
            raise EventTooLarge(f"an event has over {MAX_DATA_LINES} data lines")
        self._spans.append((start, end))

    def _leave(self, end: int) -> Event:
        event = Event(bytes(self._held[:end]), tuple(self._spans))
        del self._held[:end]  # at the front, which costs nothing
        self._spans, self._line, self._scanned = [], 0, 0
        return event

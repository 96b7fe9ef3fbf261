"""The event decoder against a reader of the whole text, over any cut of any stream."""

import re
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.edits import Edit
from proxy.sse import Decoder, Event, EventTooLarge

PIECES = (
    *(b"data", b"data:", b"data: ", b"id: 1", b"event: message", b"retry", b":", b": ping", b"dat", b"Data:"),
    *(b"\n", b"\r", b"\r\n", b"\n\n", b"\r\r", b"\r\n\r\n", b" ", b"x", b'{"a":1}'),
    *(b"\xef\xbb\xbf", b"\xef\xbb", b"\xbf", "名".encode(), "\u2028".encode(), b"\x0b", b"\x00", b"\xff"),
)
streams = st.lists(st.sampled_from(PIECES), max_size=40).map(b"".join) | st.binary(max_size=60)
cuts = st.lists(st.integers(0, 200), max_size=12)


def chunks(stream: bytes, places: Sequence[int]) -> list[bytes]:
    bounds = [0, *sorted(min(place, len(stream)) for place in places), len(stream)]
    return [stream[start:end] for start, end in pairwise(bounds)]


def decoded(parts: Sequence[bytes]) -> tuple[list[Event], list[Event]]:
    """What left while the parts came, and what left at the end."""
    decoder = Decoder(1 << 20)
    return [event for part in parts for event in decoder.feed(part)], decoder.eof()


def lines_of(stream: bytes) -> tuple[list[bytes], bytes]:
    """The whole lines of a stream, and what comes after the last line end."""
    *lines, rest = re.split(rb"\r\n|\r|\n", stream)
    return lines, rest


def reference(stream: bytes) -> list[bytes]:
    """The data of each event that has any, as a client that has the whole text reads it (WHATWG HTML 9.2.6)."""
    found: list[bytes] = []
    data: list[bytes] = []
    for line in lines_of(stream.removeprefix(b"\xef\xbb\xbf"))[0]:
        name, _, value = line.partition(b":")
        if not line and data:
            found.append(b"\n".join(data))
            data = []
        elif name == b"data":
            data.append(value.removeprefix(b" "))
    return found


def data_of(events: Sequence[Event]) -> list[bytes]:
    return [event.data for event in events if event.spans]


def joined(events: Sequence[Event]) -> bytes:
    return b"".join(event.raw for event in events)


@settings(max_examples=500)
@given(streams, cuts)
def test_a_stream_reads_the_same_however_it_is_cut(stream: bytes, places: list[int]) -> None:
    events, last = decoded(chunks(stream, places))
    assert data_of(events) == reference(stream)
    assert joined(events) == joined(decoded([stream])[0])
    assert last == decoded([stream])[1]


@settings(max_examples=500)
@given(streams, cuts)
def test_only_an_unfinished_event_does_not_leave(stream: bytes, places: list[int]) -> None:
    events, last = decoded(chunks(stream, places))
    left = joined([*events, *last])
    assert stream.startswith(left)
    lines, rest = lines_of(stream[len(left) :])
    assert b"" not in lines
    assert all(not line.startswith(b":") for line in (*lines, rest)[:1])


@settings(max_examples=500)
@given(streams)
def test_nothing_waits_for_the_next_byte(stream: bytes) -> None:
    decoder = Decoder(1 << 20)
    taken, left = b"", b""
    for byte in stream:
        taken += bytes([byte])
        left += joined(decoder.feed(bytes([byte])))
        assert left == joined(decoded([taken])[0])
        if taken.endswith((b"\n\n", b"\r\r", b"\n\r")):
            assert left == taken


@settings(max_examples=500)
@given(streams, cuts, st.integers(0, 30))
def test_a_limit_refuses_what_is_over_it_and_changes_nothing_else(
    stream: bytes, places: list[int], max_event_bytes: int
) -> None:
    decoder = Decoder(max_event_bytes)
    taken, left = b"", b""
    for part in chunks(stream, places):
        taken += part
        unbounded = joined(decoded([taken])[0])
        if len(taken) - len(unbounded) > max_event_bytes:
            with pytest.raises(EventTooLarge):
                decoder.feed(part)
            return
        left += joined(decoder.feed(part))
        assert left == unbounded


values = st.lists(st.sampled_from([b"", b"a", b"bc", "名".encode(), b" d"]), min_size=1, max_size=5)
between = st.lists(st.sampled_from([b"", b": note", b"id: 1", b"data-not: x"]), min_size=5, max_size=5)
line_ends = st.lists(st.sampled_from([b"\n", b"\r", b"\r\n"]), min_size=12, max_size=12)


def event_of(its_values: Sequence[bytes], others: Sequence[bytes], ends: Sequence[bytes]) -> bytes:
    """An event with a `data` line for each value, each after another line or none."""
    lines = [line for other, value in zip(others, its_values, strict=False) for line in (other, b"data: " + value)]
    ended = [line + end for line, end in zip(lines, ends, strict=False) if line]
    return b"".join((*ended, b"\n\n"))  # two: the first may be the LF of a CR before it


def with_data(stream: bytes) -> Event:
    [event] = [event for event in decoded([stream])[0] if event.spans]
    return event


def edited_values(data: bytes, edits: Sequence[Edit]) -> list[bytes]:
    """The values of the lines after the edits, by the letter: byte for byte, an LF between two lines always stays."""
    cut = {at for edit in edits for at in range(edit.start, edit.end)}
    written = [b""] * (len(data) + 1)
    for edit in edits:
        written[edit.start] += edit.replacement
    kept = [data[at : at + 1] if at not in cut or data[at] == ord("\n") else b"" for at in range(len(data) + 1)]
    return b"".join(new + old for new, old in zip(written, kept, strict=True)).split(b"\n")


@given(values, between, line_ends, st.lists(st.integers(0, 20), max_size=8))
def test_an_edit_of_the_data_leaves_every_other_byte(
    its_values: list[bytes], others: list[bytes], ends: list[bytes], places: list[int]
) -> None:
    event = with_data(event_of(its_values, others, ends))
    bounds = sorted(min(place, len(event.data)) for place in places)
    edits = [Edit(start, end, b"<>") for start, end in zip(bounds[::2], bounds[1::2], strict=False)]
    wanted = event_of(edited_values(event.data, edits), others, ends)
    assert event.edited(edits) == with_data(wanted).raw

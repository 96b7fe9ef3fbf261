"""An event stream cut into events that keep their bytes (WHATWG HTML 9.2.6)."""

import time
from collections.abc import Callable

import pytest

from proxy.edits import Edit
from proxy.sse import MAX_DATA_LINES, Decoder, Event, EventTooLarge

BOM = b"\xef\xbb\xbf"
LINE_ENDS = pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"], ids=["LF", "CR", "CRLF"])


def decoder(max_event_bytes: int = 1 << 20) -> Decoder:
    return Decoder(max_event_bytes)


def whole(stream: bytes) -> list[Event]:
    return decoder().feed(stream)


def fed(stream: bytes, chunk_bytes: int, max_event_bytes: int = 1 << 30) -> list[Event]:
    decode = decoder(max_event_bytes)
    return [found for at in range(0, len(stream), chunk_bytes) for found in decode.feed(stream[at : at + chunk_bytes])]


def raws(events: list[Event]) -> list[bytes]:
    return [event.raw for event in events]


def only(stream: bytes) -> Event:
    [event] = whole(stream)
    assert event.raw == stream
    return event


@LINE_ENDS
def test_an_event_keeps_its_bytes_and_gives_its_data(end: bytes) -> None:
    stream = end.join((b"event: message", b"id: 7", b"retry: 1000", b'data: {"a":1}', b": note", b"odd", b"", b""))
    assert only(stream).data == b'{"a":1}'


def test_line_ends_may_be_mixed() -> None:
    events = whole(b"data: 1\r\ndata: 2\rdata: 3\n\r\ndata: 4\n\r")
    assert [event.data for event in events] == [b"1\n2\n3", b"4"]


@pytest.mark.parametrize(
    ("line", "data"),
    [
        (b"data: x", b"x"),
        (b"data:x", b"x"),
        (b"data:  x ", b" x "),
        (b"data:\tx", b"\tx"),
        (b"data:", b""),
        (b"data: ", b""),
        (b"data", b""),
        (b"data: \xe2\x80\xa8\x0b\x0c\x85", b"\xe2\x80\xa8\x0b\x0c\x85"),
        (b"Data: x", b""),
        (b" data: x", b""),
        (b"datax: x", b""),
        (b"data x", b""),
        (b"dat", b""),
    ],
)
def test_what_a_line_adds_to_the_data(line: bytes, data: bytes) -> None:
    """Names are compared exactly; one blank after the colon goes; only CR and LF end a line."""
    assert only(line + b"\n\n").data == data


def test_data_lines_without_a_value_count_as_lines() -> None:
    assert only(b"data\ndata:\ndata: x\ndata\n\n").data == b"\n\nx\n"


@LINE_ENDS
def test_a_priming_event_and_events_without_data_pass(end: bytes) -> None:
    """PROTOCOL 1.3: an id with empty data; a bare id moves the resume cursor, a bare retry counts too."""
    blocks = [end.join((*lines, b"", b"")) for lines in ((b"id: 9", b"data: "), (b"id: 10",), (b"retry: 5",))]
    events = whole(b"".join(blocks))
    assert raws(events) == blocks
    assert [event.data for event in events] == [b"", b"", b""]


@LINE_ENDS
def test_a_comment_between_events_leaves_with_its_line_end(end: bytes) -> None:
    decode = decoder()
    assert decode.feed(b": pi") == []
    assert decode.feed(b"ng" + end) == [Event(b": ping" + end)]
    assert decode.feed(end) == [Event(end)]


def test_a_comment_inside_an_event_waits_with_it() -> None:
    decode = decoder()
    assert decode.feed(b"data: 1\n: ping\n") == []
    assert raws(decode.feed(b"\n")) == [b"data: 1\n: ping\n\n"]


def test_an_event_that_ends_in_cr_does_not_wait_for_an_lf() -> None:
    decode = decoder()
    assert raws(decode.feed(b"data: 1\r\r")) == [b"data: 1\r\r"]
    assert raws(decode.feed(b"\n")) == [b"\n"]
    assert raws(decode.feed(b"data: 2\r\r")) == [b"data: 2\r\r"]
    assert raws(decode.feed(b"data: 3\n\n")) == [b"data: 3\n\n"]


def test_a_torn_crlf_does_not_end_an_event() -> None:
    chunks = (b"event: message\r", b"\ndata: {", b"}\r", b"", b"\n\r", b"\n")
    decode = decoder()
    events = [event for chunk in chunks for event in decode.feed(chunk)]
    assert raws(events) == [b"event: message\r\ndata: {}\r\n\r", b"\n"]
    assert [event.data for event in events] == [b"{}", b""]


@pytest.mark.parametrize("chunks", [(b"\n\n",), (b"\n", b"\n"), (b"\n", b"\r"), (b"\n\r",)])
def test_a_line_end_after_a_torn_crlf_ends_an_event(chunks: tuple[bytes, ...]) -> None:
    decode = decoder()
    assert decode.feed(b"data: 1\r") == []
    assert raws([event for chunk in chunks for event in decode.feed(chunk)]) == [b"data: 1\r" + b"".join(chunks)]


def test_characters_torn_over_chunks_stay_whole() -> None:
    stream = "data: データ削除 🗑\n\n".encode()
    events = fed(stream, 1)
    assert events == whole(stream)
    assert events[0].data.decode() == "データ削除 🗑"


@pytest.mark.parametrize("line", [b": ping\n", b"\n"])
def test_a_byte_order_mark_before_a_line_between_events_leaves_with_it(line: bytes) -> None:
    assert raws(whole(BOM + line)) == [BOM + line]


def test_a_byte_order_mark_counts_at_the_start_of_the_stream_alone() -> None:
    first, second = whole((BOM + b"data: 1\n\n") * 2)
    assert (first.data, second.data) == (b"1", b"")
    assert only(BOM * 2 + b"data: 1\n\n").data == b""
    assert [event.data for event in whole(b"\n" + BOM + b"data: 1\n\n")] == [b"", b""]


def test_each_blank_line_between_events_leaves_by_itself() -> None:
    assert raws(whole(b"\n\r\n\r\rdata: 1\n\n\n\n")) == [b"\n", b"\r\n", b"\r", b"\r", b"data: 1\n\n", b"\n", b"\n"]


@pytest.mark.parametrize("tail", [b"data: 1", b"data: 1\n", b"id: 1\n: note", b"d", b""])
def test_an_unfinished_event_never_leaves(tail: bytes) -> None:
    decode = decoder()
    assert raws(decode.feed(b"data: 0\n\n" + tail)) == [b"data: 0\n\n"]
    assert decode.eof() == []


def test_a_begun_comment_leaves_at_the_end() -> None:
    decode = decoder()
    assert decode.feed(b": bye") == []
    assert decode.eof() == [Event(b": bye")]


@pytest.mark.parametrize("chunk_bytes", [1, 7, 100])
def test_an_unfinished_event_over_the_limit_is_refused(chunk_bytes: int) -> None:
    with pytest.raises(EventTooLarge):
        fed(b"data: " + b"x" * 100, chunk_bytes, max_event_bytes=20)


def test_an_unfinished_event_of_exactly_the_limit_is_held() -> None:
    decode = decoder(max_event_bytes=20)
    assert decode.feed(b"data: " + b"x" * 14) == []
    with pytest.raises(EventTooLarge):
        decode.feed(b"x")


def test_an_event_of_exactly_the_limit_passes_however_many_came_before() -> None:
    event = b"data: 123\n\n"
    assert raws(fed(event * 5, 1, max_event_bytes=len(event))) == [event] * 5


def test_without_edits_the_same_bytes_leave() -> None:
    event = only(b"data: 1\n\n")
    assert event.edited([]) is event.raw


def test_edits_of_the_data_change_nothing_else() -> None:
    event = only(b"id: 1\r\ndata:abcdef\r\n: note\rretry: 5\n\n")
    edits = [Edit(0, 1), Edit(2, 3, b"123"), Edit(6, 6, b"!")]
    assert event.edited(edits) == b"id: 1\r\ndata:b123def!\r\n: note\rretry: 5\n\n"


def test_an_edit_over_several_data_lines_leaves_the_lines() -> None:
    event = only(b"data: abc\r\n: note\r\ndata:def\rdata\ndata: ghi\n\n")
    assert event.data == b"abc\ndef\n\nghi"
    edited = event.edited([Edit(1, 10, b"X"), Edit(11, 12)])
    assert edited == b"data: aX\r\n: note\r\ndata:\rdata\ndata: h\n\n"


@pytest.mark.parametrize(("start", "end"), [(1, 2), (1, 3), (2, 3)])
def test_an_edit_at_the_seam_of_two_lines_stays_on_its_side(start: int, end: int) -> None:
    event = only(b"data: ab\ndata: cd\n\n")
    data = bytearray(event.data)
    kept = bytes(data[:start] + data[end:]).replace(b"\n", b"")
    [edited] = whole(event.edited([Edit(start, end)]))
    assert edited.data.replace(b"\n", b"") == kept
    assert edited.data.count(b"\n") == 1


def cpu_s(work: Callable[[], object]) -> float:
    def once() -> float:
        started = time.process_time()
        work()
        return time.process_time() - started

    return min(once() for _ in range(3))


@pytest.mark.parametrize(
    ("payload_bytes", "chunk_bytes"), [(1 << 14, 1), (1 << 21, 1 << 16)], ids=["single bytes", "64 KiB chunks"]
)
def test_the_cost_of_an_event_is_linear_in_its_size(payload_bytes: int, chunk_bytes: int) -> None:
    small, large = (b"data: " + b"x" * (payload_bytes * times) + b"\n\n" for times in (1, 8))
    ratio = cpu_s(lambda: fed(large, chunk_bytes)) / cpu_s(lambda: fed(small, chunk_bytes))
    assert ratio < 24  # 8 when linear, 64 when quadratic


def test_the_cost_of_many_small_events_is_linear() -> None:
    small, large = (b"data: 1\n\n" * times for times in (2_000, 16_000))
    assert cpu_s(lambda: fed(large, len(large))) / cpu_s(lambda: fed(small, len(small))) < 24


def test_the_cost_of_many_edits_on_many_lines_is_linear() -> None:
    def work(lines: int) -> Callable[[], object]:
        event = only(b"data: 1,\n" * lines + b"\n")
        edits = [Edit(3 * line, 3 * line + 1, b"2") for line in range(lines)]
        return lambda: event.edited(edits)

    assert cpu_s(work(8_000)) / cpu_s(work(1_000)) < 24


def test_the_data_lines_of_an_event_are_bounded() -> None:
    """Each is remembered by its place, which costs many times the line."""
    most = b"data\n" * MAX_DATA_LINES

    assert len(Decoder(1 << 24).feed(most + b"id: 1\n\n")) == 1
    with pytest.raises(EventTooLarge):
        Decoder(1 << 24).feed(most + b"data\n")

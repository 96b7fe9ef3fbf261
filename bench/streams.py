"""What an open stream costs: resident memory of a subject's processes with and without many idle GET streams."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from rich.table import Table

from bench.subjects import Subject

_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class Streams:
    """Of one subject: how many were open, and what each cost."""

    subject: str
    streams: int
    bytes_each: float


async def measured(subject: Subject, count: int) -> Streams:
    """Open some to warm up, then `count`, and compare. The streams end with this."""
    warm = [await _opened(subject) for _ in range(_AT_ONCE)]
    before = subject.resident_bytes()
    opened = []
    for start in range(0, count, _AT_ONCE):
        opened += await asyncio.gather(*(_opened(subject) for _ in range(min(_AT_ONCE, count - start))))
    after = subject.resident_bytes()
    for writer in (*warm, *opened):
        writer.close()
    return Streams(subject.name, count, (after - before) / count)


async def _opened(subject: Subject) -> asyncio.StreamWriter:
    address = urlsplit(subject.addresses["call"])
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    fields = "".join(f"{name}: {value}\r\n" for name, value in subject.fields.items())
    head = f"GET {address.path} HTTP/1.1\r\nHost: {address.netloc}\r\nAccept: text/event-stream\r\n{fields}\r\n"
    writer.write(head.encode())
    async with asyncio.timeout(30):
        await reader.readuntil(b"\r\n\r\n")
        await reader.readuntil(b": ")  # the downstream's first comment
    return writer


def table_of(rows: Sequence[Streams], idle_bytes: Mapping[str, int]) -> Table:
    """Memory of each subject."""
    table = Table("memory", "idle MB", "KB a stream")
    for row in rows:
        table.add_row(row.subject, f"{idle_bytes[row.subject] / 1e6:.0f}", f"{row.bytes_each / 1e3:.1f}")
    return table

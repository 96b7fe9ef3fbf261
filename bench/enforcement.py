"""How soon a switch that one replica acknowledges is enforced by another."""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from rich.table import Table

from bench.downstream import CALLED
from bench.load import Asked, Client
from bench.subjects import Subject, api

_PATIENCE_S = 10.0


@dataclass(frozen=True, slots=True)
class Enforcement:
    """Milliseconds from the acknowledgement to the first answer that obeys it; `late` answers came before it."""

    switched_by: str
    asked_of: str
    flips: int
    late: int
    p50_ms: float
    most_ms: float


async def measured(switching: Subject, asked: Subject, flips: int) -> Enforcement:
    """Flip a tool through one replica and call it through the other until it obeys."""
    client = Client(Asked(asked.addresses["call"], asked.fields))
    await client.open()
    late, took_s = 0, []
    for number in range(flips):
        enabled = number % 2 == 1
        await api(switching, "PUT", f"/servers/{quote('/call', safe='')}/tools/{CALLED}", {"enabled": enabled})
        acknowledged = time.perf_counter()
        while await _runs(client, number) is not enabled:
            late += 1
            if time.perf_counter() - acknowledged > _PATIENCE_S:
                raise TimeoutError("a switch was not enforced")
        took_s.append(time.perf_counter() - acknowledged)
    client.close()
    return Enforcement(switching.name, asked.name, flips, late, statistics.median(took_s) * 1e3, max(took_s) * 1e3)


async def _runs(client: Client, number: int) -> bool:
    params = {"name": CALLED, "arguments": {"text": f"m{number}"}}
    return b'"result"' in await client.ask({"id": number, "method": "tools/call", "params": params})


def table_of(rows: Sequence[Enforcement]) -> Table:
    """One line a direction."""
    table = Table("switched by", "asked of", "flips", "answers before it", "p50 ms", "most ms")
    for row in rows:
        figures = (row.flips, row.late, f"{row.p50_ms:.1f}", f"{row.most_ms:.1f}")
        table.add_row(row.switched_by, row.asked_of, *map(str, figures))
    return table

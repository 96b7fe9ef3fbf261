"""What a proxy in front of an MCP server costs: `python -m bench.proxying`.

The cost is user and system time of the subject's processes over verified answers, by rounds in which all subjects take
turns; the median of the rounds is shown, the ratio is to nginx of the same run. A wrong answer ends the run: it would
be the figure of something else. Latencies depend on how busy the machine is; compare them within one run alone.
"""

import argparse
import asyncio
import contextlib
import json
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench import enforcement, streams, subjects
from bench.load import Answers, Asked, ask_all
from bench.subjects import LISTS, Subject

_WARM_UP_S = 0.5


@dataclass(frozen=True, slots=True)
class Measured:
    """What is measured of each subject: a name, which address, and how it is asked."""

    name: str
    address: str
    method: str = "tools/call"
    connections: int = 1
    listed: int = 10
    hidden: int = 0

    def asked(self, subject: Subject, seconds: float) -> Asked:
        """The load for one subject."""
        return Asked(
            subject.addresses[self.address],
            subject.fields,
            self.method,
            self.connections,
            self.listed,
            self.hidden,
            seconds,
        )


CALLS = (
    Measured("call, 1 connection", "call"),
    Measured("call, 32 connections", "call", connections=32),
    Measured("call answered by a stream", "slow", connections=8),
)
LISTED = tuple(Measured(f"list of {tools}", f"list {tools}", "tools/list", 4, tools) for tools in LISTS)
HIDDEN = tuple(
    Measured(f"list of {tools}, {hidden} hidden", f"hidden {tools}", "tools/list", 4, tools, hidden)
    for tools, hidden in LISTS.items()
)


@dataclass(frozen=True, slots=True)
class Round:
    """One measurement of one subject. CPU in microseconds an answer, latencies in milliseconds."""

    answers: int
    cpu_us: float
    store_cpu_us: float
    p50_ms: float
    p99_ms: float
    first_byte_p50_ms: float


@dataclass(slots=True)
class Row:
    """All rounds of one measurement of one subject."""

    subject: str
    measured: str
    rounds: list[Round] = field(default_factory=list)

    def median(self, figure: str) -> float:
        """The median of one figure of its rounds."""
        return float(statistics.median(getattr(each, figure) for each in self.rounds))


async def measured_once(subject: Subject, what: Measured, seconds: float, store_pid: int) -> Round:
    """Warm up, ask, and count."""
    await ask_all(what.asked(subject, _WARM_UP_S))
    before, store_before = subject.cpu_s(), subjects.cpu_of(store_pid)
    answers = await ask_all(what.asked(subject, seconds))
    cpu_s, store_cpu_s = subject.cpu_s() - before, subjects.cpu_of(store_pid) - store_before
    return _round(answers, cpu_s, store_cpu_s)


def _round(answers: Answers, cpu_s: float, store_cpu_s: float) -> Round:
    count = len(answers.took_s)
    return Round(
        count,
        cpu_s / count * 1e6,
        store_cpu_s / count * 1e6,
        statistics.median(answers.took_s) * 1e3,
        _percentile(answers.took_s, 0.99) * 1e3,
        statistics.median(answers.first_byte_s) * 1e3,
    )


def _percentile(values: Iterable[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@contextlib.asynccontextmanager
async def started(folder: Path) -> AsyncIterator[tuple[list[Subject], int]]:
    """All subjects, side by side, and the store's process."""
    async with contextlib.AsyncExitStack() as stack:
        port = await stack.enter_async_context(subjects.downstream())
        url, store_pid = await stack.enter_async_context(subjects.store(folder / "store"))
        direct = Subject("direct", subjects.plain_addresses(f"http://127.0.0.1:{port}"))
        proxies = [
            await stack.enter_async_context(subjects.nginx(port, folder)),
            await stack.enter_async_context(subjects.passthrough(port)),
        ]
        replicas = [
            await stack.enter_async_context(subjects.sluicegate(url, staleness_s, folder / f"data{staleness_s}"))
            for staleness_s in (0, 1)
        ]
        await subjects.register(replicas[0], port)
        yield [direct, *(proxy for proxy in proxies if proxy is not None), *replicas], store_pid


async def rows_of(
    all_: Sequence[Subject], store_pid: int, rounds: int, seconds: float, progress: Progress
) -> list[Row]:
    """Every measurement of every subject, round by round."""
    everything = (*CALLS, *LISTED, *HIDDEN)
    wanted = [(subject, what) for what in everything for subject in all_ if what.address in subject.addresses]
    rows = {(subject.name, what.name): Row(subject.name, what.name) for subject, what in wanted}
    task = progress.add_task("measuring", total=rounds * len(wanted))
    for _ in range(rounds):
        for subject, what in wanted:
            row = rows[subject.name, what.name]
            row.rounds.append(await measured_once(subject, what, seconds, store_pid))
            progress.advance(task)
    return list(rows.values())


def table_of(rows: Sequence[Row]) -> Table:
    """One line a row, nginx as the measure."""
    table = Table("", "", "CPU us", "range", "x nginx", "store us", "p50 ms", "p99 ms", "first byte ms")
    nginx = {row.measured: row.median("cpu_us") for row in rows if row.subject == "nginx"}
    nginx |= {f"list of {tools}, {hidden} hidden": nginx.get(f"list of {tools}", 0) for tools, hidden in LISTS.items()}
    for row in rows:
        table.add_row(row.measured, row.subject, *_cells(row, nginx))
    return table


def _cells(row: Row, nginx: Mapping[str, float]) -> Iterable[str]:
    costs = [each.cpu_us for each in row.rounds]
    measure = nginx.get(row.measured, 0)
    if row.subject == "direct":
        yield from ("", "", "", "")
    else:
        yield from (f"{row.median('cpu_us'):.0f}", f"{min(costs):.0f}-{max(costs):.0f}")
        yield f"{row.median('cpu_us') / measure:.1f}" if measure else ""
        yield f"{row.median('store_cpu_us'):.0f}" if row.subject.startswith("Sluicegate") else ""
    yield from (f"{row.median(name):.2f}" for name in ("p50_ms", "p99_ms", "first_byte_p50_ms"))


async def measure(chosen: argparse.Namespace, console: Console) -> None:
    """Run everything, print it, and write it down."""
    subjects.stay_on_core(subjects.ENDS_CORE)
    with tempfile.TemporaryDirectory() as folder, Progress(console=Console(stderr=True), transient=True) as progress:
        async with started(Path(folder)) as (all_, store_pid):
            between = [subject for subject in all_ if subject.process is not None]
            idle = {subject.name: subject.resident_bytes() for subject in between}
            # first, since what a large list has left behind would hold many streams
            memory = [await streams.measured(subject, chosen.streams) for subject in between]
            rows = await rows_of(all_, store_pid, chosen.rounds, chosen.seconds, progress)
            one, other = (subject for subject in between if subject.name.startswith("Sluicegate"))
            enforced = [await enforcement.measured(*pair, chosen.flips) for pair in ((one, other), (other, one))]
    for table in (table_of(rows), streams.table_of(memory, idle), enforcement.table_of(enforced)):
        console.print(table)
    if chosen.json is not None:
        figures = {"rows": list(map(asdict, rows)), "streams": list(map(asdict, memory)), "idle_bytes": idle}
        figures |= {"enforcement": list(map(asdict, enforced))}
        chosen.json.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")


def main(given: Sequence[str] | None = None) -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(prog="bench.proxying", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="how often every subject is measured")
    parser.add_argument("--seconds", type=float, default=2.0, help="for which each measurement asks")
    parser.add_argument("--streams", type=int, default=900, help="open streams whose memory is measured")
    parser.add_argument("--flips", type=int, default=100, help="switches whose enforcement is timed")
    parser.add_argument("--json", type=Path, help="file that gets all figures")
    asyncio.run(measure(parser.parse_args(given), Console(width=140)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

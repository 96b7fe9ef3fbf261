"""What happens, counted for Prometheus: GET /metrics.

Source: DESIGN 1 and 5 (decisions are counted, names of tools that nobody has listed as `other`). Every name, its unit
and its labels are listed in docs/operations.md. A registry of its own, so that two applications in one process do not
count into each other.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, Metric

from registry.access import Refusal
from registry.mirroring import MirrorState, MirrorStatus
from registry.model import ServerPolicy

PATH = "/metrics"

MOST_TOOLS = 1_000
"""Pairs of server and tool with a series of their own; each is kept for ever."""

_OTHER = "other"
_FAST_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1)
_SLOW_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_AGES_S = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)


class Metrics:
    """Implements `proxy.ports.Meter`, and what the registry reports to."""

    def __init__(self) -> None:
        own = self._registry = CollectorRegistry(auto_describe=True)
        ProcessCollector(registry=own)
        GCCollector(registry=own)
        self._requests = self._counter(
            "http_requests", "Requests answered, by surface and status.", "surface", "status"
        )
        self._decisions = self._counter("decisions", "Decisions on messages; allowed is a reason too.", "reason")
        self._refusals = self._counter("tool_refusals", "Refused calls.", "server", "tool")
        self._refreshes = self._counter("refreshes", "Refreshes of tools, by outcome.", "outcome")
        self._streams = Gauge("sluicegate_open_streams", "Streams that nobody waits for the end of.", registry=own)
        self._added = self._histogram("added_seconds", "Our own share of an exchange's time.", _FAST_S)
        self._waited = self._histogram("downstream_seconds", "Time to the head of a downstream's answer.", _SLOW_S)
        self._reads = self._histogram("policy_read_seconds", "Reads of the store for decisions.", _FAST_S)
        self._batches = self._histogram("policy_read_questions", "Questions that one read answers.", _BATCHES)
        self._ages = self._histogram("policy_age_seconds", "Age of facts that are used again.", _AGES_S)
        self._tools: set[tuple[str, str]] = set()

    def decided(self, server: ServerPolicy | None, permitted: int, refusals: Sequence[Refusal]) -> None:
        """As Meter.decided."""
        if permitted:
            self._decisions.labels("allowed").inc(permitted)
        for refusal in refusals:
            self._decisions.labels(refusal.reason.value).inc()
            if server is not None and refusal.tool is not None:
                self._refusals.labels(*self._named(server, refusal.tool)).inc()

    def relayed(self, added_s: float, waited_s: float) -> None:
        """As Meter.relayed."""
        self._added.observe(added_s)
        self._waited.observe(waited_s)

    def streams(self, step: int) -> None:
        """As Meter.streams."""
        self._streams.inc(step)

    def read(self, questions: int, took_s: float) -> None:
        """The store was read for decisions."""
        self._reads.observe(took_s)
        self._batches.observe(questions)

    def used_again(self, age_s: float) -> None:
        """Facts of an earlier read were decided on."""
        self._ages.observe(age_s)

    def refreshed(self, succeeded: bool) -> None:
        """A downstream was asked for its tools."""
        self._refreshes.labels("succeeded" if succeeded else "failed").inc()

    def watch(self, statuses: Callable[[], Iterable[MirrorStatus]]) -> None:
        """Show the mirrors as they are at each scrape."""
        self._registry.register(_Mirrors(statuses))

    def counted(self) -> Middleware:
        """A middleware that counts what is answered."""

        @web.middleware
        async def counted(request: web.Request, handler: Handler) -> web.StreamResponse:
            response = await handler(request)
            self._requests.labels(_surface(request.path), str(response.status)).inc()
            return response

        return counted

    def exposition(self) -> web.Response:
        """All of it, in the text format."""
        return web.Response(
            body=generate_latest(self._registry),
            headers={"Content-Type": CONTENT_TYPE_LATEST, "Cache-Control": "no-store"},
        )

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"sluicegate_{name}", text, labels, registry=self._registry)

    def _histogram(self, name: str, text: str, buckets: Sequence[float]) -> Histogram:
        return Histogram(f"sluicegate_{name}", text, buckets=buckets, registry=self._registry)

    def _named(self, server: ServerPolicy, tool: str) -> tuple[str, str]:
        """Labels that nobody but owners and operators can make more of."""
        known = server.disabled_tools | server.retired_disabled_tools | server.read_only_tools
        pair = (server.path, tool if tool in known else _OTHER)
        if pair not in self._tools and len(self._tools) >= MOST_TOOLS:
            return _OTHER, _OTHER
        self._tools.add(pair)
        return pair


class _Mirrors:
    """Reads the mirrors when it is asked, and not before."""

    def __init__(self, statuses: Callable[[], Iterable[MirrorStatus]]) -> None:
        self._statuses = statuses

    def collect(self) -> Iterator[Metric]:
        families = {
            "up": GaugeMetricFamily("sluicegate_mirror_up", "1 while the mirror is up.", labels=["mirror"]),
            "objects": GaugeMetricFamily("sluicegate_mirror_objects", "Objects it holds.", labels=["mirror"]),
            "drift": GaugeMetricFamily("sluicegate_mirror_drift", "Objects that differed.", labels=["mirror"]),
            "pending": GaugeMetricFamily("sluicegate_mirror_pending", "Servers that wait.", labels=["mirror"]),
            "lag": GaugeMetricFamily("sluicegate_mirror_lag_seconds", "Age of the oldest.", labels=["mirror"]),
        }
        for status in self._statuses():
            values = (status.state is MirrorState.UP, status.objects, status.drift, status.pending, status.lag_s)
            for family, value in zip(families.values(), values, strict=True):
                family.add_metric([status.name], float(value))
        yield from families.values()

    def describe(self) -> Iterable[Metric]:
        return ()


def _surface(path: str) -> str:
    """By the part of the address that is ours: what a stranger writes behind it makes no series."""
    first = path.split("/", 2)[1] if path.startswith("/") else ""
    return {"proxy": "proxy", "mcp": "gateway", "api": "api"}.get(first, "operations")

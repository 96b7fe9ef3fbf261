"""Shows on a terminal how far the indexing of tools is. Elsewhere a line in the log says when it is done."""

import sys

import structlog
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

log = structlog.get_logger(__name__)

_WORTH_SHOWING = 100
"""Texts; fewer are done before anybody has read a bar."""


class IndexingProgress:
    """A bar on standard error while more than a moment's work is to be done."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def tell(self, done: int, total: int) -> None:
        """`done` of `total` texts have their vectors."""
        if total >= _WORTH_SHOWING and self._console.is_terminal:
            self._show(done, total)
        if done >= total:
            self._end()
            log.info("vectors.ready", texts=total)

    def _show(self, done: int, total: int) -> None:
        if self._bar is None:
            columns = (TextColumn("Indexing tools"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=self._console, transient=True)
            self._task = self._bar.add_task("tools", total=total)
            self._bar.start()
        if self._task is not None:
            self._bar.update(self._task, completed=done, total=total)

    def _end(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = self._task = None
        sys.stderr.flush()

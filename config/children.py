"""A child process: dies with us, says when it is ready, ends in order.

States: spawned -> ready (a line of its output said so) -> exited. It has a session of its own, so that a Ctrl-C at
the terminal reaches us alone and we decide the order of the end. Everything it prints is read, since a full pipe
would stop it, and logged.
"""

import asyncio
import os
import re
import signal
import sys
import weakref
from collections import deque
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import structlog

from config import leash
from config.environment import environment_for_children
from config.errors import StartFailed

log = structlog.get_logger(__name__)

_READY_TIMEOUT_S = 30.0
"""Far above the second that a start takes, since a recovery of a large store comes before it."""

_STOP_TIMEOUT_S = 5.0
"""Then it is killed: our own end must not hang on a child that is frozen."""

_MAX_LINE_BYTES = 1 << 20
"""A longer line of output is dropped, not kept in memory."""

_LAST_LINES = 3
"""How much of what it said last goes into the sentence about its failure."""


_spawned: "weakref.WeakSet[Child]" = weakref.WeakSet()
"""Every child of this process that somebody still holds."""


def kill_all() -> None:
    """End all children at once; for an end that waits for nothing."""
    for child in _spawned:
        child.kill()


class ChildExited(StartFailed):
    """A child that we need has ended on its own."""


class Child:
    """One running child. Made by `spawn`."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self.pid = process.pid
        self._process = process
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
        self._drain: asyncio.Task[None] | None = None
        _spawned.add(self)

    @classmethod
    async def spawn(cls, name: str, command: Sequence[str | Path]) -> "Child":
        """Start `command`; when we die without a word, it is killed.

        Killed, not asked: a store that hangs in its own end would outlive us, and what it acknowledged is on the disk.

        Raises:
            StartFailed: there is no such program.
        """
        _check_program(name, Path(command[0]))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", leash.__file__, str(os.getpid()), str(int(signal.SIGKILL))),
            *map(str, command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environment_for_children(),
            start_new_session=True,
            limit=_MAX_LINE_BYTES,
        )
        return cls(name, process)

    async def ready(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Wait for the first line of output that matches; from then on its output goes to the log.

        Raises:
            StartFailed: it ended first, or took too long.
        """
        try:
            async with asyncio.timeout(_READY_TIMEOUT_S):
                async for line in self._lines():
                    if found := pattern.search(line):
                        self._drain = asyncio.create_task(self._log_lines())
                        return found
        except TimeoutError:
            raise StartFailed(f"The {self.name} was not ready within {_READY_TIMEOUT_S:.0f} s.") from None
        raise StartFailed(
            f"The {self.name} ended before it was ready. It said last: {' | '.join(self._last) or 'nothing'}"
        )

    async def exited(self) -> None:
        """Wait until it ends on its own, then raise ChildExited."""
        code = await self._process.wait()
        log.error("child.exited", child=self.name, code=code, said=list(self._last))
        raise ChildExited(f"The {self.name} ended with exit code {code}, so Sluicegate ends too; start it again.")

    async def stop(self) -> None:
        """Ask it to end, wait, kill it if it does not. Harmless when it has ended."""
        if self._process.returncode is None:
            self._process.terminate()
        try:
            async with asyncio.timeout(_STOP_TIMEOUT_S):
                await self._process.wait()
        except TimeoutError:
            log.warning("child.killed", child=self.name)
            self.kill()
            await self._process.wait()
        if self._drain is not None:
            await self._drain

    def kill(self) -> None:
        """End it and its own children at once."""
        if self._process.returncode is None:
            os.killpg(self.pid, signal.SIGKILL)

    async def _log_lines(self) -> None:
        async for line in self._lines():
            log.debug("child.said", child=self.name, line=line)

    async def _lines(self) -> AsyncIterator[str]:
        stream = self._process.stdout
        while stream is not None:
            try:
                raw = await stream.readline()
            except ValueError:
                continue  # over the limit; `readline` has dropped it
            if not raw:
                return
            self._last.append(raw.decode("utf-8", "backslashreplace").rstrip())
            yield self._last[-1]


def _check_program(name: str, program: Path) -> None:
    if not program.is_file():
        raise StartFailed(f"The {name} cannot start: {program} is missing; run `make install` again.")

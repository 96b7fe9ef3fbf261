"""A Sluicegate as a process of its own, as a person starts it."""

import asyncio
import contextlib
import os
import re
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from config.environment import environment_for_children

ROOT = Path(__file__).parents[2]


@dataclass
class Ended:
    """A process that has ended, and all it said."""

    code: int
    stdout: str
    stderr: str


class Sluicegate:
    """One running process. Its stdout is read up to the last line of the greeting; its stderr is a file.

    A file and no pipe, since nobody reads while it runs, and a full pipe would stop it.
    """

    def __init__(self, process: asyncio.subprocess.Process, errors: IO[bytes]) -> None:
        self.process = process
        self.greeting = ""
        self._errors = errors

    async def ready(self) -> None:
        """Read the greeting."""
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.greeting += line.decode()
            if line.startswith(b"Ctrl-C"):
                return
        raise AssertionError(f"ended before it was ready: {await self.ended()}")

    def said(self) -> str:
        """What it has written to stderr so far."""
        self._errors.seek(0)
        return self._errors.read().decode()

    @property
    def base_url(self) -> str:
        """Where it listens."""
        return self._said(r"ready on (\S+)") or ""

    @property
    def agent_key(self) -> str:
        """The key in the client configuration."""
        return self._said(r'"Bearer (sg_\S+)"') or ""

    @property
    def admin_key(self) -> str | None:
        """The key in the command for the owner, None when none is shown."""
        return self._said(r'Authorization: Bearer (sg_\S+)" \\')

    def _said(self, pattern: str) -> str | None:
        found = re.search(pattern, self.greeting)
        return found[1] if found else None

    def children(self) -> list[int]:
        """The ids of its children (Linux)."""
        return list(map(int, Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()))

    async def end(self, number: int = signal.SIGINT) -> Ended:
        """Send a signal and wait for the end."""
        self.process.send_signal(number)
        return await self.ended()

    async def ended(self) -> Ended:
        """Wait for the end."""
        out, _ = await self.process.communicate()
        return Ended(self.process.returncode or 0, self.greeting + out.decode(), self.said())


@contextlib.asynccontextmanager
async def started(*arguments: str, **settings: object) -> AsyncIterator[Sluicegate]:
    """Start `sluicegate ARGUMENTS` with these settings, on a free port if none is given. Left running, it is killed."""
    errors = tempfile.TemporaryFile()  # noqa: SIM115  closed below, when its writer has ended
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "config.main", *arguments),
        cwd=ROOT,
        env=environment({"listen": "127.0.0.1:0", **settings}),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=errors,
    )
    try:
        yield Sluicegate(process, errors)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
        errors.close()


def environment(settings: Mapping[str, object]) -> dict[str, str]:
    """Of a process with these settings alone."""
    return environment_for_children() | {f"SLUICEGATE_{name.upper()}": str(value) for name, value in settings.items()}


async def gone(pids: list[int]) -> None:
    """Wait until these processes have ended (Linux)."""
    async with asyncio.TaskGroup() as group:
        for pid in pids:
            group.create_task(_gone(pid))


async def _gone(pid: int) -> None:
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(process, ended.set)
    await ended.wait()
    asyncio.get_running_loop().remove_reader(process)
    os.close(process)

"""Ends a store that an earlier run of ours left behind.

Source: proc(5), pidfd_open(2). On Linux a child dies with us (see `leash`) unless it is frozen or busy; elsewhere it
may survive a kill -9 of its parent. Where there is no /proc nothing is ended, since a process id alone proves nothing:
then the store's own lock on its folder refuses the new one.

Invariant: a process is ended only if its id, its start time and its command line are those that we noted.
"""

import asyncio
import json
import os
import signal
from pathlib import Path

import structlog

from config import private

log = structlog.get_logger(__name__)

_TERM_TIMEOUT_S = 5.0
"""It closes its files in well under a second; one that is frozen never will."""


def note(file: Path, pid: int) -> None:
    """Remember that this process is ours."""
    private.write(file, json.dumps({"pid": pid, "started": _start_time(pid)}))


def forget(file: Path) -> None:
    """The process has ended."""
    file.unlink(missing_ok=True)


async def end(file: Path, storage: Path) -> None:
    """End the process noted in `file` if it still runs and works on `storage`; then forget it."""
    noted = json.loads(private.read(file) or "{}")
    pid = noted.get("pid")
    if pid and noted.get("started") and noted["started"] == _start_time(pid) and _works_on(pid, storage):
        log.warning("store.leftover_ended", pid=pid)
        await _end(pid)
    forget(file)


def _start_time(pid: int) -> str | None:
    """Clock ticks from boot to its start, which with the id names a process for good; None when there is none."""
    stat = _proc(pid, "stat")
    return stat.rpartition(b")")[2].split()[19].decode() if stat else None


def _works_on(pid: int, storage: Path) -> bool:
    return os.fsencode(storage) in _proc(pid, "cmdline").split(b"\0")


def _proc(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


async def _end(pid: int) -> None:
    process = os.pidfd_open(pid)
    gone = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(process, gone.set)  # readable once the process has ended
    try:
        signal.pidfd_send_signal(process, signal.SIGTERM)
        async with asyncio.timeout(_TERM_TIMEOUT_S):
            await gone.wait()
    except TimeoutError:
        signal.pidfd_send_signal(process, signal.SIGKILL)
        await gone.wait()
    finally:
        loop.remove_reader(process)
        os.close(process)

"""Children: ready when they say so, ended in order, never outliving us."""

import asyncio
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from config import children, leftover
from config.children import Child, ChildExited
from config.errors import StartFailed
from tests.need import need

READY = re.compile(r"ready (\d+)")
LASTING = "import signal, sys; print('hello'); print('ready 7', flush=True); signal.pause()"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {LASTING}"


@pytest.fixture
def _linux() -> None:
    """/proc, pidfd_open(2) and PR_SET_PDEATHSIG."""
    need("linux", present=sys.platform == "linux")


linux = pytest.mark.usefixtures("_linux")


async def spawned(program: str, *arguments: str) -> Child:
    return await Child.spawn("helper", [sys.executable, "-u", "-c", program, *arguments])


async def test_a_child_is_ready_when_a_line_of_its_output_matches() -> None:
    child = await spawned(LASTING)

    assert (await child.ready(READY))[1] == "7"

    await child.stop()


async def test_a_child_that_ends_before_it_is_ready_fails_with_what_it_said() -> None:
    child = await spawned("print('no such luck'); raise SystemExit(3)")

    with pytest.raises(StartFailed, match=r"^The helper ended before it was ready. It said last: no such luck$"):
        await child.ready(READY)

    await child.stop()


async def test_a_program_that_is_missing_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(
        StartFailed, match=r"^The helper cannot start: .*nothing is missing; run `make install` again\.$"
    ):
        await Child.spawn("helper", [tmp_path / "nothing"])


async def test_a_child_that_ends_on_its_own_is_an_error_with_its_exit_code() -> None:
    child = await spawned("print('ready 1', flush=True); raise SystemExit(3)")
    await child.ready(READY)

    with pytest.raises(ChildExited, match=r"^The helper ended with exit code 3, "):
        await child.exited()

    await child.stop()


async def test_a_child_that_ignores_the_request_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "_STOP_TIMEOUT_S", 0.1)
    child = await spawned(STUBBORN)
    await child.ready(READY)

    await child.stop()

    with pytest.raises(ChildExited, match=f"exit code {-signal.SIGKILL}"):
        await child.exited()


async def test_killing_all_ends_every_child_at_once() -> None:
    child = await spawned(STUBBORN)
    await child.ready(READY)

    children.kill_all()

    with pytest.raises(ChildExited, match=f"exit code {-signal.SIGKILL}"):
        await child.exited()


async def test_a_child_that_says_a_lot_is_not_stopped_by_a_full_pipe() -> None:
    flood = "print('x' * (3 << 20)); print('y\\n' * (1 << 16)); raise SystemExit(5)"
    child = await spawned(f"print('ready 1'); {flood}")
    await child.ready(READY)

    with pytest.raises(ChildExited, match="exit code 5"):
        await child.exited()

    await child.stop()


@linux
async def test_a_child_dies_when_its_parent_is_killed() -> None:
    parent_program = (
        "import asyncio, re, sys\n"
        "from config.children import Child\n"
        "async def main():\n"
        f"    child = await Child.spawn('c', [sys.executable, '-u', '-c', {LASTING!r}])\n"
        "    await child.ready(re.compile('ready'))\n"
        "    print(child.pid, flush=True)\n"
        "    await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", parent_program, stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[3]
    )
    assert parent.stdout is not None
    orphan = int(await parent.stdout.readline())
    gone = asyncio.create_task(_end_of(orphan))

    parent.kill()

    await parent.wait()
    await gone


@linux
async def test_a_process_left_behind_is_ended_at_the_next_start(tmp_path: Path) -> None:
    child = await spawned(LASTING, str(tmp_path / "store"))
    await child.ready(READY)
    leftover.note(tmp_path / "pid", child.pid)

    await leftover.end(tmp_path / "pid", tmp_path / "store")

    with pytest.raises(ChildExited, match=f"exit code {-signal.SIGTERM}"):
        await child.exited()
    assert not (tmp_path / "pid").exists()


@linux
async def test_a_frozen_process_left_behind_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftover, "_TERM_TIMEOUT_S", 0.1)
    child = await spawned(STUBBORN, str(tmp_path / "store"))
    await child.ready(READY)
    leftover.note(tmp_path / "pid", child.pid)

    await leftover.end(tmp_path / "pid", tmp_path / "store")

    with pytest.raises(ChildExited, match=f"exit code {-signal.SIGKILL}"):
        await child.exited()


@linux
@pytest.mark.parametrize("foreign", ["folder", "start time"])
async def test_a_process_that_is_not_ours_is_left_alone(foreign: str, tmp_path: Path) -> None:
    """The id alone proves nothing: it may have been given to another process since."""
    child = await spawned(LASTING, str(tmp_path / "store"))
    await child.ready(READY)
    leftover.note(tmp_path / "pid", child.pid)
    if foreign == "start time":
        (tmp_path / "pid").write_text(f'{{"pid": {child.pid}, "started": "1"}}')

    await leftover.end(tmp_path / "pid", tmp_path / ("store" if foreign == "start time" else "other"))

    watch = asyncio.create_task(child.exited())
    done, _ = await asyncio.wait({watch}, timeout=0.2)
    assert not done
    watch.cancel()
    await child.stop()


async def test_nothing_noted_is_nothing_to_end(tmp_path: Path) -> None:
    await leftover.end(tmp_path / "pid", tmp_path / "store")


async def _end_of(pid: int) -> None:
    process = os.pidfd_open(pid)
    gone = asyncio.Event()
    asyncio.get_running_loop().add_reader(process, gone.set)
    try:
        await gone.wait()
    finally:
        asyncio.get_running_loop().remove_reader(process)
        os.close(process)

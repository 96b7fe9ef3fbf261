"""Files and folders that only their owner may read.

Invariant: a file is there whole or not at all, and never with wider rights than 0600, not even for a moment.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from config.errors import StartFailed


def make_folder(path: Path) -> Path:
    """Create the folder (0700) when it is missing; returns its absolute path.

    Raises:
        StartFailed: it cannot be made or written to.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as exc:
        raise StartFailed(f"The data folder {path} cannot be made: {exc.strerror}; set SLUICEGATE_DATA_DIR.") from exc
    if not os.access(path, os.W_OK | os.X_OK):
        raise StartFailed(f"The data folder {path} cannot be written to; set SLUICEGATE_DATA_DIR or its rights.")
    return path.resolve()


def write(path: Path, text: str) -> None:
    """Put `text` there, in place of what was, on the disk before this returns."""
    scratch = path.with_name(path.name + ".new")
    scratch.unlink(missing_ok=True)
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)


def read(path: Path) -> str | None:
    """The text, None when there is no such file."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder for this process alone; the kernel lets go of it however we end.

    Raises:
        StartFailed: another process holds it.
    """
    with open(folder / "lock", "w", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StartFailed(
                f"Another sluicegate is using {folder}; end it, or set SLUICEGATE_DATA_DIR to another folder."
            ) from None
        yield

"""Run a command that ends when its parent does: `leash.py PARENT_PID SIGNAL COMMAND [ARGUMENT...]`.

Source: prctl(2), PR_SET_PDEATHSIG, which execve(2) keeps. Linux only; elsewhere the command runs without a leash.

A program of its own, not a `preexec_fn`: that would run Python between fork and exec, where a lock held by another
thread of the parent (the driver has several) is held for ever. It uses the standard library alone, so that
`python -I -S` starts it in milliseconds.
"""

import ctypes
import os
import sys

_PR_SET_PDEATHSIG = 1
"""From linux/prctl.h."""


def main(arguments: list[str]) -> None:
    """Put this process on the leash, then become the command."""
    parent, signal_number, *command = arguments
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal_number), 0, 0, 0)
        if os.getppid() != int(parent):
            sys.exit(1)  # it died before the call above, so no signal would ever come
    os.execv(command[0], command)  # noqa: S606  no shell is the point


if __name__ == "__main__":
    main(sys.argv[1:])

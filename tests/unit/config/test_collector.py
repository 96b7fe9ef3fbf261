"""What a start has made is not looked at again by the garbage collector."""

import gc
import subprocess
import sys


def test_what_there_is_is_frozen_and_what_comes_is_collected() -> None:
    """In a process of its own: it is for good."""
    program = """
import gc, weakref
from config.collector import settle

class Cycle:
    def __init__(self):
        self.itself = self

settle()
assert gc.get_freeze_count() > 1_000, gc.get_freeze_count()
assert gc.get_threshold()[0] > 5_000
gone = weakref.ref(Cycle())
gc.collect()
assert gone() is None
"""
    assert gc.get_freeze_count() == 0, "not in this one"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")

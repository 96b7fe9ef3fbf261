"""Keeps Python's garbage collector from looking over and over at what lives as long as the process does."""

import gc

_THRESHOLDS = (10_000, 20, 20)
"""Of the generations. One exchange makes some hundred containers: by default (700) the collector would run every few of
them, and its longest runs hold every caller up for a tenth of a second."""


def settle() -> None:
    """Call it once, when everything is made that stays."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)

"""Decoded JSON with Python's own numbers, for readers that cannot do with their spelling."""

import math
from typing import Any

from proxy.jsontext import Number


def plain(value: Any) -> Any:
    """A decoded value with Python's own numbers in place of `Number`.

    Raises:
        ValueError: a number that no float holds.
    """
    match value:
        case Number():
            return _number(value)
        case dict():
            return {name: plain(item) for name, item in value.items()}
        case list():
            return [plain(item) for item in value]
    return value


def _number(text: str) -> int | float:
    try:
        number = int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:
        raise ValueError("a number is out of range") from None  # thousands of digits, which Python does not read
    if isinstance(number, float) and not math.isfinite(number):
        raise ValueError("a number is out of range")
    return number

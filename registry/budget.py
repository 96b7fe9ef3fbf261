"""Keeps an answer to a search within a size that a model can read. Pure.

Source: issue "Discovery" (a size budget per answer, with what was cut said). Schemas are what is large, and the first
results are what is wanted: they get theirs first.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from registry.entries import Tool

ANSWER_BYTES = 64 * 1024
"""Of the schemas of one answer as JSON: about 16,000 tokens, which every model in use can take."""

DESCRIPTION_CHARS = 4_000
"""Of one description."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown of one tool. `cut` names the members that are shortened or left out."""

    description: str
    input_schema: Mapping[str, Any] | None
    cut: tuple[str, ...] = ()


def shown(tools: Iterable[Tool], budget_bytes: int = ANSWER_BYTES) -> Iterator[Shown]:
    """The tools in order, as much of each as still fits."""
    left = budget_bytes
    for tool in tools:
        size = len(json.dumps(tool.input_schema))
        fits = size <= left
        left -= size if fits else 0
        is_long = len(tool.description) > DESCRIPTION_CHARS
        cut = ("description",) * is_long + ("inputSchema",) * (not fits)
        yield Shown(tool.description[:DESCRIPTION_CHARS], tool.input_schema if fits else None, cut)

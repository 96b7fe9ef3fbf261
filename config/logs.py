"""Logs: readable on a terminal, JSON lines elsewhere, always on standard error, never with a credential in them.

Events of structlog and records of the standard library (aiohttp, pymongo, asyncio) take the same way out. The
scrubber is the last thing before the renderer, so that it sees tracebacks too; it is a net, no licence.
"""

import logging
import re
import sys
from collections.abc import Mapping
from typing import Any, Literal, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

_SECRETS = (
    (re.compile(r"sg_[A-Za-z0-9_-]{20,}"), "sg_***"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[^\s\"',;]+"), r"\1 ***"),
    (re.compile(r"(?i)(?<![a-z0-9+.-])([a-z][a-z0-9+.-]{0,30}://)[^\s/@]++@"), r"\1***@"),  # bounded, so linear
)
"""Our keys, credentials of `Authorization`, and the user part of any address (`mongodb://user:password@host`)."""


_MAX_TEXT = 20_000
"""Characters of one value: a traceback fits, and a client cannot fill the disk with the name of a tool."""


def configure(level: str, form: Literal["auto", "console", "json"], stream: TextIO | None = None) -> None:
    """Set up logging for this process; a second call replaces the first.

    Args:
        level: least level that is logged: debug, info, warning, error.
        form: `auto` is `console` when `stream` is a terminal, else `json`.
        stream: standard error when None.
    """
    out = stream or sys.stderr
    console = form == "console" or (form == "auto" and out.isatty())
    least = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*_shared(), structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(least),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(_formatter(console, colors=out.isatty()))
    logging.basicConfig(handlers=[handler], level=least, force=True)
    for noisy, level_of_it in _LIBRARIES.items():
        logging.getLogger(noisy).setLevel(max(least, level_of_it))


_LIBRARIES = {
    "asyncio": logging.WARNING,
    "grpc": logging.WARNING,
    "httpcore": logging.WARNING,
    "httpcore2": logging.WARNING,
    "httpx": logging.WARNING,  # a line for each request
    "httpx2": logging.WARNING,
    "pymongo": logging.WARNING,
    "client": logging.CRITICAL,  # this and the next quote what downstreams say; what they raise we log ourselves
    "mcp": logging.CRITICAL,
    "weaviate-client": logging.CRITICAL,
}
"""Loggers of libraries, and the least of theirs that is of use to an operator."""


def scrub(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """A structlog processor: replaces whatever looks like a credential, at any depth, keys included."""
    return {_clean(name): _clean(value) for name, value in event.items()}


def _clean(value: Any) -> Any:
    match value:
        case str():
            return _clean_text(value)
        case bytes():
            return _clean_text(value.decode("utf-8", "backslashreplace"))
        case Mapping():
            return {_clean(name): _clean(item) for name, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_clean(item) for item in value]
        case None | bool() | int() | float():
            return value
        case _:
            return _clean_text(str(value))


def _clean_text(text: str) -> str:
    text = text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + "..."
    for pattern, stand_in in _SECRETS:
        text = pattern.sub(stand_in, text)
    return text


def _shared() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]


def _formatter(console: bool, *, colors: bool) -> structlog.stdlib.ProcessorFormatter:
    renderer: Processor = structlog.processors.JSONRenderer()
    if console:
        plain = structlog.dev.plain_traceback  # the rich one prints local variables, and with them secrets
        renderer = structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain)
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*_shared(), structlog.stdlib.add_logger_name],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            scrub,
            renderer,
        ],
    )

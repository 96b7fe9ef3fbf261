"""Where Weaviate is, and the driver that is loaded to talk to it."""

import asyncio
import importlib
from dataclasses import dataclass, field

from registry.errors import IndexUnusable


@dataclass(frozen=True, slots=True)
class Address:
    """Where Weaviate is, and how long it may take.

    `url` is `http(s)://host[:port]`, `grpc` is `host:port`; https means TLS for both. `timeout_s` bounds each request.
    """

    url: str
    grpc: str
    api_key: str | None = field(repr=False)
    timeout_s: float


async def load_driver() -> None:
    """Import it in a thread, since it takes about a second. Raises IndexUnusable where it is not installed."""
    try:
        await asyncio.to_thread(importlib.import_module, "weaviate")
    except ImportError as exc:
        raise IndexUnusable(
            "searching in Weaviate needs its client: install Sluicegate with the extra `weaviate`"
        ) from exc

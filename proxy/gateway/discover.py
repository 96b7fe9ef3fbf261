"""`discover_servers`: what was found, for a program and for a model."""

from collections.abc import Iterator, Mapping
from typing import Any

from proxy.gateway.answers import Json, error_result, text_result
from proxy.gateway.asking import Asking
from proxy.gateway.definitions import DISCOVER, BadArguments, discover_arguments
from proxy.jsonnumbers import plain
from proxy.ports import Finder, FindRefused

_TEXT_CHARS = 300
"""Of a description in the text form; the structured form has all of it."""


class Discoverer:
    """Searches for tools."""

    def __init__(self, finder: Finder) -> None:
        self._finder = finder

    async def run(self, asking: Asking, params: Mapping[str, Any]) -> Json:
        """One `tools/call` of `discover_servers`. Raises PolicyUnknown."""
        try:
            wanted = discover_arguments(plain(params.get("arguments", {})))
        except (BadArguments, ValueError) as exc:
            return error_result(f"{DISCOVER} was not run: {exc}")
        try:
            found = await self._finder.find(
                asking.key_hash, wanted.query, wanted.limit, wanted.server, include_disabled=wanted.include_disabled
            )
        except FindRefused as exc:
            return error_result(f"{DISCOVER} was not run: {exc}")
        return text_result("\n".join(_lines(found)), structured=found)


def _lines(found: Json) -> Iterator[str]:
    if not found["tools"]:
        yield "No tool was found. Say it in other words, or more generally."
    for tool in found["tools"]:
        state = "" if tool["enabled"] else f" [cannot be used: {tool['reason']}]"
        yield f"- server {tool['server']}, tool {tool['tool']}{state}: {tool['description'][:_TEXT_CHARS]}"
        if parameters := _parameters(tool.get("inputSchema")):
            yield f"  arguments: {parameters}"
    if found["truncated"]:
        yield "Some schemas were left out, since the answer would have been too large; ask for fewer tools."
    if found["degraded"]:
        yield "The search index is not available; this is the ranking of the fallback."


def _parameters(schema: Any) -> str:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        return ""
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    return ", ".join(f"{name} ({_type(about)}{', required' * (name in needed)})" for name, about in properties.items())


def _type(about: Any) -> str:
    kind = about.get("type") if isinstance(about, Mapping) else None
    return kind if isinstance(kind, str) else "any"

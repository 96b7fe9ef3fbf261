"""Where the planes meet: a port of the proxy on a use case of the registry, with the errors of one as the other's.

Source: LAYOUT (the proxy reaches use cases through its ports, wired here).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from proxy.errors import DownstreamUnreachable, DownstreamUnusable, PolicyUnknown
from proxy.ports import Addresses, Fields, FindRefused
from registry import references
from registry.access import Permit
from registry.api import views
from registry.callers import Caller
from registry.calls import CallError, CallResult, Progress, ToolCall
from registry.destinations import Destinations
from registry.discovery import Discovery, Wanted
from registry.errors import AddressRefused, DownstreamFailed, RegistryError, StoreUnavailable
from registry.freshness import FactSource
from registry.model import Asked, Facts, ServerPolicy
from registry.ports import ToolCaller

_UNKNOWN = "the policy could not be read in time, so nothing was forwarded"


class FactPolicies:
    """`proxy.ports.Policies` over what the registry knows."""

    def __init__(self, source: FactSource) -> None:
        self._source = source

    async def facts(self, asked: Asked) -> Facts:
        """As Policies.facts."""
        try:
            return await self._source.facts(asked)
        except StoreUnavailable as exc:
            raise PolicyUnknown(_UNKNOWN) from exc


class DiscoveryFinder:
    """`proxy.ports.Finder` over discovery, answering as the API does."""

    def __init__(self, discovery: Discovery, public_url: str) -> None:
        self._discovery = discovery
        self._public_url = public_url

    async def find(
        self, key_hash: str | None, query: str, limit: int, server: str | None, *, include_disabled: bool
    ) -> Mapping[str, Any]:
        """As Finder.find."""
        wanted = Wanted(query, limit, server, include_disabled)
        try:
            answer = await self._discovery.search(Caller(key_hash), wanted)
        except StoreUnavailable as exc:
            raise PolicyUnknown(_UNKNOWN) from exc
        except RegistryError as exc:
            raise FindRefused(str(exc)) from exc
        shown = views.search_answer(answer, self._public_url)
        return shown.model_dump(by_alias=True, mode="json")


class DownstreamCaller:
    """`proxy.ports.ToolCaller` over the registry's."""

    def __init__(self, caller: ToolCaller) -> None:
        self._caller = caller

    async def call(self, permit: Permit, call: ToolCall, on_progress: Progress | None = None) -> CallResult | CallError:
        """As ToolCaller.call."""
        try:
            return await self._caller.call(permit, call, on_progress)
        except DownstreamFailed as exc:
            raise DownstreamUnusable(str(exc)) from exc


def for_registry(
    values: Mapping[str, str], pseudonym: str, *, names_variable: bool
) -> Callable[[ServerPolicy], Mapping[str, str]]:
    """A server's header fields, for the registry's edges: its static credentials, and `Via`.

    It raises DownstreamFailed when a credential is not set. What is asked from here begins with us, and still says so:
    a downstream that leads back to us is known by it.

    Args:
        values: the variables that credentials may name.
        pseudonym: how this deployment calls itself.
        names_variable: the error goes to those who set it, not to those who call tools.
    """

    def fields(policy: ServerPolicy) -> Mapping[str, str]:
        try:
            return {**dict(references.filled(policy.credentials, values)), "Via": f"1.1 {pseudonym}"}
        except references.Unset as exc:
            which = f": {exc}" if names_variable else ""
            raise DownstreamFailed(f"a credential of this server is missing{which}") from exc

    return fields


def addresses_for_proxy(destinations: Destinations) -> Addresses:
    """Where the data plane may connect to; which rule refuses an address is for the log alone."""

    async def addresses(host: str, port: int) -> Sequence[str]:
        try:
            return await destinations.addresses(host, port)
        except AddressRefused as exc:
            raise DownstreamUnreachable("the downstream cannot be reached", cause=str(exc)) from exc

    return addresses


def for_proxy(values: Mapping[str, str]) -> Callable[[ServerPolicy], Fields]:
    """The same for the data plane: raises DownstreamUnusable."""

    def fields(policy: ServerPolicy) -> Fields:
        try:
            return references.filled(policy.credentials, values)
        except references.Unset as exc:
            raise DownstreamUnusable("a credential of this server is missing") from exc

    return fields

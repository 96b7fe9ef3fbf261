"""A PATCH of a server as the edit that it asks for."""

from typing import Any

from registry.api.bodies import RegistrySettingsBody, ServerPatchBody
from registry.entries import ServerEdit

_PASSING = {
    "list_ttl_ms": "list_ttl_ms",
    "downstream_timeout_s": "downstream_timeout_s",
    "pass_cookies": "passes_cookies",
}
"""Members of `registrySettings` -> fields of `registry.model.Passing`."""


def edit_of(body: ServerPatchBody) -> ServerEdit:
    """Only what the body names."""
    given = {name: getattr(body, name) for name in body.model_fields_set - {"reason", "registry_settings"}}
    if "tags" in given:
        given["tags"] = tuple(body.tags)
    if "credentials" in given:
        given["credentials"] = tuple(sorted(body.credentials.items()))
    if "registry_settings" in body.model_fields_set:
        given |= _settings(body.registry_settings)
    return ServerEdit(**given)


def _settings(body: RegistrySettingsBody) -> dict[str, Any]:
    passing = {_PASSING[name]: getattr(body, name) for name in _PASSING if name in body.model_fields_set}
    trusted = {"trusted": body.trusted} if "trusted" in body.model_fields_set else {}
    return trusted | ({"passing": passing} if passing else {})

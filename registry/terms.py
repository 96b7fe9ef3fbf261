"""On which terms servers are registered and changed, by the operator's settings.

Source: DESIGN 2 (who may register), DESIGN 7 (addresses), DESIGN 3 (credentials).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from registry import references
from registry.destinations import Destinations
from registry.errors import Invalid
from registry.model import Scope


@dataclass(frozen=True, slots=True)
class Terms:
    """On which a server is registered.

    `scope` is what it takes: `admin`, or `manage` where the operator says so. `variables` are those that credentials
    can name and that are set. `destinations` is where downstreams may be.
    """

    scope: Scope = Scope.ADMIN
    variables: Collection[str] = ()
    destinations: Destinations = field(default_factory=Destinations)


async def check_url(url: str, terms: Terms) -> None:
    """For whoever sets it, once the caller's right is known. Raises Invalid, which says which rule."""
    fault = url_fault(url) or await terms.destinations.fault(url)
    if fault is not None:
        raise Invalid(fault, field="url")


def check_credentials(credentials: Mapping[str, str], terms: Terms) -> None:
    """Raises Invalid when a template cannot be used, or names a variable that is not set."""
    if (fault := references.fault(credentials)) is not None:
        raise Invalid(fault, field="credentials")
    if unset := sorted(references.variables(credentials.items()) - set(terms.variables)):
        raise Invalid(f"the variable {unset[0]} is not set where Sluicegate runs", field="credentials")


def url_fault(url: str) -> str | None:
    """Why this cannot be a downstream's address, None when it can.

    It is absolute, `http` or `https`, of visible ASCII, and has no user information (credentials are set elsewhere and
    never shown) and no fragment (which is never sent).
    """
    if not all("!" <= char <= "~" for char in url) or "\\" in url:
        return "the url has characters that must be percent-encoded"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "the url cannot be read"
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        return "the url must be absolute, with http or https and a host"
    if "@" in parts.netloc or "#" in url:
        return "the url must have no user information and no fragment"
    return None

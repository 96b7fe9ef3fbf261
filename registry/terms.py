"""On which terms servers are registered and changed, by the operator's settings.

Source: DESIGN 2 (who may register), DESIGN 7 (addresses), DESIGN 3 (credentials).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from registry import references
from registry.destinations import Destinations
from registry.downstreams import Origin, origin, url_fault
from registry.errors import Invalid
from registry.model import Scope


@dataclass(frozen=True, slots=True)
class Terms:
    """On which a server is registered.

    `scope` is what it takes: `admin`, or `manage` where the operator says so. `variables` are those that credentials
    can name and that are set. `destinations` is where downstreams may be. `own`
    are Sluicegate's own addresses, where none is.
    """

    scope: Scope = Scope.ADMIN
    variables: Collection[str] = ()
    destinations: Destinations = field(default_factory=Destinations)
    own: frozenset[Origin] = frozenset()


async def check_url(url: str, terms: Terms) -> None:
    """For whoever sets it, once the caller's right is known. Raises Invalid, which says which rule."""
    fault = url_fault(url) or _own_fault(url, terms) or await terms.destinations.fault(url)
    if fault is not None:
        raise Invalid(fault, field="url")


def _own_fault(url: str, terms: Terms) -> str | None:
    return "the url is an address of Sluicegate itself" if origin(url) in terms.own else None


def check_credentials(credentials: Mapping[str, str], terms: Terms) -> None:
    """Raises Invalid when a template cannot be used, or names a variable that is not set."""
    if (fault := references.fault(credentials)) is not None:
        raise Invalid(fault, field="credentials")
    if unset := sorted(references.variables(credentials.items()) - set(terms.variables)):
        raise Invalid(f"the variable {unset[0]} is not set where Sluicegate runs", field="credentials")

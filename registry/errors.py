"""What can go wrong in the control plane.

RegistryError
    StoreUnavailable      the authority could not be read or written in time: not knowing means refusing
        OutcomeUnknown    a change was under way at its deadline; it may or may not have been committed
    StoreUnusable         the store is of a kind that we cannot work on; its sentence says what to do
    NotFound              no such thing, or not visible to this principal
    Forbidden             visible, but the right is missing
    Unauthenticated       no key, or not a valid one
    Conflict              the thing exists already
    PreconditionFailed    what is stored is not what the caller has seen
    Invalid               the request makes no sense; names the field
    AddressRefused        a host that may not be connected to; the message says which rule
    DownstreamFailed      a downstream did not give its tools, or no answer to a call
    IndexUnavailable      a search index is not there, or not in time; it may come back by itself
    IndexUnusable         a search index that a person has to look at: wrong key, other schema, unsupported version
    EmbedderUnusable      the embedding model is not there, or not the one that it says it is

`code` is for programs and never changes; the message is for a person.
"""


class RegistryError(Exception):
    """Base of the tree."""

    code = "error"


class StoreUnavailable(RegistryError):
    """The authority could not be read or written in time."""

    code = "store_unavailable"


class StoreUnusable(RegistryError):
    """The store is of a kind that we cannot work on; the message is one sentence that says what to do."""

    code = "store_unusable"


class OutcomeUnknown(StoreUnavailable):
    """A change was under way at its deadline; it may or may not have been committed."""

    code = "outcome_unknown"


class NotFound(RegistryError):
    """No such thing, or not visible to this principal."""

    code = "not_found"


class Unauthenticated(RegistryError):
    """No key, or one that is unknown, disabled or expired."""

    code = "key_invalid"


class Forbidden(RegistryError):
    """Visible, but the right is missing: `required_scope` or `required_permission` names it, the other is None."""

    code = "forbidden"

    def __init__(
        self, message: str, *, required_scope: str | None = None, required_permission: str | None = None
    ) -> None:
        super().__init__(message)
        self.required_scope = required_scope
        self.required_permission = required_permission


class Conflict(RegistryError):
    """The thing exists already."""

    code = "conflict"


class PreconditionFailed(RegistryError):
    """What is stored is not what the caller has seen, so nothing was overwritten."""

    code = "precondition_failed"


class Invalid(RegistryError):
    """The request makes no sense. `field` names the member at fault, None when it is no single one."""

    code = "invalid"

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class AddressRefused(RegistryError):
    """A host may not be connected to. The message says which rule, for operators and for those who set the address."""

    code = "address_refused"


class DownstreamFailed(RegistryError):
    """A downstream did not give what it was asked for; the message says why, without its address or a credential."""

    code = "downstream_failed"


class IndexUnavailable(RegistryError):
    """A search index is not there, or did not answer in time."""

    code = "index_unavailable"


class IndexUnusable(RegistryError):
    """A search index cannot be used until a person has done something; the message says what."""

    code = "index_unusable"


class EmbedderUnusable(RegistryError):
    """The embedding model cannot be used; the message says why."""

    code = "embedder_unusable"

"""A PUT of permissions as the access entries that it asks for."""

from collections.abc import Sequence

from registry.api.bodies import PermissionBody, PermissionsBody
from registry.errors import Invalid
from registry.model import AccessEntry, Permission
from registry.permissions import ROLES


def entries_of(body: PermissionsBody) -> Sequence[AccessEntry]:
    """In their order, of no server yet. Raises Invalid where the bits are not said, or said twice and differently."""
    return [_entry(number, given) for number, given in enumerate(body.permissions)]


def _entry(number: int, given: PermissionBody) -> AccessEntry:
    role = None if given.role is None else ROLES[given.role]
    bits = role if given.perm_bits is None else Permission(given.perm_bits)
    if bits is None:
        raise Invalid(f"permissions.{number}: give permBits or role", field="permissions")
    if role not in (None, bits):
        raise Invalid(f"permissions.{number}: permBits and role say different things", field="permissions")
    return AccessEntry("", given.principal_type, given.principal_id or "", bits, given.expired_at)

"""A tool list on its way, kept until it is known what of it its reader may see.

Source: DESIGN 3 (a list is filtered with the state at the time it is sent).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proxy.edits import Edit
from proxy.tools import ToolLists
from registry import access
from registry.access import Refusal
from registry.model import Facts


@dataclass(frozen=True, slots=True)
class Held:
    """A tool list that waits for facts younger than itself. Nothing after it may leave before it.

    `_may_tell_who`: the request may have told the downstream who sent it, whether with a key of ours or without.
    """

    _lists: ToolLists
    _with_edits: Callable[[Sequence[Edit]], bytes]
    _ttl_ms: int
    _may_tell_who: bool

    @property
    def names(self) -> frozenset[str]:
        """All names that the downstream lists, exact, those that are cut out too."""
        return self._lists.names

    def release(self, facts: Facts) -> bytes | Refusal:
        """The bytes to send: what came in, less what this caller may not use.

        Args:
            facts: from a read that began after the list arrived.

        Returns:
            A refusal when the caller may not reach the server any more: then the list must not leave at all.
        """
        entered = access.use_server(facts)
        if isinstance(entered, Refusal):
            return entered
        is_anonymous = facts.key is not None and facts.key.is_anonymous
        is_private = self._may_tell_who or not is_anonymous
        edits = self._lists.edits(access.usable(facts), ttl_ms=self._ttl_ms, is_private=is_private)
        return self._with_edits(edits)

"""What the control plane needs from the outside.

Every port has an in-memory twin, in `registry.memory` or, for search, `registry.localindex`, and a real edge; one
contract suite runs on both. A driver's error never comes through.
"""

from registry.ports.downstream import CatalogueSource, ToolCaller
from registry.ports.search import Embedder, FlagStore, PropertyAdder, ToolIndex, VectorCache
from registry.ports.sightings import SightingStore
from registry.ports.store import (
    AccessStore,
    ActivityStore,
    ChangeFeed,
    Health,
    KeyStore,
    LeaseStore,
    Ledger,
    PolicyReader,
    ServerStore,
    Transaction,
)

__all__ = [
    "AccessStore",
    "ActivityStore",
    "CatalogueSource",
    "ChangeFeed",
    "Embedder",
    "FlagStore",
    "Health",
    "KeyStore",
    "LeaseStore",
    "Ledger",
    "PolicyReader",
    "PropertyAdder",
    "ServerStore",
    "SightingStore",
    "ToolCaller",
    "ToolIndex",
    "Transaction",
    "VectorCache",
]

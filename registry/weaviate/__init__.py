"""The search copy in Weaviate: a collection of ours, and the flag in a collection of another registry.

Source: WEAVIATE (traps of the client, costs of writes). The driver is an extra and costs a second to import, so the two
classes here load it when they are first used; the modules behind them name it freely.

    WeaviateIndex -> ToolCollection -> Writer, Searcher --> Link --> Weaviate
    ExistingCollection -> FlagCollection ----------------------^
"""

from registry.weaviate.existing import ExistingCollection
from registry.weaviate.index import WeaviateIndex

__all__ = ["ExistingCollection", "WeaviateIndex"]

"""The search index in this process: words and vectors, in memory.

It is the default, the fallback when Weaviate is down, and what Weaviate's edge is compared with in the contract suite.
"""

from registry.localindex.index import LocalIndex

__all__ = ["LocalIndex"]

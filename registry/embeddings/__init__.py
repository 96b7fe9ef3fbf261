"""What turns texts into vectors, and keeps them.

The model is all-MiniLM-L6-v2 with 8-bit weights, run by onnxruntime: an extra (`semantic`), since it is large.
"""

from registry.embeddings.cache import NoVectors, SqliteVectors
from registry.embeddings.minilm import MiniLm

__all__ = ["MiniLm", "NoVectors", "SqliteVectors"]

"""In-memory twins of every port, for tests and for nothing else."""

from registry.memory.store import MemoryStore

__all__ = ["MemoryStore"]

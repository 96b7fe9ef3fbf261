"""The edge to the servers behind us, as a client of theirs: asks for their tools."""

from registry.downstream.client import McpCatalogue

__all__ = ["McpCatalogue"]

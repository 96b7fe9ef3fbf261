"""The edge to the servers behind us, as a client of theirs: asks for their tools, and calls one."""

from registry.downstream.caller import McpToolCaller
from registry.downstream.client import McpCatalogue
from registry.downstream.lookup import lookup
from registry.downstream.network import Network

__all__ = ["McpCatalogue", "McpToolCaller", "Network", "lookup"]

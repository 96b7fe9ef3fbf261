"""The command line of a person or a script, over the REST API: it decides nothing and reads no store."""

from registry.cli.mirror import mirror

__all__ = ["mirror"]

"""The control plane over REST, mounted at /api/v1. camelCase lives here and nowhere else."""

from registry.api.application import application
from registry.api.context import Services

__all__ = ["Services", "application"]

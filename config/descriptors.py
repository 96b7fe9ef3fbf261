"""How many files this process may have open: each connection is one, and each stream has another one downstream.

Source: getrlimit(2). Shells start programs with a soft limit of 1,024, for the sake of those that use select(2), which
we do not; up to the hard limit it is ours to set. Below it new connections fail at random, on either side of us.
"""

import resource

import structlog

log = structlog.get_logger(__name__)

OWN = 1_000
"""Kept for the store, the search index, sessions of the gateway, and files."""


def allow(wanted: int) -> None:
    """Raise the soft limit to `wanted`, or as far as the hard limit lets us; then the log says so."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    reachable = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < reachable:
        resource.setrlimit(resource.RLIMIT_NOFILE, (reachable, hard))
    if reachable < wanted:
        log.warning("descriptors.few", wanted=wanted, limit=reachable)

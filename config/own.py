"""Where Sluicegate itself is reached: no downstream is there.

Source: DESIGN 2 (our own address is refused as a downstream). Whatever else leads back to us is noticed by `Via`.
"""

import socket

from config.settings import Settings
from registry.downstreams import Origin, host_form, origin

_EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104  compared with, never listened on
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def own_origins(settings: Settings) -> frozenset[Origin]:
    """The addresses in the settings, with every name of this machine where all of its addresses are listened on."""
    found = {origin(settings.base_url), origin(settings.api_url)}
    for address in filter(None, (settings.listen, settings.admin_listen)):
        hosts = {host_form(address.host)}
        if hosts & _EVERYWHERE:
            hosts |= _LOOPBACK | {host_form(socket.gethostname())}
        elif hosts & _LOOPBACK:
            hosts |= _LOOPBACK
        found |= {(host, address.port) for host in hosts}
    return frozenset(found)

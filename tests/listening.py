"""Listening sockets for test servers."""

import socket


def tcp_listener() -> socket.socket:
    """One on a free port of 127.0.0.1.

    It names its protocol, as `socket.create_server` does not: asyncio switches Nagle's algorithm off only where it
    reads "TCP", and elsewhere an answer in two writes waits 40 ms for the acknowledgement of the first, now and then.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    return listener

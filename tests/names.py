"""A resolver that says what a test has it say, in place of the system's."""

import asyncio
import socket
from typing import Any

import pytest


class FakeNames:
    """Each look-up of a name takes the next answer, and the last one again; no addresses: it does not resolve."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def getaddrinfo(self, host: str, port: int, **_options: Any) -> list[Any]:
        """As the event loop's."""
        self.asked.append(host)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if not answer:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [_entry(address, port) for address in answer]


def _entry(address: str, port: int) -> tuple[Any, ...]:
    six = ":" in address
    where = (address, port, 0, 0) if six else (address, port)
    return socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_STREAM, 6, "", where


def fake_names(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> FakeNames:
    """From now on every look-up of this test's event loop is answered like this."""
    names = FakeNames(*answers)
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", names.getaddrinfo)
    return names

"""Stores for tests: the in-memory twin, and the real embedded store as a process of its own."""

import re
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

from registry.mongo.store import MongoStore
from tests.need import need

settings.register_profile("shared machine", deadline=None)  # a stall there is no fault of the example it hits
settings.load_profile("shared machine")

_LISTENING = re.compile(r"listening on 127\.0\.0\.1:(\d+)")


@dataclass(frozen=True)
class StoreProcess:
    """A running embedded store; each test takes a database of its own in it."""

    process: subprocess.Popen[str]
    port: int

    def url(self, database: str) -> str:
        """A connection string for one database."""
        return f"mongodb://127.0.0.1:{self.port}/{database}?replicaSet=secantus"

    def freeze(self) -> None:
        """Stop it without ending it."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)


@contextmanager
def running_store(folder: Path, *options: str) -> Iterator[StoreProcess]:
    """Start an embedded store on a free port, and end it."""
    program = Path(sys.executable).with_name("secantusd-py")
    need("embedded", present=program.is_file())
    config = folder / "store.toml"
    config.write_text("")
    where = ("--config", str(config), "--host", "127.0.0.1", "--port", "0", "--storage-path", str(folder / "store"))
    command = [str(program), *where, "--log-level", "INFO", "--sync-on-commit", *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield StoreProcess(process, _port(process))
        finally:
            process.send_signal(signal.SIGCONT)
            process.terminate()


def _port(process: subprocess.Popen[str]) -> int:
    assert process.stderr is not None
    for line in process.stderr:
        if match := _LISTENING.search(line):
            return int(match[1])
    raise AssertionError("the embedded store ended before it listened")


@pytest.fixture(scope="session")
def store_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProcess]:
    """One embedded store for the whole run."""
    with running_store(tmp_path_factory.mktemp("store")) as process:
        yield process


@pytest.fixture
def database_url(store_process: StoreProcess) -> str:
    """A connection string for a database that nobody has used."""
    return store_process.url(f"test_{uuid.uuid4().hex}")


@pytest.fixture
async def mongo_store(database_url: str) -> AsyncIterator[MongoStore]:
    """The real store, prepared."""
    store = MongoStore(database_url)
    await store.prepare()
    yield store
    await store.close()

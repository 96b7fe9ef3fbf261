"""The embedded store: SecantusDB as a child process, on loopback, behind a password.

Source: DESIGN 7. Under the data folder: `store/` (the data), `store.toml` (its configuration, so that none from
elsewhere is read), `store.password` (0600), `store.pid`, `lock`.

States: no password file -> run once without authentication, set the user's password, stop, write the file -> run with
authentication. The file is written last: a start cut short anywhere before that begins again from the top.
"""

import contextlib
import re
import secrets
import sys
from pathlib import Path

from config import leftover, private
from config.children import Child
from registry.mongo.provision import set_root_password

USER = "sluicegate"

_PASSWORD = "store.password"  # noqa: S105  a file's name

_LISTENING = re.compile(r"listening on 127\.0\.0\.1:(\d+)")
"""Its log line once it accepts connections; it names the free port that it took."""


def is_kept_in(data_dir: Path) -> bool:
    """True when an earlier start has made a store in this folder."""
    return (data_dir / _PASSWORD).is_file()


class EmbeddedStore:
    """Starts and stops the store of one data folder. Use it as an async context manager."""

    def __init__(self, data_dir: Path, *, program: Path | None = None) -> None:
        """`program` is `secantusd-py`; None takes the one beside the Python that runs us."""
        self._folder = private.make_folder(data_dir)
        self._program = program or Path(sys.executable).with_name("secantusd-py")
        self._child: Child | None = None
        self._port = 0
        self._resources = contextlib.ExitStack()

    async def start(self) -> str:
        """Returns the connection string, password included.

        Raises:
            StartFailed: another process uses the folder, the program is missing, or it does not start.
        """
        self._resources.enter_context(private.locked(self._folder))
        await leftover.end(self._folder / "store.pid", self._storage)
        private.write(self._folder / "store.toml", "# Read in place of any other configuration file.\n")
        password = private.read(self._password_file) or await self._provision()
        await self._run("--auth")
        return _url(self._port, f"{USER}:{password}@")

    async def exited(self) -> None:
        """Wait until the store ends on its own, then raise ChildExited."""
        if self._child is not None:
            await self._child.exited()

    async def stop(self) -> None:
        """Stop it and let go of the folder. Harmless when it does not run."""
        await self._stop_child()
        self._resources.close()

    async def __aenter__(self) -> "EmbeddedStore":
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    @property
    def _storage(self) -> Path:
        return self._folder / "store"

    @property
    def _password_file(self) -> Path:
        return self._folder / _PASSWORD

    async def _provision(self) -> str:
        password = secrets.token_urlsafe(32)
        child = await self._run()
        await set_root_password(_url(self._port), USER, password)
        child.kill()  # what it acknowledged is on the disk, and an orderly end would take it 2 s
        await self._stop_child()
        private.write(self._password_file, password)
        return password

    async def _run(self, *options: str) -> Child:
        where = ("--config", self._folder / "store.toml", "--storage-path", self._storage)
        listen = ("--host", "127.0.0.1", "--port", "0", "--log-level", "INFO")
        command: tuple[str | Path, ...] = (self._program, *where, *listen, "--sync-on-commit", *options)
        child = self._child = await Child.spawn("embedded store", command)
        leftover.note(self._folder / "store.pid", child.pid)
        self._port = int((await child.ready(_LISTENING))[1])
        return child

    async def _stop_child(self) -> None:
        if self._child is not None:
            await self._child.stop()
            self._child = None
            leftover.forget(self._folder / "store.pid")


def _url(port: int, credentials: str = "") -> str:
    source = "&authSource=admin" if credentials else ""
    return f"mongodb://{credentials}127.0.0.1:{port}/?replicaSet=secantus{source}"

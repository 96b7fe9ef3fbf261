"""Vectors on disk, in one SQLite file. Best effort: what is lost is computed again."""

import os
import sqlite3
from array import array
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import structlog

from registry.indexing import Vector

log = structlog.get_logger(__name__)

_BROKEN = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR})
"""What says that the file itself is at fault; SQLITE_ERROR is another schema. A locked file or a full disk is not."""

_LOCKED_FOR_S = 5.0
"""Waited for while another process writes; a batch takes it milliseconds."""

_SCHEMA = "CREATE TABLE IF NOT EXISTS vectors (source TEXT, text TEXT, vector BLOB, PRIMARY KEY (source, text))"


class NoVectors:
    """`VectorCache` that keeps nothing."""

    def load(self, name: str) -> Mapping[str, Vector]:
        """None."""
        del name
        return {}

    def save(self, name: str, vectors: Mapping[str, Vector]) -> None:
        """Nothing."""
        del name, vectors


class SqliteVectors:
    """`VectorCache` in one file, readable by its owner alone: descriptions of tools can be confidential.

    A file that cannot be read is set aside as `*.broken` and begun anew.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self, name: str) -> Mapping[str, Vector]:
        """As VectorCache.load."""
        try:
            with self._opened() as file:
                rows = file.execute("SELECT text, vector FROM vectors WHERE source = ?", (name,))
                return {text: _vector(vector) for text, vector in rows}
        except (sqlite3.Error, OSError) as exc:
            self._lost(exc)
            return {}

    def save(self, name: str, vectors: Mapping[str, Vector]) -> None:
        """As VectorCache.save."""
        rows = [(name, text, vector.tobytes()) for text, vector in vectors.items()]
        try:
            with self._opened() as file, file:
                file.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
        except (sqlite3.Error, OSError, ValueError) as exc:
            self._lost(exc)

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        self._path.chmod(0o600)  # it may have been there before, readable by others
        with closing(sqlite3.connect(self._path, timeout=_LOCKED_FOR_S)) as file:
            file.execute("PRAGMA journal_mode = WAL")
            file.execute("PRAGMA synchronous = NORMAL")
            file.execute(_SCHEMA)
            yield file

    def _lost(self, exc: Exception) -> None:
        log.warning("vectors.lost", cause=str(exc))
        if not _is_broken(exc):
            return
        try:
            self._path.replace(self._path.with_suffix(".broken"))
        except OSError as again:
            log.warning("vectors.stuck", cause=str(again))


def _vector(stored: object) -> Vector:
    if not isinstance(stored, bytes) or len(stored) % 4:
        raise sqlite3.DatabaseError("a stored vector is not one")
    return array("f", stored)


def _is_broken(exc: Exception) -> bool:
    """True when the file is at fault. The low byte of SQLite's code is the kind; an error of ours has no code."""
    if not isinstance(exc, sqlite3.DatabaseError):
        return False
    code: int = getattr(exc, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    return code & 0xFF in _BROKEN

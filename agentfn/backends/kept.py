"""What agentfn keeps for a service that keeps less than others: agents, and conversations, in a file of the state folder."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from agentfn.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE = "kept.db"
_BUSY_SECONDS = 10.0

_TABLE = """
CREATE TABLE IF NOT EXISTS kept (
    position INTEGER PRIMARY KEY AUTOINCREMENT,  -- order in which things were first kept
    endpoint TEXT NOT NULL,                      -- of the service it is kept for
    kind TEXT NOT NULL,                          -- agent, number (the last one used of a name), chain, dialect
    name TEXT NOT NULL,
    value TEXT NOT NULL,                         -- JSON
    UNIQUE (endpoint, kind, name)
) STRICT
"""


class Kept:
    """JSON values by kind and name, for one endpoint. Several threads and processes may use it.

    Raises ServiceError where the file cannot be used.
    """

    def __init__(self, home: Path, endpoint: str) -> None:
        self._path = home / FILE
        self._endpoint = endpoint

    @contextmanager
    def writing(self) -> Iterator[Shelf]:
        """Run a transaction that holds the write lock from its start."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._path.touch(mode=0o600)
            with closing(sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)) as db:
                db.execute("PRAGMA journal_mode = WAL")
                db.execute("PRAGMA synchronous = FULL")
                db.execute("BEGIN IMMEDIATE")
                try:
                    db.execute(_TABLE)
                    yield Shelf(db, self._endpoint)
                except BaseException:
                    db.execute("ROLLBACK")
                    raise
                db.execute("COMMIT")
        except (OSError, sqlite3.Error) as exc:
            hint = "set AGENTFN_HOME to a folder you may write"
            raise ServiceError(f"{self._path} cannot be used: {exc}", code="kept", hint=hint) from exc

    def get(self, kind: str, name: str) -> Any:
        """Return a value, or None."""
        found = self._read("SELECT value FROM kept WHERE endpoint = ? AND kind = ? AND name = ?", kind, name)
        return json.loads(found[0][0]) if found else None

    def all(self, kind: str) -> list[Any]:
        """Return all values of a kind, oldest first."""
        sql = "SELECT value FROM kept WHERE endpoint = ? AND kind = ? ORDER BY position"
        return [json.loads(row[0]) for row in self._read(sql, kind)]

    def put(self, kind: str, name: str, value: Any) -> None:
        """Keep a value."""
        with self.writing() as shelf:
            shelf.put(kind, name, value)

    def remove(self, kind: str, name: str) -> bool:
        """Forget a value; tell whether there was one."""
        with self.writing() as shelf:
            return shelf.remove(kind, name)

    def _read(self, sql: str, *values: str) -> list[Any]:
        if not self._path.exists():
            return []
        try:
            with closing(sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)) as db:
                return db.execute(sql, (self._endpoint, *values)).fetchall()
        except sqlite3.Error as exc:
            if "no such table" in str(exc):
                return []  # another process is just making it
            raise ServiceError(f"{self._path} cannot be read: {exc}", code="kept") from exc


class Shelf:
    """One transaction."""

    def __init__(self, db: sqlite3.Connection, endpoint: str) -> None:
        self._db = db
        self._endpoint = endpoint

    def get(self, kind: str, name: str) -> Any:
        """Return a value, or None."""
        sql = "SELECT value FROM kept WHERE endpoint = ? AND kind = ? AND name = ?"
        row = self._db.execute(sql, (self._endpoint, kind, name)).fetchone()
        return None if row is None else json.loads(row[0])

    def put(self, kind: str, name: str, value: Any) -> None:
        """Keep a value."""
        self._db.execute(
            "INSERT INTO kept (endpoint, kind, name, value) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (endpoint, kind, name) DO UPDATE SET value = excluded.value",
            (self._endpoint, kind, name, json.dumps(value)),
        )

    def remove(self, kind: str, name: str) -> bool:
        """Forget a value; tell whether there was one."""
        sql = "DELETE FROM kept WHERE endpoint = ? AND kind = ? AND name = ?"
        return self._db.execute(sql, (self._endpoint, kind, name)).rowcount > 0

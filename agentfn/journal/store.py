"""Opens the journal's file and runs its transactions."""

from __future__ import annotations

import sqlite3
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from agentfn.errors import AgentfnError, ExitCode
from agentfn.journal.schema import MIGRATIONS
from agentfn.locks import FileLock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

#: How long a write waits for another process's, in seconds.
BUSY_SECONDS = 10.0


class JournalError(AgentfnError):
    """The journal's file cannot be opened, or was written by a newer agentfn."""

    exit_code = ExitCode.SERVICE
    default_code = "journal"


class Journal:
    """The state file of one AGENTFN_HOME. Used from one thread; several processes may use one file.

    `clock` gives unix seconds. Nothing is opened before it is needed. One that is not `durable` serves a single process,
    and means nothing after a crash.
    """

    def __init__(self, home: Path, *, durable: bool = True, clock: Callable[[], float] = time.time) -> None:
        self.home = home
        self._durable = durable
        self.path = home / "journal.db"
        self.clock = clock
        self._connection: sqlite3.Connection | None = None

    @property
    def connection(self) -> sqlite3.Connection:
        """Return the open connection, opening and migrating the file at first use."""
        if self._connection is None:
            self._connection = self._open()
        return self._connection

    def _open(self) -> sqlite3.Connection:
        try:
            self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
            new = not self.path.exists()
            if new:
                self.path.touch(mode=0o600)
            connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
        except (OSError, sqlite3.Error) as exc:
            raise JournalError(
                f"the journal {self.path} cannot be opened: {exc}",
                hint="set AGENTFN_HOME to a folder you may write",
            ) from exc
        try:
            connection.row_factory = sqlite3.Row
            connection.execute(f"PRAGMA journal_mode = {'WAL' if self._durable else 'MEMORY'}")
            # A started side effect or a computed outcome must survive a power cut.
            connection.execute(f"PRAGMA synchronous = {'FULL' if self._durable else 'OFF'}")
            self._migrate(connection)
        except sqlite3.DatabaseError as exc:
            connection.close()
            raise JournalError(f"the journal {self.path} cannot be read: {exc}") from exc
        except JournalError:
            connection.close()
            raise
        return connection

    def _migrate(self, connection: sqlite3.Connection) -> None:
        newest = len(MIGRATIONS)
        if connection.execute("PRAGMA user_version").fetchone()[0] == newest:
            return
        connection.execute("BEGIN IMMEDIATE")
        # Read again under the lock: another process may have migrated meanwhile.
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > newest:
            connection.execute("ROLLBACK")
            raise JournalError(
                f"the journal {self.path} was written by a newer agentfn (version {version}, this one knows {newest})",
                hint="upgrade agentfn, or set AGENTFN_HOME to another folder",
            )
        for statements in MIGRATIONS[version:]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {newest}")
        connection.execute("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Run a transaction that holds the write lock from its start; commit at the end, roll back on any exception."""
        connection = self.connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")

    def version(self) -> int:
        """Return the file's schema number."""
        number: int = self.connection.execute("PRAGMA user_version").fetchone()[0]
        return number

    def lock(self, key: str) -> FileLock:
        """Return the lock of one conversation (not yet held); it dies with its holder."""
        import hashlib

        return FileLock(self.home / "locks" / hashlib.sha256(key.encode()).hexdigest()[:32])

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

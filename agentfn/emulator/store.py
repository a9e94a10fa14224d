"""The embedded service's state: rows in one SQLite file, several processes at a time.

No turn lives in a thread. A model step is committed in one transaction with the position of its scenario, so that a
process killed at any point leaves either none of it or all.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agentfn.errors import Finding, InvalidFileError
from agentfn.locks import FileLock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

#: How long a write waits for another process's, in seconds.
BUSY_SECONDS = 10.0

#: Number N (counting from 1) brings a file at version N-1 to version N; a migration is never edited once released.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """
        CREATE TABLE setting (
            name TEXT PRIMARY KEY,          -- clock_offset: seconds that the service's clock is ahead
            value TEXT NOT NULL
        ) STRICT
        """,
        """
        CREATE TABLE agent (
            guid TEXT PRIMARY KEY,          -- new with each creation, also under an old name
            name TEXT NOT NULL,
            folded TEXT NOT NULL UNIQUE,    -- names are compared without regard to case
            next_version INTEGER NOT NULL   -- numbers are not used again while the agent lives
        ) STRICT
        """,
        """
        CREATE TABLE agent_version (
            guid TEXT NOT NULL REFERENCES agent (guid) ON DELETE CASCADE,
            version INTEGER NOT NULL,
            created_at INTEGER NOT NULL,    -- unix seconds by the service's clock, like every time below
            description TEXT NOT NULL,
            metadata TEXT NOT NULL,         -- JSON object of texts
            definition TEXT NOT NULL,       -- JSON, normalised
            PRIMARY KEY (guid, version)
        ) STRICT
        """,
        """
        CREATE TABLE conversation (
            id TEXT PRIMARY KEY,
            created_at INTEGER NOT NULL,
            metadata TEXT NOT NULL,
            agent TEXT                      -- name:version that last answered, for the list's filters
        ) STRICT
        """,
        """
        CREATE TABLE item (
            position INTEGER PRIMARY KEY AUTOINCREMENT,  -- order within a conversation
            id TEXT NOT NULL UNIQUE,
            conversation TEXT NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
            data TEXT NOT NULL              -- JSON, as it is listed
        ) STRICT
        """,
        "CREATE INDEX item_of_conversation ON item (conversation, position)",
        """
        CREATE TABLE response (
            id TEXT PRIMARY KEY,
            created_at REAL NOT NULL,       -- calls it asks for can be answered for ten minutes from here
            conversation TEXT,
            previous TEXT,                  -- previous_response_id
            agent TEXT,                     -- name:version
            status TEXT NOT NULL,           -- that of the body, or deleted: what came after it still needs its items
            background INTEGER NOT NULL,    -- 1 where the client did not wait for it
            streamed INTEGER NOT NULL,      -- 1 where its events can be read again
            body TEXT NOT NULL,             -- JSON, the response object
            input TEXT NOT NULL,            -- JSON, its input items, normalised
            thread TEXT NOT NULL,           -- JSON, the scenario's position after this step
            due REAL,                       -- when a queued one is done; NULL once it is
            final TEXT                      -- JSON, the response object from then on; NULL once it is `body`
        ) STRICT
        """,
        "CREATE INDEX response_of_conversation ON response (conversation)",
        """
        CREATE TABLE scenario (
            digest TEXT PRIMARY KEY,
            steps TEXT NOT NULL,            -- JSON, as the author wrote them
            source TEXT NOT NULL            -- the file it was read from, for messages
        ) STRICT
        """,
        """
        CREATE TABLE thread (               -- how far a scenario has come
            key TEXT PRIMARY KEY,           -- a conversation's id, or what identifies a first request
            state TEXT NOT NULL             -- JSON: scenario digest, steps used, number of model steps
        ) STRICT
        """,
    ),
    # 2: the Agents API: saved agents, sessions, their turns, items, calls and events.
    (
        """
        CREATE TABLE saved_agent (
            position INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of creation
            id TEXT NOT NULL UNIQUE,
            created_at INTEGER NOT NULL,
            updated_at INTEGER NOT NULL,
            body TEXT NOT NULL              -- JSON, completed with the defaults
        ) STRICT
        """,
        """
        CREATE TABLE session (
            position INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            created_at INTEGER NOT NULL,
            last_active_at INTEGER NOT NULL,
            agent_id TEXT NOT NULL,
            agent TEXT NOT NULL,            -- JSON: the configuration as it was when the session began
            metadata TEXT NOT NULL,         -- JSON object of texts
            settings TEXT NOT NULL,         -- JSON: what else the session was made with
            thread TEXT NOT NULL,           -- JSON, the scenario's position
            deleted INTEGER NOT NULL DEFAULT 0  -- 1: only its id is kept, so that a second deletion is no error
        ) STRICT
        """,
        """
        CREATE TABLE session_turn (
            position INTEGER PRIMARY KEY AUTOINCREMENT,  -- the earliest that is not over is the active one
            id TEXT NOT NULL UNIQUE,
            session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
            status TEXT NOT NULL,           -- queued, in_progress, waiting, completed, failed, cancelled
            created_at INTEGER NOT NULL,
            started_at INTEGER,
            completed_at INTEGER,
            error TEXT,                     -- JSON {code, message}
            usage TEXT,                     -- JSON, summed over its model steps
            input TEXT NOT NULL,            -- JSON, the user's messages
            due REAL                        -- when its model step is done, or its calls accept results
        ) STRICT
        """,
        "CREATE INDEX turn_of_session ON session_turn (session, position)",
        """
        CREATE TABLE session_item (
            position INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL,
            session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
            turn TEXT NOT NULL,
            output_index INTEGER,           -- NULL for what the client gave
            data TEXT NOT NULL              -- JSON
        ) STRICT
        """,
        "CREATE INDEX item_of_session ON session_item (session, position)",
        """
        CREATE TABLE session_call (
            position INTEGER PRIMARY KEY AUTOINCREMENT,
            session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
            turn TEXT NOT NULL,
            call_id TEXT NOT NULL,
            name TEXT NOT NULL,
            arguments TEXT NOT NULL,        -- JSON
            accepts_at REAL NOT NULL,       -- it is seen before it takes a result
            result TEXT,                    -- JSON {success, output, error}, NULL while it waits
            UNIQUE (session, turn, call_id)
        ) STRICT
        """,
        """
        CREATE TABLE session_event (
            sequence INTEGER PRIMARY KEY AUTOINCREMENT,  -- where a stream goes on
            session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
            cut INTEGER NOT NULL,           -- 1: the stream that comes here breaks
            data TEXT NOT NULL              -- JSON
        ) STRICT
        """,
        "CREATE INDEX event_of_session ON session_event (session, sequence)",
    ),
)


class Store:
    """The service's file, opened at once so that a file of another kind is told before anything is asked of it.

    Each thread has a connection of its own while it works; `release` lends it to the next one.
    """

    def __init__(self, path: Path, clock: Callable[[], float], *, durable: bool = True) -> None:
        self.path = path
        self._durable = durable
        self._clock = clock
        self._local = threading.local()
        self._guard = threading.Lock()
        self._all: list[sqlite3.Connection] = []
        self._idle: list[sqlite3.Connection] = []
        self._prepare()

    @property
    def db(self) -> sqlite3.Connection:
        """Return this thread's connection."""
        found: sqlite3.Connection | None = getattr(self._local, "db", None)
        if found is None:
            with self._guard:
                found = self._idle.pop() if self._idle else None
            if found is None:
                found = self._connect()
                with self._guard:
                    self._all.append(found)
            self._local.db = found
        return found

    def release(self) -> None:
        """Give this thread's connection back; threads of a server come and go."""
        found: sqlite3.Connection | None = getattr(self._local, "db", None)
        if found is not None:
            self._local.db = None
            with self._guard:
                self._idle.append(found)

    def _prepare(self) -> None:
        """Make or check the file, one process at a time: switching to the write-ahead log does not wait for others."""
        lock = FileLock(self.path.with_name(self.path.name + ".open"))
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not lock.acquire(BUSY_SECONDS):
                raise self._unusable("another process holds it")
            self.path.touch(mode=0o600)
            self.db.execute(f"PRAGMA journal_mode = {'WAL' if self._durable else 'MEMORY'}")
            self._migrate(self.db)
        except (OSError, sqlite3.Error) as exc:
            self.close()
            raise self._unusable(str(exc)) from exc
        except InvalidFileError:
            self.close()
            raise
        finally:
            lock.release()

    def _unusable(self, reason: str) -> InvalidFileError:
        message = f"the embedded service's state cannot be used: {reason}"
        return InvalidFileError(
            [Finding(str(self.path), 0, 0, "state-file", message)], hint="set AGENTFN_HOME to another folder"
        )

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            # A power cut may take the last step back, as a whole; of what need not last it may take anything.
            db.execute(f"PRAGMA synchronous = {'NORMAL' if self._durable else 'OFF'}")
            db.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            db.close()
            raise
        return db

    def _migrate(self, db: sqlite3.Connection) -> None:
        newest = len(MIGRATIONS)
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version > newest:
            reason = f"it was written by a newer agentfn (version {version}, this one knows {newest})"
            raise self._unusable(reason)
        if version == newest:
            return
        db.execute("BEGIN IMMEDIATE")
        try:
            for statements in MIGRATIONS[version:]:
                for statement in statements:
                    db.execute(statement)
            db.execute(f"PRAGMA user_version = {newest}")
        except BaseException:
            db.execute("ROLLBACK")
            raise
        db.execute("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Run a transaction that holds the write lock from its start."""
        db = self.db
        db.execute("BEGIN IMMEDIATE")
        try:
            yield db
        except BaseException:
            db.execute("ROLLBACK")
            raise
        db.execute("COMMIT")

    def one(self, sql: str, *values: Any) -> tuple[Any, ...] | None:
        """Return the first row, or None."""
        return next(iter(self.rows(sql, *values)), None)

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return all rows; none for a text that no row can hold, such as half of a surrogate pair."""
        try:
            return self.db.execute(sql, values).fetchall()
        except UnicodeEncodeError:
            return []

    def now(self) -> float:
        """Return unix seconds by the service's clock, which can be ahead of the machine's."""
        row = self.one("SELECT value FROM setting WHERE name = 'clock_offset'")
        return self._clock() + (float(row[0]) if row else 0.0)

    def advance(self, seconds: float) -> None:
        """Move the service's clock forward."""
        with self.writing() as db:
            move_clock(db, seconds)

    def reset_clock(self) -> None:
        """Let the service's clock be the machine's again."""
        with self.writing() as db:
            db.execute("DELETE FROM setting WHERE name = 'clock_offset'")

    def reset(self) -> None:
        """Forget everything."""
        with self.writing() as db:
            for table in (
                "setting",
                "item",
                "conversation",
                "agent_version",
                "agent",
                "response",
                "scenario",
                "thread",
                "session",
                "saved_agent",
            ):
                db.execute(f"DELETE FROM {table}")  # names of ours

    def thread(self, key: str) -> dict[str, Any]:
        """Return the state of a thread; empty where it has none."""
        row = self.one("SELECT state FROM thread WHERE key = ?", key)
        state: dict[str, Any] = json.loads(row[0]) if row else {}
        return state

    def close(self) -> None:
        """Close every connection; whoever comes afterwards opens a new one."""
        with self._guard:
            for db in self._all:
                db.close()
            self._all.clear()
            self._idle.clear()
            self._local = threading.local()


def move_clock(db: sqlite3.Connection, seconds: float) -> None:
    """Move the service's clock forward inside a running transaction."""
    if seconds:
        db.execute(
            "INSERT INTO setting (name, value) VALUES ('clock_offset', ?)"
            " ON CONFLICT (name) DO UPDATE SET value = CAST(value AS REAL) + ?",
            (str(seconds), seconds),
        )


def save_thread(db: sqlite3.Connection, key: str, state: dict[str, Any]) -> None:
    """Write a thread's state inside a running transaction."""
    db.execute(
        "INSERT INTO thread (key, state) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET state = excluded.state",
        (key, json.dumps(state)),
    )

"""A session's events as they happen, read from their table (openai-agents.md §4.2)."""

from __future__ import annotations

import json
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Self

from agentfn.emulator.http import ApiError, ConnectionCut, encode
from agentfn.emulator.sessions import rows
from agentfn.emulator.sessions.events import item_event, message_events
from agentfn.emulator.sessions.ids import new_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agentfn.emulator.app import Application
    from agentfn.emulator.sessions.machine import Machine

Body = dict[str, Any]

#: How long a stream waits for news at a time, in seconds; other processes' doings ring no bell.
LOOK_SECONDS = 0.05
#: After so many seconds without news, a comment keeps the connection alive; the service sends one in fifteen or less.
QUIET_SECONDS = 1.0


class LiveStream:
    """The body of an event stream. A class rather than a generator: a server may close it from another thread.

    `first` is sent at once; `after` is the sequence from which on events count. With `ends_idle` the stream ends once
    the session is idle or failed, as that of a creation does; else when the session is deleted.
    """

    def __init__(
        self,
        app: Application,
        machine: Machine,
        session: str,
        *,
        first: Sequence[Body],
        after: int,
        ends_idle: bool = False,
    ) -> None:
        self._app = app
        self._store = app.store
        self._machine = machine
        self._session = session
        self._after = after
        self._ends_idle = ends_idle
        self._chunks: deque[bytes | None] = deque([b": open\n\n", *map(_frame, first)])
        self._is_over = False
        self._guard = threading.Lock()

    @classmethod
    def attached(cls, app: Application, machine: Machine, session: str) -> Self:
        """Return a stream that begins now, with a catch-up where a turn is under way."""
        row = app.store.one("SELECT max(sequence) FROM session_event WHERE session = ?", session)
        after = int(row[0]) if row is not None and row[0] is not None else 0
        return cls(app, machine, session, first=_catch_up(app, session), after=after)

    def __iter__(self) -> Iterator[bytes]:
        """Return itself."""
        return self

    def __next__(self) -> bytes:
        """Return the next frame, or a comment where nothing happens; None in the queue is a scenario's cut."""
        if not self._chunks:
            self._look()
        if not self._chunks:
            raise StopIteration
        chunk = self._chunks.popleft()
        if chunk is None:
            self.close()
            self._chunks.clear()
            raise ConnectionCut
        return chunk

    def _look(self) -> None:
        """Move the session on and take what it told; wait for a while where it told nothing."""
        quiet = 0.0
        while quiet < QUIET_SECONDS:
            with self._guard:
                if self._is_over:
                    return
                self._read()
            if self._chunks or self._is_over:
                return
            quiet += self._wait()
        self._chunks.append(b":\n\n")

    def _read(self) -> None:
        try:
            self._machine.advance(self._session)
            found = self._store.rows(
                "SELECT sequence, cut, data FROM session_event WHERE session = ? AND sequence > ? ORDER BY sequence",
                self._session,
                self._after,
            )
            for sequence, cut, text in found:
                self._after = sequence
                event = json.loads(text)
                self._chunks.append(_frame(event))
                if cut:
                    self._chunks.append(None)
                if self._ends_idle and event["type"] in ("agent.session.idle", "agent.session.failed"):
                    self._is_over = True
                    break
            if not found:
                rows.session_of(self._store, self._session)
        except ApiError:
            self._is_over = True  # the session was deleted
        finally:
            self._store.release()

    def _wait(self) -> float:
        """Wait for something to happen; return about how long, in seconds."""
        left = self._machine.seconds_left(self._session)
        self._store.release()
        if left is not None:
            self._app.sleep(min(QUIET_SECONDS, left))
            return max(LOOK_SECONDS, min(QUIET_SECONDS, left))
        self._app.idle(LOOK_SECONDS)
        return LOOK_SECONDS

    def close(self) -> None:
        """Let go; safe to call twice, and from another thread. The turn goes on without a listener."""
        with self._guard:
            self._is_over = True


def _frame(event: Body) -> bytes:
    return f"event: {event['type']}\ndata: ".encode() + encode(event) + b"\n\n"


def _catch_up(app: Application, session: str) -> list[Body]:
    """Return what the active turn has said so far; a call that waits is not among it (openai-agents.md §4.2)."""
    turn = rows.active_turn(app.store, session)
    if turn is None:
        return []
    shown = app.store.rows(
        "SELECT output_index, data FROM session_item WHERE session = ? AND turn = ? ORDER BY position", session, turn.id
    )
    told: list[tuple[str, Body]] = []
    for index, text in shown:
        item = json.loads(text)
        if item["type"] == "message" and item["role"] == "user":
            told.append(item_event("added", session, item, None))
        elif item["type"] == "message":
            told += message_events(session, item, index, deltas=False)
    return [{"type": kind, "event_id": new_id("evt"), **fields} for kind, fields in told]

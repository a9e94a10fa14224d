"""Calls and their outcomes: intent before the side effect, outcome before the request."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, NamedTuple

from agentfn.model import Call, Outcome, Step, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agentfn.journal.store import Journal
    from agentfn.journal.turns import Conversation


class CallRow(NamedTuple):
    """A row of `call`."""

    turn: str
    id: str
    asked_by: str
    position: int
    function: str
    arguments: str
    problem: str | None
    state: str
    output: str | None
    content: str | None
    error: str | None
    asked_at: float
    started_at: float | None
    finished_at: float | None
    decision: str | None
    edited: str | None

    @property
    def verdict(self) -> str | None:
        """Return ``yes`` or ``no`` where somebody decided on exactly this function with these arguments."""
        found = json.loads(self.decision) if self.decision else {}
        bound = found.get("hash") == decision_hash(self.function, self.edited or self.arguments)
        return str(found["verdict"]) if bound else None

    @property
    def call(self) -> Call:
        """Return the call as the service asked for it."""
        return Call(self.id, self.function, self.arguments)

    @property
    def as_run(self) -> Call:
        """Return the call with the arguments that a person gave it, where one did."""
        return Call(self.id, self.function, self.edited or self.arguments)

    @property
    def outcome(self) -> Outcome | None:
        """Return how it ended, or None while it has no outcome."""
        if self.output is None and self.content is None and self.error is None:
            return None
        return Outcome(self.output, json.loads(self.content) if self.content else None, self.error)

    @property
    def seconds(self) -> float | None:
        """Return how long its handler ran, or None."""
        if self.started_at is None or self.finished_at is None:
            return None
        return self.finished_at - self.started_at


_COLUMNS = (
    "turn, id, asked_by, position, function, arguments, problem, state, output, content, error,"
    " asked_at, started_at, finished_at, decision, edited"
)


def decision_hash(function: str, arguments: str) -> str:
    """Return what a decision is bound to: a call of another function or with other arguments needs one of its own."""
    return hashlib.sha256(f"{function}\n{arguments}".encode("utf-8", "surrogatepass")).hexdigest()


class Calls:
    """Reads and writes the calls of one turn."""

    def __init__(self, journal: Journal, conversation: Conversation, turn: str) -> None:
        self._journal = journal
        self._key = (*conversation[:3], turn)
        self._turn = turn

    def asked(self, step: Step, problems: dict[str, str], usage: Usage, *, looked: bool = False) -> None:
        """Write down the calls of a step; what was sent before is thereby accepted.

        `looked` says that the step was read from the service later on, which may name it differently then: a call that
        waits by what the service says has not been answered, whatever was sent.
        """
        now = self._journal.clock()
        with self._journal.writing() as db:
            asked = [call.id for call in step.calls]
            known = db.execute(
                "SELECT id FROM call WHERE backend = ? AND endpoint = ? AND conversation = ? AND turn = ?"
                " AND state NOT IN ('accepted', 'superseded', 'expired')",
                self._key,
            ).fetchall()
            # A step whose calls are known already is the one that was known, whatever it is called now.
            same = looked and {row[0] for row in known}.issuperset(asked)
            db.execute(
                "UPDATE call SET state = 'accepted' WHERE turn = ? AND state IN ('finished', 'sent')"
                f" AND (id NOT IN ({', '.join('?' * len(asked))}) OR (asked_by <> ? AND NOT ?))",
                (self._turn, *asked, step.id, looked),
            )
            db.executemany(
                "INSERT INTO call (backend, endpoint, conversation, turn, id, asked_by, position, function,"
                " arguments, problem, state, asked_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'waiting', ?)"
                " ON CONFLICT (backend, endpoint, conversation, turn, id) DO NOTHING",
                [
                    (*self._key, c.id, step.id, position, c.function, c.arguments, problems.get(c.id), now)
                    for position, c in enumerate(step.calls)
                ],
            )
            db.execute(
                "UPDATE turn SET state = 'open', usage = ?,"
                " asked_by = CASE WHEN ? AND asked_by IS NOT NULL THEN asked_by ELSE ? END,"
                " asked_at = CASE WHEN ? AND asked_at IS NOT NULL THEN asked_at ELSE ? END,"
                " skew = ? WHERE id = ?",
                (
                    *(json.dumps(usage), same, step.id, same, step.created_at),
                    *(step.service_now - now, self._turn),
                ),
            )

    def decided(self, call: Call, verdict: str, by: str, edited: str | None = None) -> None:
        """Write down, durably, who let a call run (``yes``) or not (``no``), with which arguments."""
        decision = {"verdict": verdict, "hash": decision_hash(call.function, edited or call.arguments), "by": by}
        with self._journal.writing() as db:
            db.execute(
                "UPDATE call SET state = ?, decision = ?, edited = ?"
                " WHERE backend = ? AND endpoint = ? AND conversation = ? AND turn = ? AND id = ?",
                ("approved" if verdict == "yes" else "denied", json.dumps(decision), edited, *self._key, call.id),
            )

    def started(self, ids: Sequence[str]) -> None:
        """Write down, durably, that the handlers of these calls are about to run."""
        now = self._journal.clock()
        with self._journal.writing() as db:
            db.executemany(
                "UPDATE call SET state = 'started', started_at = ?"
                " WHERE backend = ? AND endpoint = ? AND conversation = ? AND turn = ? AND id = ?",
                [(now, *self._key, call) for call in ids],
            )

    def finished(self, outcomes: Iterable[tuple[str, Outcome]]) -> None:
        """Write down, durably, how calls ended, with the exact text to be sent."""
        now = self._journal.clock()
        with self._journal.writing() as db:
            db.executemany(
                "UPDATE call SET problem = CASE WHEN output IS NULL AND content IS NULL AND error IS NULL THEN problem END,"
                " state = 'finished', output = ?, content = ?, error = ?, finished_at = ?"
                " WHERE backend = ? AND endpoint = ? AND conversation = ? AND turn = ? AND id = ?",
                [
                    (o.output, json.dumps(o.content) if o.content is not None else None, o.error, now, *self._key, call)
                    for call, o in outcomes
                ],
            )

    def rejected(self, call: str, problem: str) -> None:
        """Write down why a stored outcome cannot be sent; it is kept, and the call waits for another one."""
        with self._journal.writing() as db:
            db.execute(
                "UPDATE call SET state = 'waiting', problem = ?"
                " WHERE backend = ? AND endpoint = ? AND conversation = ? AND turn = ? AND id = ?",
                (problem, *self._key, call),
            )

    def set_state(self, ids: Iterable[str], state: str) -> None:
        """Move calls to another state that needs nothing beside its name."""
        with self._journal.writing() as db:
            db.executemany(
                "UPDATE call SET state = ? WHERE backend = ? AND endpoint = ? AND conversation = ? AND turn = ? AND id = ?",
                [(state, *self._key, call) for call in ids],
            )

    def all(self) -> list[CallRow]:
        """Return the turn's calls in the order they were asked for."""
        rows = self._journal.connection.execute(
            f"SELECT {_COLUMNS} FROM call WHERE backend = ? AND endpoint = ? AND conversation = ? AND turn = ?"
            " ORDER BY asked_at, position",
            self._key,
        )
        return [CallRow(*row) for row in rows]

    def unsettled(self) -> list[CallRow]:
        """Return the calls that are not over: without an outcome, or with one that is not known to have arrived."""
        rows = self._journal.connection.execute(
            f"SELECT {_COLUMNS} FROM call WHERE backend = ? AND endpoint = ? AND conversation = ? AND turn = ?"
            " AND state NOT IN ('accepted', 'superseded', 'expired') ORDER BY asked_at, position",
            self._key,
        )
        return [CallRow(*row) for row in rows]

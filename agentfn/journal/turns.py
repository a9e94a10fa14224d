"""Conversations and turns: what was said, to which agent, and how far each turn has come."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from agentfn.model import AgentRef, Stamp, Step, Usage

if TYPE_CHECKING:
    from agentfn.journal.store import Journal

_OPEN = "('intended', 'open')"


class Conversation(NamedTuple):
    """A row of `conversation`; `functions` maps a function's name to the digest of its parameters."""

    backend: str
    endpoint: str
    id: str
    agent: str
    version: str | None
    definition: str | None
    digest: str | None
    functions: dict[str, str]
    run: str
    at: float

    @property
    def ref(self) -> AgentRef:
        """Return the agent version that this conversation is pinned to."""
        return AgentRef(self.agent, self.version)

    @property
    def key(self) -> str:
        """Return what identifies the conversation across services; locks go by it."""
        return f"{self.backend}\n{self.endpoint}\n{self.id}"


class Turn(NamedTuple):
    """A row of `turn`."""

    id: str
    backend: str
    endpoint: str
    conversation: str | None
    message: str
    state: str
    asked_by: str | None
    asked_at: float | None
    skew: float
    answer: str | None
    failure: str | None
    usage: Usage
    run: str
    at: float

    @property
    def arrived(self) -> bool:
        """Tell whether the service is known to have taken the message: it asked for calls, or answered."""
        return self.asked_by is not None or self.state == "ended"


class Unopened(NamedTuple):
    """A turn without a conversation, the conversation to be, and the token that its metadata carries."""

    turn: Turn
    conversation: Conversation
    token: str


_TURN = "id, backend, endpoint, conversation, message, state, asked_by, asked_at, skew, answer, failure, usage, run, at"
_CONVERSATION = "backend, endpoint, id, agent, version, definition, digest, functions, run, at"


def _turn(row: tuple[object, ...]) -> Turn:
    values = list(row)
    values[11] = Usage(*json.loads(str(values[11]))) if values[11] else Usage()
    return Turn(*values)  # type: ignore[arg-type]  # the columns are listed in the tuple's own order


def _conversation(row: tuple[object, ...]) -> Conversation:
    values = list(row)
    values[7] = json.loads(str(values[7]))
    return Conversation(*values)  # type: ignore[arg-type]  # the columns are listed in the tuple's own order


class Turns:
    """Reads and writes conversations and turns of all backends."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def begin(self, conversation: Conversation, turn: str, message: str, stamp: Stamp | None) -> None:
        """Write down that a message is about to be sent.

        `conversation.id` is empty where a new one will be opened; `stamp` is then its mark, and goes into the ledger in
        the same transaction.
        """
        now = self._journal.clock()
        key = (conversation.backend, conversation.endpoint)
        with self._journal.writing() as db:
            if stamp is not None:
                db.execute(
                    "INSERT INTO resource (token, backend, endpoint, kind, digest, definition, run, state, at)"
                    " VALUES (?, ?, ?, 'conversation', ?, ?, ?, 'intended', ?)",
                    (stamp.token, *key, conversation.digest, conversation.definition, stamp.run, now),
                )
            db.execute(
                "INSERT INTO turn (id, backend, endpoint, conversation, message, state, run, at, opening, stamp)"
                " VALUES (?, ?, ?, ?, ?, 'intended', ?, ?, ?, ?)",
                (
                    *(turn, *key, conversation.id or None, message, stamp.run if stamp else conversation.run, now),
                    *((None, None) if stamp is None else (json.dumps(conversation), stamp.token)),
                ),
            )

    def opened(self, conversation: Conversation, turn: str, token: str) -> None:
        """Write down the id that the service gave to the new conversation of this turn."""
        with self._journal.writing() as db:
            db.execute("UPDATE resource SET state = 'created', name = ? WHERE token = ?", (conversation.id, token))
            values = (*conversation[:7], json.dumps(conversation.functions), *conversation[8:])
            db.execute(
                f"INSERT OR REPLACE INTO conversation ({_CONVERSATION}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                values,
            )
            db.execute("UPDATE turn SET conversation = ?, opening = NULL WHERE id = ?", (conversation.id, turn))

    def renamed(self, turn: str, name: str) -> None:
        """Write down the service's own id of a turn that has no calls yet."""
        with self._journal.writing() as db:
            db.execute("UPDATE turn SET id = ? WHERE id = ?", (name, turn))

    def remember(self, conversation: Conversation) -> None:
        """Write down a conversation that somebody else made, so that later commands need no flags for it."""
        values = (*conversation[:7], json.dumps(conversation.functions), *conversation[8:])
        with self._journal.writing() as db:
            db.execute(
                f"INSERT OR IGNORE INTO conversation ({_CONVERSATION}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                values,
            )

    def repin(self, conversation: Conversation, ref: AgentRef, digest: str | None, functions: dict[str, str]) -> None:
        """Write down that the conversation goes on with another version of its agent."""
        with self._journal.writing() as db:
            db.execute(
                "UPDATE conversation SET agent = ?, version = ?, digest = ?, functions = ?"
                " WHERE backend = ? AND endpoint = ? AND id = ?",
                (ref.name, ref.version, digest, json.dumps(functions), *conversation[:3]),
            )

    def ended(self, turn: str, step: Step, usage: Usage) -> None:
        """Write down the turn's answer or failure; its calls are accepted."""
        state = "failed" if step.failure is not None else "ended"
        with self._journal.writing() as db:
            db.execute(
                "UPDATE turn SET state = ?, answer = ?, failure = ?, usage = ?, ended_at = ? WHERE id = ?",
                (state, step.answer, step.failure, json.dumps(usage), self._journal.clock(), turn),
            )
            db.execute("UPDATE call SET state = 'accepted' WHERE turn = ? AND state IN ('finished', 'sent')", (turn,))

    def failed(self, turn: str, reason: str, call_state: str = "superseded") -> None:
        """Write down that the turn cannot go on; calls that still wait get `call_state`."""
        with self._journal.writing() as db:
            db.execute(
                "UPDATE turn SET state = 'failed', failure = ?, ended_at = ? WHERE id = ?",
                (reason, self._journal.clock(), turn),
            )
            db.execute(
                "UPDATE call SET state = ? WHERE turn = ? AND state NOT IN ('accepted', 'superseded', 'expired')",
                (call_state, turn),
            )

    def find_conversation(self, conversation: str) -> list[Conversation]:
        """Return the conversations of that id, of which there may be one a service."""
        rows = self._journal.connection.execute(
            f"SELECT {_CONVERSATION} FROM conversation WHERE id = ? ORDER BY at",
            (conversation,),
        )
        return [_conversation(tuple(row)) for row in rows]

    def conversations(self, backend: str, endpoint: str) -> list[Conversation]:
        """Return all conversations known at one endpoint, oldest first."""
        rows = self._journal.connection.execute(
            f"SELECT {_CONVERSATION} FROM conversation WHERE backend = ? AND endpoint = ? ORDER BY at",
            (backend, endpoint),
        )
        return [_conversation(tuple(row)) for row in rows]

    def open(self) -> list[Turn]:
        """Return the turns that are not over, oldest first; those that never reached a conversation are left out."""
        rows = self._journal.connection.execute(
            f"SELECT {_TURN} FROM turn WHERE state IN {_OPEN} AND conversation IS NOT NULL ORDER BY at",
        )
        return [_turn(tuple(row)) for row in rows]

    def unopened(self) -> list[Unopened]:
        """Return the turns whose conversation may have been opened without our knowing, oldest first."""
        rows = self._journal.connection.execute(
            f"SELECT {_TURN}, opening, stamp FROM turn WHERE state = 'intended' AND conversation IS NULL ORDER BY at",
        )
        found = []
        for row in rows:
            *turn, opening, stamp = row
            if opening is not None:  # else it was begun by a version that did not write it down
                found.append(Unopened(_turn(tuple(turn)), Conversation(*json.loads(opening)), stamp))
        return found

    def of(self, conversation: Conversation) -> list[Turn]:
        """Return the turns of a conversation, oldest first."""
        rows = self._journal.connection.execute(
            f"SELECT {_TURN} FROM turn WHERE backend = ? AND endpoint = ? AND conversation = ? ORDER BY at",
            conversation[:3],
        )
        return [_turn(tuple(row)) for row in rows]

"""The ledger: everything agentfn asked a service to create, written before the request goes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agentfn.model import AgentRef, Stamp

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentfn.journal.store import Journal


class Resource(NamedTuple):
    """A row of the ledger; `schema` explains its columns."""

    token: str
    backend: str
    endpoint: str
    kind: str
    name: str | None
    version: str | None
    guid: str | None
    digest: str | None
    definition: str | None
    run: str
    state: str
    at: float

    @property
    def label(self) -> str:
        """Return how a person calls it: ``name:version`` or the conversation's id."""
        if self.kind == "agent":
            return f"{self.name}:{self.version}" if self.version else str(self.name)
        return self.name or f"(conversation of run {self.run}, id unknown)"

    @property
    def ref(self) -> AgentRef:
        """Return the agent version that this row is about."""
        return AgentRef(self.name or "", self.version, self.guid)


_COLUMNS = "token, backend, endpoint, kind, name, version, guid, digest, definition, run, state, at"


class Ledger:
    """What was created at one endpoint of one backend."""

    def __init__(self, journal: Journal, backend: str, endpoint: str) -> None:
        self._journal = journal
        self._key = (backend, endpoint)

    def intend_agent(self, stamp: Stamp, name: str, definition: str | None) -> None:
        """Write down that this agent is about to be created."""
        with self._journal.writing() as db:
            db.execute(
                "INSERT INTO resource (token, backend, endpoint, kind, name, digest, definition, run, state, at)"
                " VALUES (?, ?, ?, 'agent', ?, ?, ?, ?, 'intended', ?)",
                (stamp.token, *self._key, name, stamp.digest, definition, stamp.run, self._journal.clock()),
            )

    def agent_created(self, token: str, ref: AgentRef) -> None:
        """Write down the version that the service made."""
        with self._journal.writing() as db:
            db.execute(
                "UPDATE resource SET state = 'created', name = ?, version = ?, guid = ? WHERE token = ?",
                (ref.name, ref.version, ref.guid, token),
            )

    def end(self, token: str, state: str) -> None:
        """Close a row: ``deleted`` by us, ``gone`` already, ``failed`` to be created, or ``foreign``."""
        with self._journal.writing() as db:
            db.execute(
                "UPDATE resource SET state = ?, ended_at = ? WHERE token = ?",
                (state, self._journal.clock(), token),
            )

    def never_opened(self, token: str) -> None:
        """Close the row of a conversation that was never opened, and the turn that was to begin in it."""
        now = self._journal.clock()
        with self._journal.writing() as db:
            db.execute("UPDATE resource SET state = 'failed', ended_at = ? WHERE token = ?", (now, token))
            db.execute(
                "UPDATE turn SET state = 'failed', failure = 'its conversation was never opened', ended_at = ?"
                " WHERE stamp = ? AND state IN ('intended', 'open')",
                (now, token),
            )

    def conversation_ended(self, row: Resource, state: str) -> None:
        """Close a conversation's row; its turns are over with it, so that nobody asks the service about them again."""
        now = self._journal.clock()
        with self._journal.writing() as db:
            db.execute(
                "UPDATE resource SET state = ?, name = ?, ended_at = ? WHERE token = ?",
                (state, row.name, now, row.token),
            )
            where = (*self._key, row.name)
            db.execute(
                "UPDATE turn SET state = 'failed', failure = 'the conversation was removed', ended_at = ?"
                " WHERE (stamp = ? OR (backend = ? AND endpoint = ? AND conversation = ?))"
                " AND state IN ('intended', 'open')",
                (now, row.token, *where),
            )
            db.execute(
                "UPDATE call SET state = 'superseded' WHERE backend = ? AND endpoint = ? AND conversation = ?"
                " AND state NOT IN ('accepted', 'superseded', 'expired')",
                where,
            )

    def used_by_others(self, row: Resource) -> bool:
        """Tell whether a conversation of another run, not removed yet, is pinned to this agent version."""
        found = self._journal.connection.execute(
            "SELECT 1 FROM conversation c JOIN resource r ON r.name = c.id AND r.backend = c.backend"
            " AND r.endpoint = c.endpoint AND r.kind = 'conversation' AND r.state = 'created'"
            " WHERE c.backend = ? AND c.endpoint = ? AND c.agent = ? AND c.version = ? AND c.run <> ? LIMIT 1",
            (*self._key, row.name, row.version, row.run),
        )
        return found.fetchone() is not None

    def at_work(self, conversation: str) -> str | None:
        """Say which process is at work in a conversation, a handler included that one left behind; None where it is free."""
        lock = self._journal.lock("\n".join((*self._key, conversation)))
        if not lock.acquire(0):
            return lock.holder()
        lock.release()
        return None

    def is_pinned(self, agent: str, conversations: Iterable[str]) -> bool:
        """Tell whether one of these conversations is answered by that agent."""
        rows = self._journal.connection.execute(
            "SELECT id FROM conversation WHERE backend = ? AND endpoint = ? AND agent = ?", (*self._key, agent)
        )
        return not {row[0] for row in rows}.isdisjoint(conversations)

    def live(self, kind: str | None = None) -> list[Resource]:
        """Return what agentfn owns here and has not removed, oldest first."""
        rows = self._journal.connection.execute(
            f"SELECT {_COLUMNS} FROM resource WHERE backend = ? AND endpoint = ?"
            " AND state IN ('intended', 'created') AND (? IS NULL OR kind = ?) ORDER BY at, rowid",
            (*self._key, kind, kind),
        )
        return [Resource(*row) for row in rows]

    def knows(self, kind: str | None, name: str) -> bool:
        """Tell whether anything of that name was ever created here; `kind` None asks for a run."""
        where = "run = ?" if kind is None else "kind = ? AND (name = ? OR name || ':' || version = ?)"
        values = (name,) if kind is None else (kind, name, name)
        sql = f"SELECT 1 FROM resource WHERE backend = ? AND endpoint = ? AND {where} LIMIT 1"
        return self._journal.connection.execute(sql, (*self._key, *values)).fetchone() is not None

    def agent_with_digest(self, name: str, digest: str) -> Resource | None:
        """Return the newest own version of that name made from exactly this definition, or None."""
        rows = [r for r in self.live("agent") if r.state == "created" and r.name == name]
        return next((r for r in reversed(rows) if r.digest == digest), None)

    def latest_agent(self, name: str, version: str | None = None) -> Resource | None:
        """Return the newest own row of that name (and version), or None."""
        rows = [r for r in self.live("agent") if r.name == name and version in (None, r.version)]
        return rows[-1] if rows else None

    def conversation(self, conversation: str) -> Resource | None:
        """Return the live row of a conversation that agentfn created, or None."""
        return next((r for r in self.live("conversation") if r.name == conversation), None)


def endpoints(journal: Journal) -> list[tuple[str, str]]:
    """Return every (backend, endpoint) at which something is still owned."""
    rows = journal.connection.execute(
        "SELECT DISTINCT backend, endpoint FROM resource WHERE state IN ('intended', 'created') ORDER BY 1, 2",
    )
    return [(row[0], row[1]) for row in rows]

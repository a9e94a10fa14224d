"""A session's rows as the objects that the API shows (openai-agents.md §3, §5)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from agentfn.emulator.sessions.errors import absent

if TYPE_CHECKING:
    import sqlite3

    from agentfn.emulator.store import Store

Body = dict[str, Any]

#: A turn that is not over.
ACTIVE = ("queued", "in_progress", "waiting")
_ACTIVE_SQL = "('queued', 'in_progress', 'waiting')"


class SessionRow(NamedTuple):
    """A row of `session`."""

    id: str
    created_at: int
    last_active_at: int
    agent_id: str
    agent: Body
    metadata: dict[str, str]
    settings: Body
    thread: Body


class TurnRow(NamedTuple):
    """A row of `session_turn`."""

    id: str
    status: str
    created_at: int
    started_at: int | None
    completed_at: int | None
    error: Body | None
    usage: Body | None
    input: list[Body]
    due: float | None


class CallRow(NamedTuple):
    """A row of `session_call`; `result` None means that it waits."""

    turn: str
    call_id: str
    name: str
    arguments: Any
    accepts_at: float
    result: Body | None


_SESSION = "id, created_at, last_active_at, agent_id, agent, metadata, settings, thread"
_TURN = "id, status, created_at, started_at, completed_at, error, usage, input, due"
_CALL = "turn, call_id, name, arguments, accepts_at, result"


def _json(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def _session_row(row: tuple[Any, ...]) -> SessionRow:
    return SessionRow(*row[:4], *(_json(text) for text in row[4:]))


def _turn_row(row: tuple[Any, ...]) -> TurnRow:
    values: list[Any] = [*row[:5], *(_json(text) for text in row[5:8]), row[8]]
    return TurnRow(*values)


def session_of(store: Store, identity: str) -> SessionRow:
    """Return a session; 404 where there is none or it was deleted."""
    row = store.one(f"SELECT {_SESSION} FROM session WHERE id = ? AND deleted = 0", identity)
    if row is None:
        raise absent("Session")
    return _session_row(row)


def all_sessions(store: Store) -> list[SessionRow]:
    """Return the sessions that were not deleted, oldest first."""
    rows = store.rows(f"SELECT {_SESSION} FROM session WHERE deleted = 0 ORDER BY position")
    return [_session_row(row) for row in rows]


def turns_of(store: Store, session: str) -> list[TurnRow]:
    """Return a session's turns, oldest first."""
    rows = store.rows(f"SELECT {_TURN} FROM session_turn WHERE session = ? ORDER BY position", session)
    return [_turn_row(row) for row in rows]


def active_turn(store: Store, session: str) -> TurnRow | None:
    """Return the earliest turn that is not over: the one that runs."""
    row = store.one(
        f"SELECT {_TURN} FROM session_turn WHERE session = ? AND status IN {_ACTIVE_SQL} ORDER BY position LIMIT 1",
        session,
    )
    return None if row is None else _turn_row(row)


def calls_of(store: Store, session: str) -> list[CallRow]:
    """Return a session's calls, oldest first."""
    rows = store.rows(f"SELECT {_CALL} FROM session_call WHERE session = ? ORDER BY position", session)
    return [CallRow(row[0], row[1], row[2], _json(row[3]), row[4], _json(row[5])) for row in rows]


def waiting_calls(store: Store, session: str, turn: str) -> list[CallRow]:
    """Return a turn's calls without a result."""
    return [call for call in calls_of(store, session) if call.turn == turn and call.result is None]


def items_of(store: Store, session: str, turn: str | None = None) -> list[Body]:
    """Return a session's items, or one turn's, oldest first."""
    rows = store.rows(
        "SELECT data FROM session_item WHERE session = ? AND (? IS NULL OR turn = ?) ORDER BY position",
        session,
        turn,
        turn,
    )
    return [json.loads(row[0]) for row in rows]


def show_session(store: Store, row: SessionRow) -> Body:
    """Return the session object."""
    turn = active_turn(store, row.id)
    now = store.now()
    waiting = waiting_calls(store, row.id, turn.id) if turn is not None and turn.status == "waiting" else []
    actions = [
        {
            "type": "function_call",
            "turn_id": call.turn,
            "call_id": call.call_id,
            "name": call.name,
            "arguments": call.arguments,
        }
        for call in waiting
        if call.accepts_at <= now
    ]
    shown = {
        "id": row.id,
        "object": "agent.session",
        "created_at": row.created_at,
        "last_active_at": row.last_active_at,
        "metadata": row.metadata,
        "status": "requires_action" if actions else "in_progress" if turn is not None else "idle",
        "required_actions": actions,
        "error": None,
        # What a session shows of its tools has no room for tool_search (openai-agents.md §2).
        "agent": row.agent | {"tools": [tool for tool in row.agent["tools"] if tool.get("type") != "tool_search"]},
        "environment": {"type": "none"},
        "vault_ids": row.settings.get("vault_ids") or [],
        "usage": None if turn is not None else _summed(t.usage for t in turns_of(store, row.id)),
    }
    return shown | {key: row.settings[key] for key in ("prompt_cache_options", "review") if row.settings.get(key)}


def show_turn(row: TurnRow, session: SessionRow) -> Body:
    """Return the turn object."""
    return {
        "id": row.id,
        "object": "agent.session.turn",
        "session_id": session.id,
        "agent_id": session.agent_id,
        "subagent_id": None,
        "status": row.status,
        "created_at": row.created_at,
        "started_at": row.started_at,
        "completed_at": row.completed_at,
        "error": row.error,
        "usage": row.usage,
    }


def add_item(db: sqlite3.Connection, session: str, item: Body, output_index: int | None) -> None:
    """Store an item, inside a running transaction."""
    db.execute(
        "INSERT INTO session_item (id, session, turn, output_index, data) VALUES (?, ?, ?, ?, ?)",
        (item["id"], session, item["turn_id"], output_index, json.dumps(item)),
    )


def _summed(usages: Any) -> Body | None:
    known = [usage for usage in usages if usage is not None]
    return None if not known else add_usage(known)


def add_usage(known: list[Body]) -> Body:
    """Return the sum of several usages."""
    total = {key: sum(usage[key] for usage in known) for key in ("input_tokens", "output_tokens", "total_tokens")}
    return {
        "input_tokens": total["input_tokens"],
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": total["output_tokens"],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": total["total_tokens"],
    }

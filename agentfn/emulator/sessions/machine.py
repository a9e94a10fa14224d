"""Moves a session on: each touch runs what is due, each step in one transaction (openai-agents.md §4.4).

A turn is queued, in_progress, waiting, then over. Nothing runs between touches, so a process that dies between two steps
leaves a session that the next touch, of whichever process, carries on.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agentfn.emulator.http import ApiError, ConnectionCut
from agentfn.emulator.models.prompt import prompt_of
from agentfn.emulator.models.thread import Decision, decide
from agentfn.emulator.sessions import rows
from agentfn.emulator.sessions.errors import error_body
from agentfn.emulator.sessions.events import item_event, message_events, tell, turn_event
from agentfn.emulator.sessions.ids import new_id
from agentfn.emulator.store import move_clock

if TYPE_CHECKING:
    import sqlite3

    from agentfn.emulator.app import Application
    from agentfn.emulator.models.step import Prompt, Reply

Body = dict[str, Any]


class Machine:
    """Carries sessions on."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._store = app.store

    # Touches ---------------------------------------------------------------------------------------------------------

    def advance(self, session: str) -> None:
        """Run everything that is due in a session; nothing where it is gone."""
        while self._needs_step(session):
            with self._store.writing() as db:
                moved = self._step(db, session)
            if not moved:
                return
            self.ring()

    def ring(self) -> None:
        """Wake the streams that wait for something to happen."""
        with self._app.bell:
            self._app.bell.notify_all()

    def seconds_left(self, session: str) -> float | None:
        """Return how long until something is due in a session; None where nothing is."""
        turn = rows.active_turn(self._store, session)
        if turn is None or turn.due is None:
            return None
        return max(0.0, turn.due - self._store.now())

    def foresee(self, session: rows.SessionRow, items: list[Body]) -> Decision:
        """Return what the model would do next with these items; nothing is stored."""
        return decide(self._store, self._app.scenario, session.thread, lambda n: self._prompt(session, items, n))

    def pin(self, db: sqlite3.Connection, session: rows.SessionRow, decision: Decision) -> None:
        """Keep which scenario a session plays, inside a running transaction, so that a process without it goes on."""
        if decision.scenario is None:
            return
        decision.remember(db)
        digest = decision.scenario.digest
        state = session.thread if session.thread.get("scenario") == digest else {}
        state = {"used": {}, **state, "scenario": digest}
        db.execute("UPDATE session SET thread = ? WHERE id = ?", (json.dumps(state), session.id))

    def refuse(self, decision: Decision, session: str | None) -> None:
        """Play the fault of a decision, if it is one: the step is used up, and nothing else happens."""
        reply = decision.reply
        if reply.fault is None and reply.cut != "before":
            return
        with self._store.writing() as db:
            decision.remember(db)
            if session is not None:
                state = json.dumps(decision.after_fault)
                db.execute("UPDATE session SET thread = ? WHERE id = ?", (state, session))
            move_clock(db, reply.advance_first + reply.advance)
        self._app.sleep(reply.delay)
        fault = reply.fault
        if fault is None:
            raise ConnectionCut
        body = error_body(fault.status, fault.message, type_=None if fault.type == "error" else fault.type)
        body["error"]["code"] = fault.code
        raise ApiError(fault.status, body, dict(fault.headers))

    def begin(self, db: sqlite3.Connection, session: str, messages: list[Body]) -> str:
        """Queue a turn, inside a running transaction; return its id."""
        identity, now = new_id("turn"), int(self._store.now())
        db.execute(
            "INSERT INTO session_turn (id, session, status, created_at, input) VALUES (?, ?, 'queued', ?, ?)",
            (identity, session, now, json.dumps(messages)),
        )
        db.execute("UPDATE session SET last_active_at = ? WHERE id = ?", (now, session))
        self._tell_turn(db, session, identity, "created")
        return identity

    def cancel(self, db: sqlite3.Connection, session: str) -> None:
        """Cancel the active turn, inside a running transaction; nothing happens where none is."""
        turn = rows.active_turn(self._store, session)
        if turn is None or turn.status == "queued":
            return  # accepted without effect: the turn does not exist yet (openai-agents.md §4.1)
        self._end(db, session, turn.id, "cancelled")

    # Steps -----------------------------------------------------------------------------------------------------------

    def _needs_step(self, session: str) -> bool:
        turn = rows.active_turn(self._store, session)
        if turn is None:
            return False
        if turn.status == "waiting" and turn.due is None:
            return False
        return turn.due is None or self._store.now() >= turn.due

    def _step(self, db: sqlite3.Connection, session: str) -> bool:
        """Do one step of the active turn; return whether anything changed."""
        turn = rows.active_turn(self._store, session)
        if turn is None or not self._needs_step(session):
            return False  # another process was faster
        if turn.status == "queued":
            self._start(db, session, turn)
        elif turn.status == "waiting":
            self._register(db, session, turn.id)
        else:
            return self._think(db, session, turn)
        return True

    def _start(self, db: sqlite3.Connection, session: str, turn: rows.TurnRow) -> None:
        for message in turn.input:
            item = {"type": "message", "id": new_id("msg"), "turn_id": turn.id, **message}
            item |= {"status": "completed", "phase": None}
            rows.add_item(db, session, item, None)
            tell(db, session, item_event("added", session, item, None))
        self._change(db, turn.id, status="in_progress", started_at=int(self._store.now()))
        self._tell_session(db, session, "in_progress")
        self._tell_turn(db, session, turn.id, "in_progress")

    def _register(self, db: sqlite3.Connection, session: str, turn: str) -> None:
        """Let the calls of a turn take results, and say so."""
        self._change(db, turn, due=None)
        self._tell_session(db, session, "requires_action")

    def _think(self, db: sqlite3.Connection, session: str, turn: rows.TurnRow) -> bool:
        """Run one model step, or begin to wait for a slow one."""
        row = rows.session_of(self._store, session)
        decision = self.foresee(row, rows.items_of(self._store, session))
        reply, after = decision.reply, decision.after
        if reply.fault is not None or reply.cut == "before":
            reply, after = _failing(reply), decision.after_fault
        if reply.delay and turn.due is None:
            self.pin(db, row, decision)
            self._change(db, turn.id, due=self._store.now() + reply.delay)
            return False
        decision.remember(db)
        db.execute(
            "UPDATE session SET thread = ?, last_active_at = ? WHERE id = ?",
            (json.dumps(after), int(self._store.now()), session),
        )
        move_clock(db, reply.advance_first)
        self._change(db, turn.id, due=None)
        self._say(db, session, turn, reply)
        if reply.failure is not None:
            code, message = reply.failure
            self._change(db, turn.id, error=json.dumps({"code": code, "message": message}))
            self._end(db, session, turn.id, "failed")
        elif reply.calls:
            self._ask(db, session, turn.id, reply)
        elif reply.incomplete is not None:
            error = {"code": "max_output_tokens", "message": f"The answer is incomplete: {reply.incomplete}."}
            self._change(db, turn.id, error=json.dumps(error))
            self._end(db, session, turn.id, "failed")
        else:
            self._end(db, session, turn.id, "completed")
        move_clock(db, reply.advance)
        return True

    def _say(self, db: sqlite3.Connection, session: str, turn: rows.TurnRow, reply: Reply) -> None:
        """Store and tell the message of a step, and count its tokens."""
        items = rows.items_of(self._store, session)
        told = reply.usage or {}
        written = json.dumps([reply.text, *map(list, reply.calls)])
        read = told.get("input_tokens", len(json.dumps(items)) // 4)
        wrote = told.get("output_tokens", len(written) // 4)
        now = {"input_tokens": read, "output_tokens": wrote, "total_tokens": told.get("total_tokens", read + wrote)}
        usage = rows.add_usage([now, turn.usage] if turn.usage else [now])
        self._change(db, turn.id, usage=json.dumps(usage))
        if reply.text is None:
            return
        item = {
            "type": "message",
            "id": new_id("msg"),
            "turn_id": turn.id,
            "role": "assistant",
            "content": [{"type": "output_text", "text": reply.text}],
            "status": "incomplete" if reply.incomplete else "completed",
            "phase": "commentary" if reply.calls else "final_answer",
        }
        index = self._next_index(turn.id)
        rows.add_item(db, session, item, index)
        events = message_events(session, item, index)
        broken = next((i for i, (kind, _) in enumerate(events) if kind.endswith(".delta")), 0) + 1
        for number, event in enumerate(events):
            tell(db, session, event, cut=reply.cut == "mid" and number == broken)

    def _ask(self, db: sqlite3.Connection, session: str, turn: str, reply: Reply) -> None:
        """Store and tell the calls of a step; they take results at once, or a little later (openai-agents.md §6)."""
        now = self._store.now()
        for number, call in enumerate(reply.calls):
            identity = call.id or new_id("exec")
            arguments = _object_of(call.arguments)
            item = {"type": "function_call", "id": identity, "turn_id": turn, "call_id": identity}
            item |= {"name": call.function, "arguments": arguments, "status": "in_progress"}
            index = self._next_index(turn)
            rows.add_item(db, session, item, index)
            cut = reply.cut == "mid" and reply.text is None and number == 0
            tell(db, session, item_event("added", session, item, index), cut=cut)
            db.execute(
                "INSERT OR IGNORE INTO session_call (session, turn, call_id, name, arguments, accepts_at)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (session, turn, identity, call.function, json.dumps(arguments), now + reply.accepts_after),
            )
        self._change(db, turn, status="waiting", due=now + reply.accepts_after)

    def _end(self, db: sqlite3.Connection, session: str, turn: str, status: str) -> None:
        self._change(db, turn, status=status, completed_at=int(self._store.now()), due=None)
        # At the time of the event nobody has counted yet (openai-agents.md §4.3).
        self._tell_turn(db, session, turn, status, usage=None)
        if rows.active_turn(self._store, session) is None:  # else the next message's turn begins
            self._tell_session(db, session, "idle")

    # Rows and events -------------------------------------------------------------------------------------------------

    def _prompt(self, session: rows.SessionRow, items: list[Body], number: int) -> Prompt:
        return prompt_of(items, session.agent["tools"], None, number)

    def _next_index(self, turn: str) -> int:
        row = self._store.one("SELECT max(output_index) FROM session_item WHERE turn = ?", turn)
        return 0 if row is None or row[0] is None else int(row[0]) + 1

    def _change(self, db: sqlite3.Connection, turn: str, **values: Any) -> None:
        places = ", ".join(f"{name} = ?" for name in values)
        db.execute(f"UPDATE session_turn SET {places} WHERE id = ?", (*values.values(), turn))

    def _tell_session(self, db: sqlite3.Connection, session: str, what: str) -> None:
        shown = rows.show_session(self._store, rows.session_of(self._store, session))
        tell(db, session, (f"agent.session.{what}", {"session": shown}))

    def _tell_turn(self, db: sqlite3.Connection, session: str, turn: str, what: str, **fields: Any) -> None:
        row = next(t for t in rows.turns_of(self._store, session) if t.id == turn)
        shown = rows.show_turn(row, rows.session_of(self._store, session)) | fields
        tell(db, session, turn_event(what, shown, **fields))


def _failing(reply: Reply) -> Reply:
    """Return a fault that no request led to, as in the turn of a message that waited, as the failure of its turn."""
    broken = ("connection_failed", "the scenario breaks the connection here")
    failure = (reply.fault.code, reply.fault.message) if reply.fault is not None else broken
    return reply._replace(text=None, calls=(), failure=failure)


def _object_of(text: str) -> Any:
    """Return a call's arguments as a JSON value; what is no JSON stays a text, which the protocol leaves possible."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text

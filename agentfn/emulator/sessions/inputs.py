"""Events that a client sends to a session: messages, results, cancellation (openai-agents.md §4.1, §6)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agentfn.emulator.http import Answer, ConnectionCut, Request, Route
from agentfn.emulator.sessions import rows
from agentfn.emulator.sessions.errors import conflict, invalid, missing, wrong_type, wrong_value
from agentfn.emulator.sessions.events import item_event, tell
from agentfn.emulator.sessions.fields import body_of, content_of, message_list, require_known
from agentfn.emulator.sessions.ids import new_id
from agentfn.emulator.sessions.live import LiveStream
from agentfn.emulator.store import save_thread

if TYPE_CHECKING:
    import sqlite3

    from agentfn.emulator.app import Application
    from agentfn.emulator.sessions.machine import Machine

Body = dict[str, Any]

#: A whole result must be smaller, in bytes (openai-agents.md §6).
LARGEST_RESULT = 4_194_304
MOST_EVENTS = 16_384
LONGEST_KEY = 256
_PREFIX = "agent.session.input."
_KINDS = {
    "tool_result": ("turn_id", "call_id", "success", "output", "error"),
    "message": ("input",),
    "cancel": (),
    "mcp_approval_request_result": ("request_id", "response"),
    "computer_use_approval_request_result": ("request_id", "response"),
}


class Inputs:
    """The two routes of a session's events: in by POST, out by GET."""

    def __init__(self, app: Application, machine: Machine) -> None:
        self._app = app
        self._store = app.store
        self._machine = machine

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            ("POST", "agents/sessions/{}/events", self.send),
            ("GET", "agents/sessions/{}/events", self.stream),
        ]

    def stream(self, request: Request, session: str) -> Answer:
        """Stream what happens from now on; what the active turn has said so far is shown again, without deltas."""
        del request
        rows.session_of(self._store, session)
        return Answer(stream=LiveStream.attached(self._app, self._machine, session))

    def send(self, request: Request, session: str) -> Answer:
        """Take events; 202 says that they were accepted, and nothing more."""
        body = body_of(request)
        require_known(body, ("events",))
        events = body.get("events")
        if events is None:
            raise missing("events")
        if not isinstance(events, list):
            raise wrong_type("events", "an array", events)
        if len(events) > MOST_EVENTS:
            raise invalid(f"Invalid 'events': at most {MOST_EVENTS} events are allowed.", "events")
        for index, event in enumerate(events):
            _check(event, f"events[{index}]")
        rows.session_of(self._store, session)
        key = _idempotency_key(request, session)
        if key is not None and self._store.thread(key):
            return Answer(status=202)  # what the same key brings a second time, with whatever body, is not taken again
        if not self._is_opening(session):
            self._machine.advance(session)  # what was due by now happened before these events
        cut = self._foreseen_cut(rows.session_of(self._store, session), events)
        try:
            # All or nothing; what the official service does is unknown (openai-agents.md §6).
            with self._store.writing() as db:
                for event in events:
                    self._take(db, session, event)
                if key is not None:
                    save_thread(db, key, {"taken": True})
        finally:
            self._machine.advance(session)
            self._machine.ring()
        if cut:
            raise ConnectionCut
        return Answer(status=202)

    def _foreseen_cut(self, row: rows.SessionRow, events: list[Body]) -> bool:
        """Play the fault of the model step that these events lead to; tell whether the answer to them gets lost."""
        items = rows.items_of(self._store, row.id)
        turn = rows.active_turn(self._store, row.id)
        calls = rows.waiting_calls(self._store, row.id, turn.id) if turn is not None else []
        waiting = {call.call_id for call in calls}
        taking = {(call.turn, call.call_id) for call in calls if call.accepts_at <= self._store.now()}
        given = [
            {"type": "function_call_output", **{k: event.get(k) for k in ("call_id", "output", "error")}}
            for event in events
            if event["type"] == f"{_PREFIX}tool_result" and (event["turn_id"], event["call_id"]) in taking
        ]
        messages = [m for e in events if e["type"] == f"{_PREFIX}message" for m in e["input"]]
        answers_all = bool(given) and waiting == {item["call_id"] for item in given}
        begins = turn is None and bool(messages)
        if not answers_all and not begins:
            return False
        said = [{"type": "message", **message} for message in messages] if begins else []
        decision = self._machine.foresee(row, [*items, *given, *said])
        self._machine.refuse(decision, row.id)
        return decision.reply.cut == "after"

    def _take(self, db: sqlite3.Connection, session: str, event: Body) -> None:
        kind = event["type"].removeprefix(_PREFIX)
        if kind == "message":
            if self._is_opening(session):
                raise conflict("session initial input is still pending")
            self._machine.begin(db, session, event["input"])
        elif kind == "tool_result":
            self._take_result(db, session, event)
        elif kind == "cancel":
            self._machine.cancel(db, session)
        else:
            raise invalid(f"Unknown pending approval request: {event.get('request_id')}")

    def _is_opening(self, session: str) -> bool:
        """Tell whether a session's first message is still being set up."""
        turns = rows.turns_of(self._store, session)
        return len(turns) == 1 and turns[0].status == "queued"

    def _take_result(self, db: sqlite3.Connection, session: str, event: Body) -> None:
        identity, turn = event["call_id"], event["turn_id"]
        calls = [call for call in rows.calls_of(self._store, session) if call.call_id == identity]
        call = next((call for call in calls if call.turn == turn), None)
        if call is None or call.accepts_at > self._store.now():
            if call is None and calls:
                shown = identity.replace("_", "-", 1)
                raise invalid(f"function call {shown} belongs to a different managed agent turn")
            raise invalid(f"Unknown pending tool call: {identity}")
        result = {key: event.get(key) for key in ("success", "output", "error")}
        if call.result is not None:
            if call.result != result:
                raise conflict("The tool call already has a different result.")
            return
        active = rows.active_turn(self._store, session)
        if active is None or active.id != turn:
            raise conflict("The Turn cannot accept this input in its current state.")
        db.execute(
            "UPDATE session_call SET result = ? WHERE session = ? AND turn = ? AND call_id = ?",
            (json.dumps(result), session, turn, identity),
        )
        self._store_output(db, session, call, result)
        if not rows.waiting_calls(self._store, session, turn):
            db.execute("UPDATE session_turn SET status = 'in_progress', due = NULL WHERE id = ?", (turn,))

    def _store_output(self, db: sqlite3.Connection, session: str, call: rows.CallRow, result: Body) -> None:
        """Add the output's item, and finish the call's (openai-agents.md §4.4, 10 and 11)."""
        output = result["output"] if result["success"] else None
        if isinstance(output, str):
            output = [{"type": "input_text", "text": output}]
        item: Body = {"type": "function_call_output", "id": new_id("fco"), "turn_id": call.turn}
        error = None if result["success"] else result["error"]
        item |= {"call_id": call.call_id, "status": "completed", "output": output, "error": error}
        rows.add_item(db, session, item, None)
        tell(db, session, item_event("added", session, item, None))
        sql = "SELECT position, output_index, data FROM session_item WHERE session = ? AND turn = ? AND id = ?"
        row = self._store.one(sql, session, call.turn, call.call_id)
        assert row is not None  # noqa: S101  # both were stored in one transaction
        asked = json.loads(row[2]) | {"status": "completed"}
        db.execute("UPDATE session_item SET data = ? WHERE position = ?", (json.dumps(asked), row[0]))
        tell(db, session, item_event("done", session, asked, row[1]))


def _idempotency_key(request: Request, session: str) -> str | None:
    """Return the name under which a request's key is kept; how long the service keeps one is not documented (§10)."""
    key = request.headers.get("idempotency-key")
    if key is None:
        return None
    if not 1 <= len(key) <= LONGEST_KEY:
        raise invalid(f"Idempotency-Key must have 1 to {LONGEST_KEY} characters")
    return f"key:{session}:{key}"


def _check(event: Any, at: str) -> None:
    if not isinstance(event, dict):
        raise wrong_type(at, "an object", event)
    kind = event.get("type")
    if kind is None:
        raise missing(f"{at}.type")
    known = {f"{_PREFIX}{name}": fields for name, fields in _KINDS.items()}
    if kind not in known:
        raise wrong_value(f"{at}.type", kind, tuple(known))
    require_known(event, ("type", *known[kind]), f"{at}.")
    if kind == f"{_PREFIX}message":
        if event.get("input") is None:
            raise missing(f"{at}.input")
        event["input"] = message_list(event["input"], f"{at}.input")
    elif kind == f"{_PREFIX}tool_result":
        _check_result(event, at)


def _check_result(event: Body, at: str) -> None:
    for key, kind, expected in (
        ("turn_id", str, "a string"),
        ("call_id", str, "a string"),
        ("success", bool, "a boolean"),
    ):
        if event.get(key) is None:
            raise missing(f"{at}.{key}")
        if not isinstance(event[key], kind):
            raise wrong_type(f"{at}.{key}", expected, event[key])
    error, output = event.get("error"), event.get("output")
    if error is not None and not isinstance(error, str):
        raise wrong_type(f"{at}.error", "a string", error)
    if output is not None and not isinstance(output, str):
        content_of(output, f"{at}.output")
    size = len(json.dumps(event, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    if size >= LARGEST_RESULT:
        # The real status and words are unknown (openai-agents.md §6, §10).
        raise invalid(f"Invalid '{at}.output': the result is larger than {LARGEST_RESULT} bytes.", f"{at}.output")

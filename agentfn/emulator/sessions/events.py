"""What a session tells: events in a table, which streams read by sequence (openai-agents.md §4.2 to §4.4)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agentfn.emulator.sessions.ids import new_id

if TYPE_CHECKING:
    import sqlite3

Body = dict[str, Any]

Event = tuple[str, Body]
"""Type and members of an event."""

_TURN = "agent.session.turn"
#: Characters in one delta: short, so that clients meet text in several pieces.
DELTA = 16


def tell(db: sqlite3.Connection, session: str, event: Event, *, cut: bool = False) -> None:
    """Write an event down, inside a running transaction; `cut` breaks the stream that comes to it."""
    kind, fields = event
    data = {"type": kind, "event_id": new_id("evt"), **fields}
    db.execute("INSERT INTO session_event (session, cut, data) VALUES (?, ?, ?)", (session, cut, json.dumps(data)))


def turn_event(what: str, turn: Body, **fields: Any) -> Event:
    """Return the type and the members of an event about a turn."""
    return f"{_TURN}.{what}", {"session_id": turn["session_id"], "turn_id": turn["id"], "turn": turn, **fields}


def item_event(what: str, session: str, item: Body, index: int | None) -> Event:
    """Return the event of an item that was added or is done."""
    at = {"session_id": session, "turn_id": item["turn_id"], "output_index": index}
    return f"{_TURN}.item.{what}", {**at, "item": item}


def message_events(session: str, item: Body, index: int, *, deltas: bool = True) -> list[Event]:
    """Return the events of an assistant's message, from its first sign to its end; a catch-up has no deltas."""
    begun = {**item, "status": "in_progress", "content": []}
    text = item["content"][0]["text"]
    at = {"session_id": session, "turn_id": item["turn_id"], "item_id": item["id"]}
    at |= {"output_index": index, "content_index": 0}
    pieces = [text[start : start + DELTA] for start in range(0, len(text), DELTA)] if deltas else []
    return [
        item_event("added", session, begun, index),
        (f"{_TURN}.content_part.added", {**at, "part": {"type": "output_text", "text": ""}}),
        *((f"{_TURN}.output_text.delta", {**at, "delta": piece}) for piece in pieces),
        (f"{_TURN}.output_text.done", {**at, "text": text}),
        (f"{_TURN}.content_part.done", {**at, "part": {"type": "output_text", "text": text}}),
        item_event("done", session, item, index),
    ]

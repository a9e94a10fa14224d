"""Sessions, items and events of the Agents API as a scripted service gives them."""

from __future__ import annotations

import json
from typing import Any

from agentfn.backends.protocol import Start, Submit
from agentfn.model import AgentRef, Call, Outcome, Stamp
from tests.unit.backends.conftest import NOW, Answer, streamed

SESSIONS = "/agents/sessions"
ONE = f"{SESSIONS}/sess_1"
EVENTS = f"{ONE}/events"
STAMP = Stamp("run_1", "rsc_1", None)
AGENT = AgentRef("demo", "agent_1")
CALL = Call("exec_1", "get_weather", '{"city": "Oslo"}')
ACTION = {"type": "function_call", "turn_id": "turn_1", "call_id": "exec_1", "name": "get_weather"}
ACTION |= {"arguments": {"city": "Oslo"}}  # type: ignore[dict-item]  # an object, as the service sends it
ACCEPTED = Answer(202)


def session(status: str = "in_progress", *actions: dict[str, Any], **more: Any) -> dict[str, Any]:
    found = {"id": "sess_1", "object": "agent.session", "status": status, "required_actions": list(actions)}
    return found | {"error": None, "agent": {"id": "agent_1", "name": "demo"}, "last_active_at": int(NOW), **more}


def item(kind: str, text: str, **more: Any) -> dict[str, Any]:
    role = "user" if kind == "user" else "assistant"
    content = [{"type": "input_text" if kind == "user" else "output_text", "text": text}]
    found = {"type": "message", "id": f"msg_{text}", "turn_id": "turn_1", "role": role, "content": content}
    return found | {"status": "completed", "phase": None if kind == "user" else "final_answer", **more}


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"agent.session.{kind}", "event_id": f"evt_{kind}", **fields}


def turn(what: str, status: str | None = None, **fields: Any) -> dict[str, Any]:
    found = {"id": "turn_1", "status": status or what, "created_at": int(NOW), "error": None, "usage": None}
    return event(f"turn.{what}", turn_id="turn_1", turn=found | fields)


def added(found: dict[str, Any]) -> dict[str, Any]:
    return event("turn.item.added", turn_id="turn_1", output_index=None, item=found)


def done(found: dict[str, Any], index: int = 0) -> dict[str, Any]:
    return event("turn.item.done", turn_id="turn_1", output_index=index, item=found)


BEGUN = [event("created", session=session()), turn("created", "queued"), added(item("user", "hi"))]
ASKS = event("requires_action", session=session("requires_action", ACTION))
ENDS = [done(item("agent", "sunny")), turn("completed"), event("idle", session=session("idle"))]


def stream(*events: dict[str, Any] | str, cut: str | None = None) -> Answer:
    frames = [e if isinstance(e, str) else f"event: {e.get('type')}\ndata: {json.dumps(e)}\n\n" for e in events]
    return streamed("".join(frames).encode(), cut=cut)


def start(message: str = "hi", conversation: str | None = None, earlier_same: int = 0) -> Start:
    return Start(AGENT, message, "turn_ours", conversation, STAMP, earlier_same)


def submit(*pairs: tuple[Call, Outcome]) -> Submit:
    return Submit(AGENT, "sess_1", "turn_1", "turn_1", pairs)

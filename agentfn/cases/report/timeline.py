"""The moments of an attempt in the order in which they came, each with its time: what an HTML page draws."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from agentfn.cases.happened import Attempt, HappenedTurn
    from agentfn.turn.events import Event


class Moment(NamedTuple):
    """One thing that happened. `kind` is user, call, output, agent, failure or note.

    `at` is seconds since the attempt's first event, `seconds` how long it took, 0 where it took no time of its own.
    """

    kind: str
    title: str
    text: str
    at: float
    seconds: float = 0.0


def moments(attempt: Attempt) -> list[Moment]:
    """Return an attempt's moments."""
    begun = next((turn.events[0].at for turn in attempt.turns if turn.events), 0.0)
    found: list[Moment] = []
    for number, turn in enumerate(attempt.turns, 1):
        found += _of_turn(turn, f"user, turn {number}" if len(attempt.turns) > 1 else "user", begun)
    return found


def _of_turn(turn: HappenedTurn, title: str, begun: float) -> list[Moment]:
    events = turn.events
    started = events[0].at - begun if events else 0.0
    found = [Moment("user", title, turn.message, started)]
    calls = {call.id: call for call in turn.calls}
    running: dict[str, float] = {}
    for event in events:
        moment = _of_event(event, begun, running)
        if moment is not None:
            call = calls.get(str(event.data.get("call")))
            if event.type == "call.requested" and call is not None and call.problem:
                moment = moment._replace(text=f"{moment.text}\n({call.problem})")
            found.append(moment)
    ended = events[-1].at - begun if events else started
    if turn.answer is not None:
        found.append(Moment("agent", "agent", turn.answer, ended))
    if turn.failure is not None:
        found.append(Moment("failure", "no answer", turn.failure, ended))
    return found


def _of_event(event: Event, begun: float, running: dict[str, float]) -> Moment | None:
    data, at = event.data, event.at - begun
    name = str(data.get("function") or "")
    call = str(data.get("call") or "")
    if event.type == "call.requested":
        return Moment("call", name, str(data["arguments"]), at)
    if event.type == "call.started":
        running[call] = at
        return None
    if event.type == "call.finished":
        since = running.get(call, at)
        if "error" in data:
            return Moment("failure", f"{name} failed", str(data["error"]), since, at - since)
        output = data["output"]
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
        return Moment("output", f"{name} gave", text, since, at - since)
    if event.type == "call.denied":
        return Moment("failure", f"{name} denied", str(data["reason"]), at)
    if event.type == "request.retried":
        return Moment("note", "sent again", f"{data['reason']}, after {data['seconds']} s", at)
    if event.type in ("warning", "notice"):
        return Moment("note", event.type, str(data["message"]), at)
    return None

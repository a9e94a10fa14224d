"""What happened in one attempt at a case, as plain values: turns, the calls that the service asked for, how it ended."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal, NamedTuple

from agentfn.turn.state import arguments_value

if TYPE_CHECKING:
    from agentfn.cases.expect.failure import Failure
    from agentfn.errors import AgentfnError
    from agentfn.journal.calls import CallRow
    from agentfn.model import Json, Usage
    from agentfn.turn.events import Event

CallState = Literal["answered", "failed", "denied", "pending"]


class HappenedCall(NamedTuple):
    """A call that the service asked for, whatever became of it. `turn` and `step` count from 1.

    `arguments` is the text as the model wrote it. `output` is what was sent, content parts as JSON.
    """

    turn: int
    step: int
    id: str
    function: str
    arguments: str
    state: CallState
    output: str | None = None
    error: str | None = None
    problem: str | None = None
    seconds: float | None = None

    @property
    def value(self) -> Json:
        """Return the arguments as JSON where they are JSON; none at all are an empty object."""
        return arguments_value(self.arguments) if self.arguments.strip() else {}

    def __str__(self) -> str:
        """Return the call as code is written."""
        value = self.value
        if not isinstance(value, dict):
            return f"{self.function}({self.arguments})"
        inner = ", ".join(f"{name}: {json.dumps(item, ensure_ascii=False)}" for name, item in value.items())
        return f"{self.function}({inner})"


class HappenedTurn(NamedTuple):
    """One turn: what was said, what came of it. `state` is pending also where a limit of ours ended it.

    `failure` is why there is no answer, `limit` which limit of ours was hit. `usage` is None where the service told none.
    """

    message: str
    state: Literal["ended", "pending", "failed"]
    answer: str | None
    failure: str | None
    calls: tuple[HappenedCall, ...]
    usage: Usage | None
    seconds: float
    events: tuple[Event, ...]
    limit: str | None = None

    @property
    def steps(self) -> int:
        """Return how often the model was asked to go on."""
        asked = max((call.step for call in self.calls), default=0)
        return asked if self.state == "pending" else asked + 1


class Attempt(NamedTuple):
    """One run of a case. `error` is why it could not run, or not to its end; `refused` is why a recording did not fit.

    `unused` are functions whose outputs were given and that were never asked for, `unanswered` those of which a call found
    no output left or meant for it. `conversation` is the service's id.
    """

    number: int
    turns: tuple[HappenedTurn, ...]
    seconds: float
    conversation: str = ""
    error: AgentfnError | None = None
    refused: Failure | None = None
    unused: tuple[str, ...] = ()
    unanswered: tuple[str, ...] = ()

    @property
    def calls(self) -> tuple[HappenedCall, ...]:
        """Return the calls of all turns."""
        return tuple(call for turn in self.turns for call in turn.calls)


def happened_calls(rows: tuple[CallRow, ...], turn: int) -> tuple[HappenedCall, ...]:
    """Return the journal's calls of a turn; what was asked for in one step has one step number."""
    found: list[HappenedCall] = []
    step, last = 0, None
    for row in rows:
        # On sessions every step of a turn bears the turn's name, so the moment tells them apart too.
        if (row.asked_by, row.asked_at) != last:
            step, last = step + 1, (row.asked_by, row.asked_at)
        outcome = row.outcome
        content = json.dumps(outcome.content, ensure_ascii=False) if outcome and outcome.content is not None else None
        found.append(
            HappenedCall(
                turn=turn,
                step=step,
                id=row.id,
                function=row.function,
                arguments=row.arguments,
                state=_state(row),
                output=content if content is not None else outcome.output if outcome else None,
                error=outcome.error if outcome else None,
                problem=row.problem,
                seconds=row.seconds,
            )
        )
    return tuple(found)


def _state(row: CallRow) -> CallState:
    outcome = row.outcome
    if outcome is None or (row.problem is not None and not outcome.failed):
        return "pending"
    if row.verdict == "no":
        return "denied"
    return "failed" if outcome.failed else "answered"

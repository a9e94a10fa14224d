"""How a turn stands: what is reported of its calls, and how it ended."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from agentfn.journal.calls import CallRow
    from agentfn.journal.turns import Conversation
    from agentfn.model import Json, OtherAction, Usage

#: The journal's states in the words of the screen and of JSON. An outcome that is stored but not known to have arrived
#: is "answered"; a call that started and has no outcome is in doubt unless somebody still runs it.
PUBLIC_STATE = {
    "waiting": "waiting",
    "approved": "waiting",
    "denied": "answered",
    "started": "in_doubt",
    "finished": "answered",
    "sent": "answered",
    "accepted": "accepted",
    "superseded": "superseded",
    "expired": "expired",
}


def arguments_value(text: str) -> Json:
    """Return a call's arguments as JSON where they are JSON, else the text as the model wrote it."""
    try:
        # Python reads NaN and Infinity, which are no JSON: they stay text.
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def _refuse(constant: str) -> Json:
    raise ValueError(constant)


def call_report(row: CallRow) -> dict[str, Json]:
    """Return a call as ``data.calls`` shows it."""
    report: dict[str, Json] = {
        "id": row.id,
        "function": row.function,
        "arguments": arguments_value(row.arguments),
        "state": PUBLIC_STATE[row.state],
    }
    outcome = row.outcome
    if outcome is not None and outcome.failed:
        report["error"] = outcome.error
    elif outcome is not None:
        report["output"] = outcome.output if outcome.content is None else outcome.content
    if row.problem is not None:
        report["problem"] = row.problem
    report["seconds"] = None if row.seconds is None else round(row.seconds, 3)
    return report


def usage_report(usage: Usage) -> dict[str, Json] | None:
    """Return token counts as they are shown; None where the service told none."""
    return usage._asdict() if any(usage) else None


class TurnResult(NamedTuple):
    """How a turn stands when the loop lets go of it.

    `failure` says why it failed; `waiting` are the calls that need an outcome from outside; `actions` is what else the
    service waits for. `limit` is set where a limit of ours ended the loop.
    """

    state: Literal["ended", "pending", "failed"]
    turn: str
    conversation: Conversation
    answer: str | None
    failure: str | None
    calls: tuple[CallRow, ...]
    waiting: tuple[CallRow, ...]
    actions: tuple[OtherAction, ...]
    usage: Usage
    limit: str | None = None

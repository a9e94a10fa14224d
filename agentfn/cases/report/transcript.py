"""One attempt as plain text: what was said, which calls were asked for, what was sent back, what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentfn.cases.happened import Attempt, HappenedCall


def transcript(attempt: Attempt) -> list[str]:
    """Return the attempt as lines; a text of several lines is indented."""
    lines: list[str] = []
    for number, turn in enumerate(attempt.turns, 1):
        lines += _block("user" if len(attempt.turns) == 1 else f"user, turn {number}", turn.message)
        for call in turn.calls:
            lines += _call(call)
        if turn.answer is not None:
            lines += _block("agent", turn.answer)
        if turn.failure is not None:
            lines += _block("failure", turn.failure)
    return lines


def _call(call: HappenedCall) -> list[str]:
    lines = _block(f"call {call.function} [{call.id}], step {call.step}", call.arguments)
    if call.problem is not None:
        lines += _block("problem", call.problem)
    if call.error is not None:
        lines += _block(f"error, {call.state}", call.error)
    elif call.output is not None:
        lines += _block("output", call.output)
    else:
        lines.append("output: none, the call waits")
    return lines


def _block(title: str, text: str) -> list[str]:
    first, *rest = text.split("\n")
    return [f"{title}: {first}", *(f"    {line}" for line in rest)]

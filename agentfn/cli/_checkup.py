"""Tries one agent out: whether it asks for a call, the function runs, and an answer follows its output."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agentfn.cli._chatting import Chat, ChatOptions
from agentfn.errors import AgentfnError, NegativeError
from agentfn.journal.turns import Turns
from agentfn.model import Outcome
from agentfn.turn.loop import TurnLoop

if TYPE_CHECKING:
    from agentfn.cli._context import AppContext
    from agentfn.definition.agent import Agent, FunctionTool
    from agentfn.turn.events import Emit
    from agentfn.turn.state import TurnResult

#: What a function without a handler gives in a check-up; nobody is asked.
PLACEHOLDER = "a check-up's output, in place of a person's"


class Finding(NamedTuple):
    """One of the three checks; `remedy` is set where it failed."""

    name: str
    told: str
    remedy: str | None = None


def check_up(ctx: AppContext, file: str, message: str | None, emit: Emit) -> list[Finding]:
    """Run the three checks with the agent of a file, on a version of its own, and remove what that made.

    The checks after a failed one are not tried. Raises what `chat` raises where the turn cannot run at all.
    """
    chat = Chat(ctx, ChatOptions(file, own=True))
    if chat.agent is None or not chat.agent.functions:
        raise NegativeError(f"{file} has no function, so there is nothing to try", code="no_function")
    chat.open(emit)
    try:
        return _checks(chat, chat.agent, message or question(chat.agent.functions[0]))
    finally:
        for left in chat.remove().left:
            ctx.console.warn(f"not removed: {left.resource.label}: {left.why}; agentfn cleanup --run {chat.run}")


def question(tool: FunctionTool) -> str:
    """Return a message that a model can hardly answer without calling the function."""
    about = f": {tool.description.rstrip('.')}" if tool.description else ""
    return f"Please use your function {tool.name}{about}. Choose any sensible arguments, and tell me what it gave."


def _checks(chat: Chat, agent: Agent, message: str) -> list[Finding]:
    failure: str | None = None
    try:
        result = chat.say(message)
        by_hand = [row for row in result.waiting if row.problem is None]
        if by_hand and len(by_hand) == len(result.waiting):
            result = _answered(chat, result)
    except AgentfnError as exc:
        rows = [f"{row.function}({row.arguments})" for row in chat.calls()]
        if not rows:
            raise
        return [
            Finding("asks for a call", ", ".join(rows)),
            Finding("runs and ends", exc.message, exc.hint or "see above"),
        ]
    failure = result.failure
    if not result.calls:
        told = failure or f"it answered without a call: {result.answer}"
        remedy = f"clear names and descriptions, tool_choice: agentfn validate {agent.path}"
        return [Finding("asks for a call", told, remedy)]
    found = [Finding("asks for a call", ", ".join(f"{row.function}({row.arguments})" for row in result.calls))]
    wrong = next((row for row in result.calls if row.error is not None or row.problem is not None), None)
    if wrong is not None:
        remedy = f"run it alone: agentfn call {agent.path} {wrong.function} '{wrong.arguments}'"
        return [*found, Finding("the function runs", str(wrong.error or wrong.problem), remedy)]
    found.append(Finding("the function runs", ", ".join(f"{row.function}: {row.output}" for row in result.calls)))
    if result.state != "ended" or not result.answer:
        told = failure or result.limit or "no answer came after the output"
        return [*found, Finding("an answer follows", told, "instructions that say to answer once a function has given")]
    return [*found, Finding("an answer follows", result.answer)]


def _answered(chat: Chat, result: TurnResult) -> TurnResult:
    """Answer calls that wait for a person with a placeholder, as often as it takes."""
    for _ in range(chat.session.policy.rounds):
        if result.state != "pending" or not result.waiting:
            break
        turn = next(t for t in Turns(chat.session.journal).of(result.conversation) if t.id == result.turn)
        given = {row.id: Outcome(output=PLACEHOLDER) for row in result.waiting}
        result = TurnLoop(chat.session).resume(turn, given)
    return result

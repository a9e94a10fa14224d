"""How a turn's end is shown: the answer on stdout, advice on stderr, and the data of `chat` and `respond`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agentfn.cli._output import CommandResult
from agentfn.cli._story import Story
from agentfn.errors import AgentfnError, ExitCode
from agentfn.turn.state import TurnResult, call_report, usage_report
from agentfn.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentfn.cli._chatting import Chat
    from agentfn.cli._context import AppContext
    from agentfn.cli._output import Console
    from agentfn.definition.agent import Agent
    from agentfn.journal.ledger import Resource
    from agentfn.model import Json
    from agentfn.turn.events import Emit, Event


#: What a problem's text holds, and what to change in the agent file so that it comes less often.
REMEDIES = (
    ("are not valid JSON", "arguments were no JSON: check that the schema's types are right, or set strict: true"),
    ("missing required property", "arguments were missing: set strict: true, or describe the parameters better"),
    (" expects ", "arguments had the wrong type: describe the parameter with an example, or set strict: true"),
    ("must be one of", "arguments were none of the allowed values: name them in the description, or set strict: true"),
    ("unknown function", "the agent asked for a function that is not in this file: was it created from another one?"),
)


def turn_data(result: TurnResult, run: str, created: Iterable[Resource]) -> dict[str, Json]:
    """Return the `data` of `chat` and `respond`."""
    return {
        "agent": str(result.conversation.ref),
        "conversation": result.conversation.id,
        "turn": result.turn,
        "answer": result.answer,
        "calls": [call_report(row) for row in result.calls],
        "usage": usage_report(result.usage),
        "created": [{"kind": row.kind, "name": row.name, "version": row.version} for row in created],
        "run": run,
    }


def place_flags(backend: str, endpoint: str) -> str:
    """Return the flags that mean this place, for a command that a person is to type; none for the default one."""
    if backend != "local":
        return f" --backend {backend} --endpoint {endpoint}"
    face = endpoint.removeprefix("local/")
    return "" if face == "foundry" else f" --protocol {face}"


def events_to_stdout(ctx: AppContext) -> Emit:
    """Return a listener that prints each event as one JSON line, at once."""

    def emit(event: Event) -> None:
        ctx.console.out(json.dumps(event.as_json()))

    return emit


def finish(
    ctx: AppContext,
    result: TurnResult,
    data: dict[str, Json],
    story: Emit,
    *,
    agent: Agent | None,
) -> CommandResult:
    """Return the command's result for a turn; with ``--events`` the events were the output."""
    if result.conversation.backend == "local" and (ctx.json or not isinstance(story, Story)):
        ctx.console.say("answered by the embedded service, which is no language model")
    if not isinstance(story, Story):
        return CommandResult(data, _exit_code(result), errors=_errors(result))

    def render(console: Console) -> None:
        show_end(console, result, streamed=story.streamed)
        show_remedies(console, result, agent)
        if result.conversation.backend == "local":
            console.say("answered by the embedded service, which is no language model")

    return CommandResult(data, _exit_code(result), render=render, errors=_errors(result))


def show_end(console: Console, result: TurnResult, *, streamed: bool) -> None:
    """Show how a turn ended: the answer, or what waits and the command that answers it."""
    if streamed:
        console.out("")
    elif result.answer is not None:
        console.out(visible(result.answer))
    for action in result.actions:
        console.warn(f"the service also waits for {action.type} {action.id}: {action.advice}")
    if result.limit is not None:
        console.warn(result.limit)
    if result.state != "pending":
        return
    conversation = result.conversation.id
    for row in result.waiting:
        state = "in doubt" if row.state == "started" else "waits"
        console.say(f"{state}: {visible(row.function, multiline=False)} [{row.id}] of {conversation}")
        if row.problem:
            console.say(f"  {visible(row.problem, multiline=False)}")
        if row.state == "started":
            console.say("  it was started and left no outcome; check whether it ran, then give its outcome,")
            console.say(f"  or run it again: agentfn respond {conversation} --call {row.id} --rerun")
    if len(result.waiting) == 1:
        console.say(f"answer it: agentfn respond {conversation} --call {result.waiting[0].id} --output TEXT")
    elif result.waiting:
        console.say(f"answer them: agentfn respond {conversation} --call ID --output TEXT, once for each")


def show_remedies(console: Console, result: TurnResult, agent: Agent | None) -> None:
    """Say what to look at where a call was wrong, or where an agent with functions asked for none."""
    where = f" (agentfn validate {agent.path})" if agent is not None and agent.path else ""
    if result.state == "ended" and not result.calls and agent is not None and agent.functions:
        console.say(f"no function was called; should one have been: clear names and descriptions, tool_choice{where}")
    wrong = [row.problem or "" for row in result.calls if row.problem is not None]
    for sign, remedy in REMEDIES:
        if any(sign in problem for problem in wrong):
            console.say(f"{remedy}{where}")


def _exit_code(result: TurnResult) -> ExitCode:
    if result.limit is not None or result.state == "failed":
        return ExitCode.NEGATIVE
    return ExitCode.PENDING if result.state == "pending" else ExitCode.OK


def _errors(result: TurnResult) -> tuple[AgentfnError, ...]:
    if result.limit is not None:
        hint = f"the last call waits: agentfn pending {result.conversation.id}"
        return (AgentfnError(result.limit, code="turn_limit", hint=hint),)
    if result.state == "failed":
        return (AgentfnError(f"the turn failed: {result.failure}", code="turn_failed"),)
    return ()


def repl(ctx: AppContext, chat: Chat) -> CommandResult:
    """Talk on the terminal until the end of input; a turn that fails does not end the conversation."""
    console = ctx.console
    console.say("an empty line, /quit or Ctrl-D ends the conversation")
    story = Story(console, stream=True)
    chat.session.emit = story
    last: TurnResult | None = None
    while True:
        line = console.ask("> ")
        if line is None or line.strip() in {"", "/quit", "/exit"}:
            break
        story.streamed = False
        try:
            last = chat.say(line)
        except AgentfnError as exc:
            console.error(exc)
            continue
        show_end(console, last, streamed=story.streamed)
    if last is None:
        return CommandResult({})
    return CommandResult(turn_data(last, chat.run, chat.created()), _exit_code(last), errors=_errors(last))

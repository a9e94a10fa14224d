"""Talks to an agent: one message, or a conversation on a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from agentfn.cli import _options as opt
from agentfn.cli._context import AppContext
from agentfn.cli._output import CommandResult
from agentfn.cli._turns import events_to_stdout, finish, place_flags, repl, turn_data
from agentfn.errors import UsageError
from agentfn.utf8 import decode, require_text

if TYPE_CHECKING:
    from agentfn.cli._chatting import Chat


@opt.command
def chat(
    ctx: AppContext,
    agent: Annotated[str, typer.Argument(help="An agent file (created if needed), or name[:version].")],
    message: Annotated[str | None, typer.Argument(help="What to say; - reads standard input.")] = None,
    conversation: Annotated[str | None, typer.Option("-c", "--conversation", help="Go on with this one.")] = None,
    no_run: Annotated[bool, typer.Option("--no-run", help="Run no handler: every call stays pending.")] = False,
    rm: Annotated[bool, typer.Option("--rm", help="Remove what this command created.")] = False,
    events: Annotated[bool, typer.Option("--events", help="Print each event as a JSON line.")] = False,
    wait: opt.Wait = 10.0,
    approve: opt.Approve = None,
    scenario: opt.Scenario = None,
) -> CommandResult:
    """Talk to an agent: one message, or a conversation on a terminal."""
    if events and ctx.json:
        raise UsageError("--json and --events are two forms of the same output", hint="choose one")
    text = _message(ctx, message, events=events)
    from agentfn.cli._chatting import Chat, ChatOptions
    from agentfn.cli._story import Story

    story = events_to_stdout(ctx) if events else Story(ctx.console, stream=ctx.console.answers_on_terminal)
    options = ChatOptions(
        target=agent,
        conversation=conversation,
        scenario=scenario,
        own=rm,
        run_handlers=not no_run,
        wait=wait,
        approve=approve,
        stream=events or ctx.console.answers_on_terminal,
    )
    opened = Chat(ctx, options)
    try:
        opened.open(story)
        if text is None:
            ended, waits = repl(ctx, opened), False
        else:
            result = opened.say(text)
            waits = result.state == "pending"
            ended = finish(ctx, result, turn_data(result, opened.run, opened.created()), story, agent=opened.agent)
    except BaseException:
        closing = _close(ctx, opened, rm=rm, waits=False)
        if closing is not None:
            ctx.console.say(closing)
        raise
    return ended._replace(closing=_close(ctx, opened, rm=rm, waits=waits))


def _message(ctx: AppContext, message: str | None, *, events: bool) -> str | None:
    """Return the message; None means a conversation on the terminal."""
    if message == "-":
        message = decode(sys.stdin.buffer.read(), "standard input")
    if message is not None:
        if not message.strip():
            raise UsageError("the message is empty")
        return require_text(message, "the message")
    if not ctx.console.interactive:
        raise UsageError("there is no MESSAGE, and no terminal to ask on", hint='agentfn chat AGENT "…"')
    if ctx.json or events:
        raise UsageError("--json and --events need a MESSAGE", hint='agentfn chat AGENT "…" --json')
    return None


def _close(ctx: AppContext, chat: Chat, *, rm: bool, waits: bool) -> str | None:
    """Remove what was made, or return the line that says how to; what a waiting call needs is kept."""
    if not chat.created():
        return None
    labels = ", ".join(row.label for row in chat.created())
    command = f"agentfn cleanup --run {chat.run}{place_flags(*chat.place)}"
    if rm and not waits:
        for item in chat.remove().left:
            ctx.console.warn(
                f"not removed: {item.resource.label}: {item.why}; agentfn cleanup --run {chat.run}{place_flags(*chat.place)}"
            )
        return None
    why = " (calls wait there)" if rm else ""
    return f"kept{why}: {labels}; to remove it: {command}"

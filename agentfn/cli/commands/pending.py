"""Shows the calls that wait for an output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from agentfn.cli import _options as opt
from agentfn.cli._context import AppContext
from agentfn.cli._output import CommandResult
from agentfn.errors import ExitCode
from agentfn.visible import short, visible

if TYPE_CHECKING:
    from agentfn.cli._output import Console
    from agentfn.turn.waiting import WaitingCall

#: Seconds left below which the list warns.
SOON = 120


@opt.command
def pending(
    ctx: AppContext,
    conversation: Annotated[str | None, typer.Argument(help="Only this conversation's calls.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Exit 8 if any call waits.")] = False,
    offline: Annotated[bool, typer.Option("--offline", help="Ask no service: the journal as last known.")] = False,
) -> CommandResult:
    """Show the calls that wait, and the command that answers each."""
    from agentfn.cli._waiting import waiting

    calls = waiting(ctx, conversation, offline=offline)
    code = ExitCode.PENDING if check and any(call.state != "expired" for call in calls) else ExitCode.OK
    now = ctx.clock()
    return CommandResult([call.as_json() for call in calls], code, render=lambda console: _show(console, calls, now))


def _show(console: Console, calls: list[WaitingCall], now: float) -> None:
    if not calls:
        console.say("no call waits")
    for call in calls:
        console.out(
            f"{visible(call.function, multiline=False) or '(no name)'}({short(visible(call.arguments), 200)})"
            f"  {call.state}, asked {_span(now - call.asked_at)} ago{_left(call, now)}",
        )
        console.out(f"  call {call.call} of {call.conversation.id} ({call.conversation.ref})")
        if call.problem:
            console.out(f"  {visible(call.problem, multiline=False)}")
        console.out(f"  {call.answer_with}")
        if call.state == "in_doubt":
            console.warn(
                f"{call.call} was started and has no outcome: check whether it ran, then answer it, or --rerun"
            )
        elif call.expires_at is not None and 0 < call.expires_at - now < SOON:
            console.warn(f"{call.call} expires in {_span(call.expires_at - now)}")


def _left(call: WaitingCall, now: float) -> str:
    if call.expires_at is None:
        return ""
    left = call.expires_at - now
    return f", {_span(left)} left" if left > 0 else f", expired {_span(-left)} ago"


def _span(seconds: float) -> str:
    """Return a span as a person reads it: 45s, 9m 30s, 3h 5m, 2d 4h."""
    whole = max(0, round(seconds))
    for size, unit, smaller, small in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            return f"{whole // size}{unit} {whole % size // smaller}{small}"
    return f"{whole}s"

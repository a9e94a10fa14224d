"""Shows what is configured, from where, and whether it works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from agentfn.cli import _options as opt
from agentfn.cli._context import AppContext
from agentfn.cli._diagnosis import Check, diagnose
from agentfn.cli._output import CommandResult
from agentfn.errors import ExitCode, NegativeError
from agentfn.visible import visible

if TYPE_CHECKING:
    from agentfn.cli._output import Console


@opt.command
def doctor(
    ctx: AppContext,
    file: Annotated[
        str | None, typer.Argument(help="An agent file: try this agent out, and remove what that made.")
    ] = None,
    message: Annotated[str | None, typer.Option("--message", help="What to say to it; made up where left out.")] = None,
) -> CommandResult:
    """Show what is configured, from where, and whether it works."""
    if file is not None:
        return _try_out(ctx, file, message)
    return _report(diagnose(ctx))


def _try_out(ctx: AppContext, file: str, message: str | None) -> CommandResult:
    """Run the three checks with one agent."""
    from agentfn.cli._checkup import check_up
    from agentfn.cli._story import Story

    found = check_up(ctx, file, message, Story(ctx.console))
    checks = [
        Check(
            f.name,
            f.told,
            error=None if f.remedy is None else NegativeError(f.told, code="check_failed", hint=f.remedy),
        )
        for f in found
    ]
    return _report(checks)


def _report(checks: list[Check]) -> CommandResult:
    errors = tuple(check.error for check in checks if check.error is not None)
    data = {
        "checks": [
            {"name": c.name, "value": c.value, "origin": c.origin or None, "ok": c.error is None} for c in checks
        ],
    }
    code = errors[0].exit_code if errors else ExitCode.OK
    return CommandResult(data, code, render=lambda console: _show(console, checks), errors=errors)


def _show(console: Console, checks: list[Check]) -> None:
    width = max(len(check.name) for check in checks)
    for check in checks:
        mark = "FAILS" if check.error is not None else "ok"
        origin = f"  ({check.origin})" if check.origin else ""
        console.out(visible(f"{mark:5} {check.name:{width}}  {check.value}{origin}", multiline=False))

"""Removes what agentfn created and still owns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from agentfn.cli import _options as opt
from agentfn.cli._context import AppContext
from agentfn.cli._output import CommandResult
from agentfn.errors import AgentfnError, ExitCode, NegativeError, UsageError

if TYPE_CHECKING:
    from agentfn.cli._output import Console
    from agentfn.journal.ledger import Ledger
    from agentfn.lifecycle.cleanup import CleanUp, Selection


@opt.command
def cleanup(
    ctx: AppContext,
    agent: Annotated[list[str] | None, typer.Option("--agent", help="This agent's own versions.")] = None,
    conversation: Annotated[list[str] | None, typer.Option("--conversation", help="This conversation.")] = None,
    run: Annotated[str | None, typer.Option("--run", help="What this run created.")] = None,
    older_than: Annotated[str | None, typer.Option("--older-than", help="What is older: 1d, 12h, 30m.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Everything owned here.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> CommandResult:
    """Remove what agentfn created and still owns, and nothing else."""
    from agentfn.cli._removal import Removal, left_runs_of, resource_data, run_data
    from agentfn.journal.ledger import Ledger
    from agentfn.lifecycle.cleanup import Selection, chosen, remove
    from agentfn.lifecycle.runs import remove_left_run

    before = ctx.clock() - opt.span(older_than, "--older-than") if older_than is not None else None
    selection = Selection(tuple(agent or ()), tuple(conversation or ()), run, before, all_)
    if all_ and (agent or conversation):
        raise UsageError("--all takes everything, --agent and --conversation name some of it", hint="choose one")
    place = ctx.place()
    ledger = Ledger(ctx.journal(), *place)
    _require_selector(selection, ledger)
    runs = left_runs_of(ctx, selection)
    if not selection.run or not runs:
        _require_known(selection, ledger, place)
    removal = Removal(chosen(ledger, selection), runs)
    if dry_run:
        would = [*map(resource_data, removal.rows), *map(run_data, runs)]
        return CommandResult({"deleted": [], "left": [], "would_delete": would}, render=removal.preview)
    if removal and not yes:
        removal.require_consent(ctx)
    done = remove(ctx.backend(), ledger, removal.rows, lambda row: ctx.console.say(f"removed {row.kind} {row.label}"))
    return _result(done, [run for run in runs if remove_left_run(ctx.settings().home, run)])


def _require_selector(selection: Selection, ledger: Ledger) -> None:
    if not selection.is_empty():
        return
    owned = ", ".join(row.label for row in ledger.live())
    raise UsageError(
        f"say what to remove; owned here: {owned or 'nothing'}",
        code="no_selector",
        hint="--agent NAME, --conversation ID, --run ID, --older-than 1d or --all",
    )


def _require_known(selection: Selection, ledger: Ledger, place: tuple[str, str]) -> None:
    """Refuse a name that nothing here was ever called: a slip, or another service's."""
    named: list[tuple[str, str | None, str]] = [("agent", "agent", name) for name in selection.agents]
    named += [("conversation", "conversation", name) for name in selection.conversations]
    named += [("run", None, selection.run)] if selection.run is not None else []
    for what, kind, name in named:
        if not ledger.knows(kind, name):
            raise NegativeError(
                f"agentfn made no {what} {name} on {place[0]} ({place[1]}); nothing was removed",
                code=f"{what}_not_found",
                hint="agentfn list shows what is owned; --backend, --endpoint or --protocol choose another place",
            )


def _result(done: CleanUp, runs: list[str]) -> CommandResult:
    from agentfn.cli._removal import resource_data, run_data

    left = [{**resource_data(item.resource), "why": item.why} for item in done.left]
    data = {"deleted": [*map(resource_data, done.deleted), *map(run_data, runs)], "left": left}
    errors = tuple(
        AgentfnError(f"{item.resource.kind} {item.resource.label} was left: {item.why}", code="left")
        for item in done.left
    )

    def render(console: Console) -> None:
        console.out(f"removed {len(done.deleted) + len(runs)}" + (f", left {len(done.left)}" if done.left else ""))

    return CommandResult(data, ExitCode.NEGATIVE if done.left else ExitCode.OK, render=render, errors=errors)

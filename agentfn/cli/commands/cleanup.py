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
    from agentfn.journal.ledger import Ledger, Resource
    from agentfn.lifecycle.cleanup import CleanUp, Selection
    from agentfn.model import Json


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
    from agentfn.journal.ledger import Ledger
    from agentfn.lifecycle.cleanup import Selection, chosen, remove

    before = ctx.clock() - opt.span(older_than, "--older-than") if older_than is not None else None
    selection = Selection(tuple(agent or ()), tuple(conversation or ()), run, before, all_)
    if all_ and (agent or conversation):
        raise UsageError("--all takes everything, --agent and --conversation name some of it", hint="choose one")
    place = ctx.place()
    ledger = Ledger(ctx.journal(), *place)
    _require_selector(selection, ledger)
    _require_known(selection, ledger, place)
    rows = chosen(ledger, selection)
    if dry_run:
        data = {"deleted": [], "left": [], "would_delete": [_data(row) for row in rows]}
        return CommandResult(data, render=lambda console: _preview(console, rows))
    if rows and not yes:
        _require_consent(ctx, rows)
    done = remove(ctx.backend(), ledger, rows, lambda row: ctx.console.say(f"removed {row.kind} {row.label}"))
    return _result(done)


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


def _require_consent(ctx: AppContext, rows: list[Resource]) -> None:
    if not ctx.console.interactive:
        raise UsageError(
            f"{len(rows)} things would be removed, and there is no terminal to ask on",
            code="confirmation_needed",
            hint="see them with --dry-run, then add --yes",
        )
    from agentfn.cli._prompt import confirmed

    for row in rows:
        ctx.console.say(f"  {row.kind} {row.label}")
    if not confirmed(ctx.console, f"remove these {len(rows)}?"):
        raise NegativeError("nothing was removed: not confirmed", code="declined")


def _data(row: Resource) -> dict[str, Json]:
    return {"kind": row.kind, "name": row.name, "version": row.version, "label": row.label, "run": row.run}


def _preview(console: Console, rows: list[Resource]) -> None:
    for row in rows:
        console.out(f"{row.kind} {row.label}")
    console.say(f"{len(rows)} would be removed; nothing was")


def _result(done: CleanUp) -> CommandResult:
    left = [{**_data(item.resource), "why": item.why} for item in done.left]
    data = {"deleted": [_data(row) for row in done.deleted], "left": left}
    errors = tuple(
        AgentfnError(f"{item.resource.kind} {item.resource.label} was left: {item.why}", code="left")
        for item in done.left
    )

    def render(console: Console) -> None:
        console.out(f"removed {len(done.deleted)}" + (f", left {len(done.left)}" if done.left else ""))

    return CommandResult(data, ExitCode.NEGATIVE if done.left else ExitCode.OK, render=render, errors=errors)

"""Creates an agent, or a new version of it when its definition changed."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from agentfn.cli import _options as opt
from agentfn.cli._context import AppContext
from agentfn.cli._output import CommandResult


@opt.command
def create(
    ctx: AppContext,
    file: Annotated[str, typer.Argument(help="The agent file.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be sent.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Make a new version even if nothing changed.")] = False,
) -> CommandResult:
    """Create the agent, or a new version when the definition changed."""
    from agentfn.cli._sessions import load_file
    from agentfn.definition.digest import digest
    from agentfn.journal.ledger import Ledger
    from agentfn.lifecycle.ensure import create as create_agent
    from agentfn.lifecycle.ensure import ensure_latest, new_run

    agent = load_file(ctx, file)
    backend = ctx.backend()
    if dry_run:
        body = backend.preview(agent)
        text = json.dumps(body, indent=2, ensure_ascii=False)
        ctx.console.say("beside this, metadata gets agentfn's stamp: agentfn-run, agentfn-id, agentfn-digest")
        latest = backend.find_agent(agent.name)
        unchanged = latest is not None and latest.metadata.get("agentfn-digest") == digest(agent) and not force
        would = (
            "unchanged" if unchanged else "create it" if latest is None else f"make a new version after {latest.ref}"
        )
        ctx.console.say(f"would {'leave it ' if unchanged else ''}{would}")
        data = {"agent": agent.name, "name": agent.name, "version": None, "changed": not unchanged, "would_send": body}
        return CommandResult(data, render=lambda console: console.out(text))
    run = new_run()
    ledger = Ledger(ctx.journal(), backend.name, backend.endpoint)
    if force:
        ref, changed = create_agent(backend, ledger, agent, run), True
    else:
        ref, changed = ensure_latest(backend, ledger, agent, run)
    ctx.console.say(f"{'created' if changed else 'unchanged'} on {backend.name}" + (f" by {run}" if changed else ""))
    data = {"agent": str(ref), "name": ref.name, "version": ref.version, "changed": changed, "id": ref.guid}
    return CommandResult(data | {"run": run if changed else None}, render=lambda console: console.out(str(ref)))

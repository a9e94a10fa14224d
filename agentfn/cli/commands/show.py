"""Shows one agent in full."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from agentfn.cli import _options as opt
from agentfn.cli._context import AppContext
from agentfn.cli._output import CommandResult
from agentfn.cli._sessions import no_such_agent
from agentfn.visible import visible

if TYPE_CHECKING:
    from agentfn.cli._output import Console
    from agentfn.model import Json


@opt.command
def show(
    ctx: AppContext,
    name: Annotated[str, typer.Argument(help="The agent's name, or name:version.")],
) -> CommandResult:
    """Show one agent in full: its definition on the service, its versions, and who owns them."""
    from agentfn.journal.ledger import Ledger

    backend = ctx.backend()
    ledger = Ledger(ctx.journal(), backend.name, backend.endpoint)
    bare, _, version = name.partition(":")
    found = backend.find_agent(bare, version or None)
    own = [row for row in ledger.live("agent") if row.name == bare]
    if found is None:
        raise no_such_agent(name, backend, ledger)
    tokens = {row.token for row in own}
    mine = found.metadata.get("agentfn-id") in tokens
    data: dict[str, Json] = {
        "agent": str(found.ref),
        "name": found.ref.name,
        "version": found.ref.version,
        "guid": found.ref.guid,
        "created_at": found.created_at,
        "owned": mine,
        "metadata": found.metadata,
        "definition": found.definition,
        "own_versions": [row.version for row in own],
        "file": next((row.definition for row in reversed(own)), None),
    }
    return CommandResult(data, render=lambda console: _show(console, data))


def _show(console: Console, data: dict[str, Json]) -> None:
    console.out(visible(f"{data['agent']}  ({'owned by agentfn' if data['owned'] else 'not made by agentfn'})"))
    if data["file"]:
        console.out(f"file: {visible(data['file'])}")
    if data["own_versions"]:
        console.out(f"own versions: {', '.join(str(version) for version in data['own_versions'])}")
    console.out(visible(json.dumps(data["definition"], indent=2, ensure_ascii=False)))
    if any(tool.get("type") == "function" for tool in data["definition"].get("tools") or []):
        console.say(f"a portal neither runs nor edits these functions: agentfn chat {data['name']}")

"""Lists what agentfn owns."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from agentfn.cli import _options as opt
from agentfn.cli._context import AppContext
from agentfn.cli._output import CommandResult

if TYPE_CHECKING:
    from agentfn.cli._output import Console
    from agentfn.journal.ledger import Resource
    from agentfn.model import Json


@opt.command
def list_(
    ctx: AppContext,
    remote: Annotated[bool, typer.Option("--remote", help="Add what the service has beside that.")] = False,
) -> CommandResult:
    """List what agentfn owns and has not removed: agents and conversations."""
    from agentfn.journal.ledger import Ledger
    from agentfn.journal.turns import Turns

    place = ctx.place()
    rows = Ledger(ctx.journal(), *place).live()
    agent_of = {c.id: str(c.ref) for c in Turns(ctx.journal()).conversations(*place)}
    agents = [_agent(row) for row in rows if row.kind == "agent"]
    conversations = [_conversation(row, agent_of) for row in rows if row.kind == "conversation"]
    if remote:
        _add_remote(ctx, agents, conversations)
    data = {"backend": place[0], "endpoint": place[1], "agents": agents, "conversations": conversations}
    return CommandResult(data, render=lambda console: _show(console, agents, conversations))


def _agent(row: Resource) -> dict[str, Json]:
    return {
        "agent": row.label,
        "name": row.name,
        "version": row.version,
        "state": row.state,
        "created_at": row.at,
        "run": row.run,
        "definition": row.definition,
        "owned": True,
    }


def _conversation(row: Resource, agent_of: dict[str, str]) -> dict[str, Json]:
    return {
        "conversation": row.name,
        "agent": agent_of.get(row.name or ""),
        "state": row.state,
        "created_at": row.at,
        "run": row.run,
        "owned": True,
    }


def _add_remote(ctx: AppContext, agents: list[dict[str, Json]], conversations: list[dict[str, Json]]) -> None:
    """Append what only the service knows; nothing of it is agentfn's to delete."""
    backend = ctx.backend()
    owned = {entry["agent"] for entry in agents}
    agents += [
        {
            "agent": str(found.ref),
            "name": found.ref.name,
            "version": found.ref.version,
            "created_at": found.created_at,
            "owned": False,
        }
        for found in backend.agents()
        if str(found.ref) not in owned
    ]
    known = {entry["conversation"] for entry in conversations}
    conversations += [
        {"conversation": item.id, "created_at": item.created_at, "owned": False}
        for item in backend.conversations()
        if item.id not in known
    ]


def _show(console: Console, agents: list[dict[str, Json]], conversations: list[dict[str, Json]]) -> None:
    if not agents and not conversations:
        console.say("nothing is owned here")
        return
    rows = [["agent", e["agent"], _when(e["created_at"]), e.get("run") or "not agentfn's"] for e in agents]
    rows += [
        ["conversation", e["conversation"] or "(id unknown)", _when(e["created_at"]), e.get("run") or "not agentfn's"]
        for e in conversations
    ]
    console.table(["kind", "name", "created", "run"], rows)


def _when(seconds: float | None) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S") if seconds else ""

"""Shows a conversation's transcript."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from agentfn.cli import _options as opt
from agentfn.cli._context import AppContext
from agentfn.cli._output import CommandResult
from agentfn.cli._sessions import known_conversation

if TYPE_CHECKING:
    from agentfn.model import Entry, Json


class Format(StrEnum):
    """The forms of a transcript."""

    text = "text"
    json = "json"
    jsonl = "jsonl"
    md = "md"
    html = "html"


@opt.command
def log(
    ctx: AppContext,
    conversation: Annotated[str, typer.Argument(help="The conversation's id.")],
    format: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.text,  # noqa: A002  # the option's name
) -> CommandResult:
    """Show a conversation's transcript."""
    from agentfn.cli._transcript import WRITERS

    known = known_conversation(ctx, conversation)
    backend = ctx.backend_at(known.backend, known.endpoint) if known else ctx.backend()
    entries = backend.transcript(conversation)
    masked = [entry._replace(text=ctx.masker().mask(entry.text), raw=None) for entry in entries]
    agent = str(known.ref) if known else None
    text = WRITERS[format.value](conversation, agent, masked)
    data = {"conversation": conversation, "agent": agent, "entries": [_data(entry) for entry in masked]}
    return CommandResult(data, render=lambda console: console.out(text))


def _data(entry: Entry) -> Json:
    values = entry._asdict()
    del values["raw"]
    return {key: value for key, value in values.items() if value is not None}

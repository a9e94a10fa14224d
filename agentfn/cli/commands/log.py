"""Shows a conversation's transcript."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from agentfn.cli import _options as opt
from agentfn.cli._context import AppContext
from agentfn.cli._output import CommandResult
from agentfn.cli._sessions import definition_of, known_conversation
from agentfn.errors import NegativeError

if TYPE_CHECKING:
    from agentfn.journal.turns import Conversation
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
    as_case: Annotated[bool, typer.Option("--as-case", help="Write it as a test file with one case.")] = False,
) -> CommandResult:
    """Show a conversation's transcript."""
    from agentfn.cli._transcript import WRITERS

    known = known_conversation(ctx, conversation)
    backend = ctx.backend_at(known.backend, known.endpoint) if known else ctx.backend()
    entries = backend.transcript(conversation)
    masked = [entry._replace(text=ctx.masker().mask(entry.text), raw=None) for entry in entries]
    agent = str(known.ref) if known else None
    if as_case:
        return _case(ctx, conversation, known, masked)
    text = WRITERS[format.value](conversation, agent, masked)
    data = {"conversation": conversation, "agent": agent, "entries": [_data(entry) for entry in masked]}
    return CommandResult(data, render=lambda console: console.out(text))


def _case(ctx: AppContext, conversation: str, known: Conversation | None, entries: list[Entry]) -> CommandResult:
    """Return the test file that a conversation makes."""
    from agentfn.cases.from_chat import Chat, as_case
    from agentfn.journal.calls import Calls
    from agentfn.journal.turns import Turns
    from agentfn.model import Entry

    agent = definition_of(ctx, known) if known is not None else None
    last = next(iter(Turns(ctx.journal()).of(known)[-1:]), None) if known is not None else None
    failure = last.failure if last is not None and last.state == "failed" else None
    if known is not None and last is not None and last.state == "open":
        # Sessions list a call only once it has its output.
        seen = {entry.call_id for entry in entries}
        waiting = Calls(ctx.journal(), known, last.id).unsettled()
        entries += [Entry("call", row.arguments, None, row.id, row.function) for row in waiting if row.id not in seen]
    try:
        text = as_case(Chat(conversation, agent, entries, failure))
    except ValueError as exc:
        raise NegativeError(f"{conversation} makes no case: {exc}", code="no_case") from exc
    if agent is None:
        ctx.console.warn("which agent file it was is not known here: put its name under agent")
    return CommandResult(
        {"conversation": conversation, "case": text}, render=lambda console: console.out(text.rstrip())
    )


def _data(entry: Entry) -> Json:
    values = entry._asdict()
    del values["raw"]
    return {key: value for key, value in values.items() if value is not None}

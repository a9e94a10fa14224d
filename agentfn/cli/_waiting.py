"""Finds the calls that wait for `pending`, and the turn that is meant for `respond`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentfn.cli._sessions import known_conversation
from agentfn.errors import NegativeError, UsageError
from agentfn.journal.calls import Calls
from agentfn.journal.turns import Turns
from agentfn.lifecycle.ensure import new_run
from agentfn.turn import waiting as core

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentfn.backends.protocol import Backend
    from agentfn.cli._context import AppContext
    from agentfn.journal.turns import Conversation, Turn


def waiting(ctx: AppContext, conversation: str | None, *, offline: bool = False) -> list[core.WaitingCall]:
    """Return the waiting calls of one conversation, or of all that the journal holds open."""
    turns = _turns(ctx, conversation, offline=offline)
    calls, warnings = core.waiting_calls(ctx.journal(), turns, None if offline else _opener(ctx))
    for warning in warnings:
        ctx.console.warn(warning)
    return calls


def turn_to_answer(ctx: AppContext, conversation: str | None, call: str | None) -> tuple[Conversation, Turn]:
    """Return the open turn that is meant: the named conversation's, the named call's, or the only one that waits."""
    turns = _turns(ctx, conversation, offline=False)
    if conversation is None and call is not None and len(turns) > 1:
        having = [t for t in turns if call in {row.id for row in Calls(ctx.journal(), t[0], t[1].id).unsettled()}]
        turns = having or turns
    if conversation is not None:
        if not turns:
            raise NegativeError(f"no call waits in {conversation}", code="call_not_found", hint="agentfn pending")
        return turns[-1]
    if len(turns) > 1:
        names = ", ".join(c.id for c, _ in turns)
        raise UsageError(
            f"calls wait in {len(turns)} conversations: {names}",
            code="ambiguous_conversation",
            hint=f"name one: agentfn respond {turns[0][0].id}",
        )
    if not turns:
        raise NegativeError("no call waits", code="call_not_found", hint="agentfn pending")
    return turns[0]


def _turns(ctx: AppContext, conversation: str | None, *, offline: bool) -> list[tuple[Conversation, Turn]]:
    if conversation is None:
        if not offline:
            for warning in core.find_unopened(ctx.journal(), _opener(ctx)):
                ctx.console.warn(warning)
        return core.open_turns(ctx.journal(), ctx.chosen_backend())
    known = known_conversation(ctx, conversation)
    if known is not None:
        turns = Turns(ctx.journal()).of(known)
        return [(known, turn) for turn in turns if turn.state in {"intended", "open"}]
    if offline:
        raise NegativeError(f"the journal knows no conversation {conversation}", code="conversation_not_found")
    adopted, turn = core.adopt(ctx.journal(), ctx.backend(), conversation, new_run())
    return [(adopted, turn)] if turn is not None else []


def _opener(ctx: AppContext) -> Callable[[Conversation], Backend]:
    def backend_of(conversation: Conversation) -> Backend:
        return ctx.backend_at(conversation.backend, conversation.endpoint)

    return backend_of

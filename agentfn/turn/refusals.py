"""Refusals to begin a turn where one before it is not over, told with what ends it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentfn.errors import NegativeError, PendingError
from agentfn.journal.calls import Calls
from agentfn.journal.turns import Turns

if TYPE_CHECKING:
    from agentfn.journal.calls import CallRow
    from agentfn.journal.store import Journal
    from agentfn.journal.turns import Conversation


def require_answered(journal: Journal, conversation: Conversation) -> None:
    """Raise PendingError where a call of an open turn has no outcome yet, or its outcome was not sent."""
    for turn in Turns(journal).of(conversation):
        rows = Calls(journal, conversation, turn.id).unsettled() if turn.state == "open" else []
        if rows:
            raise _waiting_error(conversation.id, rows)


def dead_end(journal: Journal, conversation: Conversation) -> NegativeError | None:
    """Return the error for a conversation whose call expired: the service takes nothing there any more, for good."""
    for turn in Turns(journal).of(conversation):
        expired = [row for row in Calls(journal, conversation, turn.id).all() if row.state == "expired"]
        if expired:
            return NegativeError(
                f"{conversation.id} cannot go on: {_names(expired)} expired, and the service takes neither its output"
                " nor another message; outputs that were computed are kept in the journal",
                code="conversation_dead",
                hint=f"begin a new one: agentfn chat {conversation.ref} MESSAGE",
            )
    return None


def _waiting_error(where: str, rows: list[CallRow]) -> PendingError:
    open_rows = [row for row in rows if row.outcome is None or row.problem is not None]
    if not open_rows:
        return PendingError(
            f"outputs of {where} are not sent yet: {_names(rows)}; the message was not sent",
            code="call_waits",
            hint=f"send them first: agentfn respond {where}",
        )
    count = "1 call is" if len(open_rows) == 1 else f"{len(open_rows)} calls are"
    return PendingError(
        f"{count} still pending in {where}: {_names(open_rows)}; nothing was sent",
        code="call_waits",
        hint=f"answer first: agentfn respond {where} --call {open_rows[0].id} --output TEXT",
    )


def _names(rows: list[CallRow]) -> str:
    return ", ".join(f"{row.id} {row.function}" for row in rows)

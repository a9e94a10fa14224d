"""A conversation's items read as what they mean: what was said, what is answered, what the service said last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from agentfn.backends.steps import items

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentfn.model import Call, OtherAction

Item = dict[str, Any]

#: Items that a client gives, beside messages that are not the agent's (foundry.md §4.5).
_GIVEN = frozenset(
    {
        "function_call_output",
        "custom_tool_call_output",
        "computer_call_output",
        "local_shell_call_output",
        "shell_call_output",
        "apply_patch_call_output",
        "mcp_approval_response",
    },
)


class LastStep(NamedTuple):
    """What the service said last: calls that wait, other things it waits for, or its answer.

    `response` names the response, None where the items do not say; `item` is the last item's id.
    """

    response: str | None
    item: str
    calls: tuple[Call, ...]
    answer: str | None
    actions: tuple[OtherAction, ...]
    version: str | None


def is_user_message(item: Item) -> bool:
    """Tell whether an item is a message of the user."""
    return item.get("role") == "user"


def times_said(found: Sequence[Item], message: str) -> int:
    """Count the user's messages with exactly this text."""
    return sum(is_user_message(item) and items.message_text(item) == message for item in found)


def answered(found: Sequence[Item]) -> set[str]:
    """Return the ids of the calls that have an output."""
    return {str(item.get("call_id")) for item in found if item.get("type") == "function_call_output"}


def last_step(found: Sequence[Item]) -> LastStep | None:
    """Return what the service said after the last thing that it was given, or None where it said nothing yet.

    `found` is oldest first. Calls wait wherever they stand, since an unanswered one stops the conversation for good
    (foundry.md §0, 4).
    """
    closed = answered(found)
    waiting = [item for item in found if item.get("type") == "function_call" and str(item.get("call_id")) not in closed]
    said = _said_last(found)
    actions = items.actions_of(said)
    answer = items.text_of(said)
    if not waiting and answer is None and not actions:
        return None
    last = waiting[-1] if waiting else said[-1]
    agent = items.agent_of(last)
    return LastStep(
        response=items.response_of(last),
        item=str(last.get("id") or ""),
        calls=items.calls_of(waiting),
        answer=None if waiting or actions else answer,
        actions=actions,
        version=agent.version if agent is not None else None,
    )


def _said_last(found: Sequence[Item]) -> list[Item]:
    """Return the items behind the last thing given; where several responses stand there, those of the last one."""
    start = next((at + 1 for at in range(len(found) - 1, -1, -1) if _is_given(found[at])), 0)
    said = list(found[start:])
    identity = items.response_of(said[-1]) if said else None
    return said if identity is None else [item for item in said if items.response_of(item) == identity]


def _is_given(item: Item) -> bool:
    kind = item.get("type")
    if kind == "message" or (kind is None and "role" in item):
        return item.get("role") != "assistant"
    return isinstance(kind, str) and kind in _GIVEN

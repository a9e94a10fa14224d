"""The items of conversations and responses: normalised on the way in, in the service's shape on the way out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agentfn.emulator.foundry.errors import payload
from agentfn.emulator.foundry.ids import new_id
from agentfn.emulator.http import ApiError, openai_error

if TYPE_CHECKING:
    from collections.abc import Iterable

#: foundry.md §3.
_PREFIX = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fco",
    "reasoning": "rs",
    "mcp_approval_request": "mcpr",
    "mcp_approval_response": "mcpa",
}
#: foundry.md §3, §5.2.
MOST_ITEMS = 20

Item = dict[str, Any]


def normalise(items: Any, partition: str, *, param: str = "input") -> list[Item]:
    """Return request items as they are stored: with id and status, text content as a list of parts."""
    if isinstance(items, str):
        items = [{"type": "message", "role": "user", "content": items}] if items else []
    if items is None:
        return []
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ApiError(400, openai_error(f"{param} must be a text or an array of items", param=param))
    return [_item(item, partition, f"{param}[{index}]") for index, item in enumerate(items)]


def require_few(items: Any) -> None:
    """Refuse more items than one request may bring (foundry.md §5.2)."""
    if isinstance(items, list) and len(items) > MOST_ITEMS:
        raise payload(f"maxItems: Value should have at most {MOST_ITEMS} items", param="/items")


def _item(item: Item, partition: str, param: str) -> Item:
    kind = item.get("type", "message")
    stored = {"type": kind} | item | {"id": new_id(_PREFIX.get(kind, "item"), partition), "status": "completed"}
    if kind == "message":
        content = item.get("content")
        if isinstance(content, str):
            part = "output_text" if item.get("role") == "assistant" else "input_text"
            stored["content"] = [{"type": part, "text": content}]
        elif not isinstance(content, list):
            raise ApiError(400, openai_error(f"{param}: content must be a text or an array", param=param))
        if "role" not in item:
            raise ApiError(400, openai_error(f"Missing required parameter: '{param}.role'.", param=f"{param}.role"))
    if kind == "function_call_output":
        if not isinstance(item.get("call_id"), str):
            raise ApiError(400, openai_error(f"Missing required parameter: '{param}.call_id'.", param=param))
        if not isinstance(item.get("output"), (str, list)):
            # An output that is left out or null is no output; real engines say so too.
            raise ApiError(400, openai_error(f"Missing required parameter: '{param}.output'.", param=param))
    return stored


def message_text(item: Item) -> str:
    """Return the text of a message."""
    parts = item.get("content")
    if not isinstance(parts, list):
        return str(parts or "")
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict) and "text" in part)


def output_text(item: Item) -> str:
    """Return a function's output as one text."""
    output = item.get("output")
    if isinstance(output, str):
        return output
    return "\n".join(str(part.get("text", "")) for part in output or [] if isinstance(part, dict))


def pending_calls(items: Iterable[Item]) -> list[Item]:
    """Return the function calls that have no output."""
    listed = list(items)
    answered = {item["call_id"] for item in listed if item["type"] == "function_call_output"}
    return [item for item in listed if item["type"] == "function_call" and item["call_id"] not in answered]


def load(text: str) -> list[Item]:
    """Return stored items."""
    items: list[Item] = json.loads(text)
    return items

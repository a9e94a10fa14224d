"""The items of conversations and responses: normalised on the way in, in the service's shape on the way out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentfn.emulator.http import ApiError, openai_error
from agentfn.emulator.responses.errors import payload
from agentfn.emulator.responses.ids import new_id

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
    kind = item.get("type") or "message"
    if not isinstance(kind, str):
        raise ApiError(400, openai_error(f"Invalid type for '{param}.type': expected a string.", param=f"{param}.type"))
    stored: Item = {"type": kind} | item | {"id": new_id(_PREFIX.get(kind, "item"), partition), "status": "completed"}
    stored["type"] = kind
    if not isinstance(stored.get("response_id", ""), str):
        raise ApiError(400, openai_error(f"Invalid type for '{param}.response_id'.", param=f"{param}.response_id"))
    if kind == "message":
        _require(item, "role", str, param)
        _require(item, "content", (str, list), param)
        stored["content"] = _content(item, f"{param}.content")
    elif kind == "function_call":
        for field in ("call_id", "name", "arguments"):
            _require(item, field, str, param)
    elif kind == "function_call_output":
        _require(item, "call_id", str, param)
        # An output that is left out or null is no output; real engines say so too.
        _require(item, "output", (str, list), param)
    return stored


def _require(item: Item, field: str, kinds: type | tuple[type, ...], param: str) -> None:
    at = f"{param}.{field}"
    if item.get(field) is None:
        raise ApiError(
            400, openai_error(f"Missing required parameter: '{at}'.", param=at, code="missing_required_parameter")
        )
    if not isinstance(item[field], kinds):
        raise ApiError(400, openai_error(f"Invalid type for '{at}'.", param=at, code="invalid_type"))


def _content(item: Item, param: str) -> list[Item]:
    """Return a message's content as parts (foundry.md §3)."""
    content = item["content"]
    if isinstance(content, str):
        return [{"type": "output_text" if item["role"] == "assistant" else "input_text", "text": content}]
    for index, part in enumerate(content):
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            at = f"{param}[{index}]"
            raise ApiError(400, openai_error(f"'{at}' must be an object with a type.", param=at, code="invalid_type"))
    return list(content)


def waiting_calls(items: Iterable[Item]) -> dict[str, Item]:
    """Return the function calls that have no output, by call id, in order.

    Order decides: an id that came back in a later turn waits again, though an earlier call of that id was answered.
    """
    waiting: dict[str, Item] = {}
    for item in items:
        if item["type"] == "function_call":
            waiting[item["call_id"]] = item
        elif item["type"] == "function_call_output":
            waiting.pop(item["call_id"], None)
    return waiting

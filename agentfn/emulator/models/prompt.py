"""What a model sees of a conversation, whichever face its items came in by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentfn.emulator.models.step import Output, Prompt

if TYPE_CHECKING:
    from collections.abc import Iterable

Item = dict[str, Any]


def prompt_of(items: Iterable[Item], tools: list[Item], tool_choice: Any, number: int) -> Prompt:
    """Return the latest message of the user and the outputs since; `number` is that of the model step.

    Items have the shapes that the Responses API and the Agents API share: messages, function calls, their outputs.
    """
    message, names = "", {}
    earlier: list[Output] = []
    just: list[Output] = []
    for item in items:
        if item["type"] == "message" and item["role"] == "user":
            message, earlier, just = message_text(item), [], []
        elif item["type"] == "function_call":
            names[item["call_id"]] = item["name"]
            just = []
        elif item["type"] == "function_call_output":
            output = Output(names.get(item["call_id"], ""), item["call_id"], output_text(item))
            earlier.append(output)
            just.append(output)
        elif item["type"] == "message" and item["role"] == "assistant":
            just = []
    return Prompt(tools, tool_choice, message, tuple(just), tuple(earlier), number)


def message_text(item: Item) -> str:
    """Return the text of a message."""
    parts = item.get("content")
    if not isinstance(parts, list):
        return str(parts or "")
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict) and "text" in part)


def output_text(item: Item) -> str:
    """Return a function's output as one text; a failure's error counts as one (openai-agents.md §6)."""
    output = item.get("output")
    if output is None and item.get("error") is not None:
        return str(item["error"])
    if isinstance(output, str):
        return output
    return "\n".join(str(part.get("text", "")) for part in output or [] if isinstance(part, dict))

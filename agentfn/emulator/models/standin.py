"""The stand-in model of an agent without a scenario: no language model, but rules that anybody can predict.

It asks for the function that the message is about, fills the parameters (`values` says how), and answers with the
outputs that come. The same request always gets the same reply.
"""

from __future__ import annotations

import json
import re
from typing import Any

from agentfn.emulator.models.deferred import reachable
from agentfn.emulator.models.message import split_name, words
from agentfn.emulator.models.step import AskedCall, Prompt, Reply
from agentfn.emulator.models.values import arguments_for

Tool = dict[str, Any]

#: What a word that message and function share is worth, by where the function has it.
_NAME, _CHOICE, _PARAMETER, _TEXT = 4, 3, 2, 1


def answer(prompt: Prompt) -> Reply:
    """Return what the stand-in does in one step."""
    functions = reachable(prompt.tools)
    if prompt.outputs:
        return Reply(text="; ".join(f"{output.function} gave {output.text}" for output in prompt.outputs))
    chosen = _choose(functions, prompt)
    if chosen is None:
        names = ", ".join(str(tool.get("name")) for tool in functions) or "none"
        return Reply(
            text="This is the embedded service's stand-in, no language model. It found no function that the message is"
            f" about. Functions: {names}."
        )
    arguments = arguments_for(chosen, prompt.message)
    return Reply(calls=(AskedCall(str(chosen["name"]), json.dumps(arguments, ensure_ascii=False)),))


def _choose(functions: list[Tool], prompt: Prompt) -> Tool | None:
    """Return the function to ask for: among those that `tool_choice` leaves, the one with the best score."""
    functions, is_required = _allowed(functions, prompt.tool_choice)
    if not functions:
        return None
    spoken = {_stem(word) for word in words(prompt.message)}
    scores = [_score(tool, spoken) for tool in functions]
    best = max(range(len(functions)), key=lambda index: (scores[index], -index))
    return functions[best] if scores[best] or is_required else None


def _allowed(functions: list[Tool], choice: Any) -> tuple[list[Tool], bool]:
    """Return the functions that a tool choice leaves, and whether one must be called (foundry.md §2.3)."""
    if not isinstance(choice, dict):
        return ([] if choice == "none" else functions), choice == "required"
    if choice.get("type") == "allowed_tools":
        named = {tool.get("name") for tool in choice.get("tools") or [] if isinstance(tool, dict)}
        return [tool for tool in functions if tool.get("name") in named], choice.get("mode") == "required"
    if choice.get("type") == "function":
        return [tool for tool in functions if tool.get("name") == choice.get("name")], True
    return functions, False


def _score(tool: Tool, spoken: set[str]) -> int:
    parameters = tool.get("parameters") or {}
    properties = parameters.get("properties")
    score = _NAME * _shared(split_name(str(tool.get("name", ""))), spoken)
    score += _TEXT * _shared(str(tool.get("description") or ""), spoken)
    for name, part in (properties if isinstance(properties, dict) else {}).items():
        score += _PARAMETER * _shared(split_name(name), spoken)
        if isinstance(part, dict):
            choices = [value for key in ("enum", "examples") if isinstance(part.get(key), list) for value in part[key]]
            score += _CHOICE * _shared(" ".join(map(str, choices)), spoken)
            score += _TEXT * _shared(str(part.get("description") or ""), spoken)
    return score


def _shared(text: str, spoken: set[str]) -> int:
    return len({_stem(word) for word in words(text)} & spoken)


def _stem(word: str) -> str:
    """Return a word without the endings that a question often adds."""
    if len(word) <= 4:  # noqa: PLR2004  # short words have no ending
        return word
    return re.sub(r"(es|s|ing|ed)$", "", re.sub(r"ies$", "y", word))

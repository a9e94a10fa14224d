"""The stand-in model of an agent without a scenario: no language model, but rules that anybody can predict.

It asks for the function that the message is about, fills the parameters (`values` says how), and answers with the
outputs that come. The same request always gets the same reply.
"""

from __future__ import annotations

import json
import re
from typing import Any

from agentfn.emulator.models.step import AskedCall, Prompt, Reply
from agentfn.emulator.models.values import Message, arguments_for, words

#: What a word that message and function share is worth, by where the function has it.
_NAME, _CHOICE, _PARAMETER, _TEXT = 4, 3, 2, 1


def answer(prompt: Prompt) -> Reply:
    """Return what the stand-in does in one step."""
    functions = [tool for tool in prompt.tools if tool.get("type") == "function"]
    if prompt.outputs:
        told = "; ".join(f"{output.function} gave {output.text}" for output in prompt.outputs)
        return Reply(text=told)
    chosen = _choose(functions, prompt)
    if chosen is None:
        names = ", ".join(str(tool.get("name")) for tool in functions) or "none"
        return Reply(
            text="This is the embedded service's stand-in, no language model. It found no function that the message is"
            f" about. Functions: {names}.",
        )
    arguments = arguments_for(chosen, Message(prompt.message))
    return Reply(calls=(AskedCall(str(chosen["name"]), json.dumps(arguments, ensure_ascii=False)),))


def _choose(functions: list[dict[str, Any]], prompt: Prompt) -> dict[str, Any] | None:
    """Return the function to ask for: the one that `tool_choice` names, else the one with the best score."""
    choice = prompt.tool_choice
    if choice == "none" or not functions:
        return None
    if isinstance(choice, dict) and choice.get("type") == "function":
        return next((tool for tool in functions if tool.get("name") == choice.get("name")), None)
    spoken = {_stem(word) for word in words(prompt.message)}
    scores = [_score(tool, spoken) for tool in functions]
    best = max(range(len(functions)), key=lambda index: (scores[index], -index))
    if scores[best] == 0 and choice != "required":
        return None
    return functions[best]


def _score(tool: dict[str, Any], spoken: set[str]) -> int:
    parameters = tool.get("parameters") or {}
    properties = parameters.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    score = _NAME * _shared(_split(str(tool.get("name", ""))), spoken)
    score += _TEXT * _shared(str(tool.get("description") or ""), spoken)
    for name, part in properties.items():
        score += _PARAMETER * _shared(_split(name), spoken)
        if isinstance(part, dict):
            choices = [str(value) for key in ("enum", "examples") for value in part.get(key) or []]
            score += _CHOICE * _shared(" ".join(choices), spoken)
            score += _TEXT * _shared(str(part.get("description") or ""), spoken)
    return score


def _shared(text: str, spoken: set[str]) -> int:
    return len({_stem(word) for word in words(text)} & spoken)


def _split(name: str) -> str:
    """Return a name's words: get_favorite_city, getFavoriteCity."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_-]+", " ", name)


def _stem(word: str) -> str:
    """Return a word without the endings that a question often adds."""
    return re.sub(r"(ies|es|s|ing|ed)$", "", word) if len(word) > 4 else word  # noqa: PLR2004  # short words have no ending

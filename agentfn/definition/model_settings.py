"""The model settings of an agent file: temperature, top_p, reasoning, tool_choice, text (foundry.md §2.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentfn.definition.reader import Reader
    from agentfn.model import Json

SETTINGS = ("temperature", "top_p", "reasoning", "tool_choice", "text")

_RANGES = {"temperature": (0, 2), "top_p": (0, 1)}
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_CHOICES = ("auto", "required", "none")
_FORMATS = ("text", "json_object", "json_schema")


def check_settings(reader: Reader, value: Mapping[str, Json], functions: Sequence[str]) -> None:
    """Check every setting that the file has."""
    for key, (low, high) in _RANGES.items():
        number = value.get(key)
        if number is None:
            continue
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not low <= number <= high:
            reader.error((key,), "range", f"{key} must be a number from {low} to {high}, got {number!r}")
    _check_reasoning(reader, value.get("reasoning"))
    _check_choice(reader, value.get("tool_choice"), functions)
    _check_text(reader, value.get("text"))


def _check_reasoning(reader: Reader, reasoning: Json) -> None:
    if reasoning is None:
        return
    if not isinstance(reasoning, dict):
        reader.error(("reasoning",), "type", "reasoning must be a mapping, such as {effort: low}")
    elif reasoning.get("effort") not in (None, *_EFFORTS):
        reader.error(("reasoning", "effort"), "value", f"effort must be one of {', '.join(_EFFORTS)}")


def _check_choice(reader: Reader, choice: Json, functions: Sequence[str]) -> None:
    if choice is None or choice in _CHOICES:
        if choice == "none" and functions:
            reader.warn(
                ("tool_choice",),
                "advice-tool-choice",
                "tool_choice none: the agent can never call its functions",
            )
        if choice == "required" and not functions:
            reader.warn(("tool_choice",), "advice-tool-choice", "tool_choice required, but there is no function")
        return
    if not isinstance(choice, dict) or "type" not in choice:
        expected = f"one of {', '.join(_CHOICES)}, or {{type: function, name: …}}"
        reader.error(("tool_choice",), "value", f"tool_choice must be {expected}, got {choice!r}")
    elif choice["type"] == "function" and choice.get("name") not in functions:
        known = ", ".join(functions) or "none"
        message = f"tool_choice names {choice.get('name')}, which is no function here; functions: {known}"
        reader.error(("tool_choice",), "value", message)


def _check_text(reader: Reader, text: Json) -> None:
    if text is None:
        return
    form = text.get("format") if isinstance(text, dict) else None
    if not isinstance(text, dict) or (form is not None and not isinstance(form, dict)):
        reader.error(("text",), "type", "text must be a mapping, such as {format: {type: json_object}}")
    elif form is not None and form.get("type") not in _FORMATS:
        reader.error(("text", "format"), "value", f"text.format.type must be one of {', '.join(_FORMATS)}")
    elif form is not None and form.get("type") == "json_schema":
        import re

        if not isinstance(form.get("name"), str) or not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", form["name"]):
            reader.error(("text", "format"), "name", "text.format.name: 1 to 64 of letters, digits, _ and -")
        if not isinstance(form.get("schema"), dict):
            reader.error(("text", "format"), "type", "text.format.schema must be a JSON Schema")

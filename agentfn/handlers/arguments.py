"""Reads and checks a call's arguments: what is wrong never reaches a handler.

The text is the model's, so anything may stand in it. Nothing is repaired or evaluated; three harmless habits of models
are accepted, each with a warning: raw control characters inside a string, an object that was encoded twice, and half a
surrogate pair, which becomes U+FFFD.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, NamedTuple

from agentfn.document.check import instance_problems

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentfn.definition.agent import FunctionTool
    from agentfn.model import Call, Json

_SURROGATE = re.compile("[\ud800-\udfff]")
_NAMES = {list: "array", str: "string", bool: "boolean", int: "number", float: "number", type(None): "null"}


class Checked(NamedTuple):
    """Arguments ready for a handler, or the `problem` that keeps them from one, in words for the agent too."""

    arguments: dict[str, Json] | None
    problem: str | None
    warnings: tuple[str, ...] = ()


class _BadArgumentsError(ValueError):
    """The text is no usable JSON object; the message says why and where."""


def check_arguments(call: Call, tool: FunctionTool | None, known: Sequence[str]) -> Checked:
    """Return the call's arguments, checked against the function's schema.

    `tool` is None where the agent has no such function; `known` are the names it has.
    """
    if not call.function:
        return Checked(None, f"{call.id} has no function name; available: {', '.join(known) or 'none'}")
    if tool is None:
        return Checked(None, f"unknown function {call.function}; available: {', '.join(known) or 'none'}")
    warnings: list[str] = []
    try:
        arguments = parse_arguments(call.arguments, warnings)
    except _BadArgumentsError as exc:
        return Checked(None, f"arguments of {call.id} ({call.function}) {exc}", tuple(warnings))
    if not tool.parameters or tool.parameters == {"type": "object", "properties": {}}:
        return Checked(arguments, None, tuple(warnings))
    problems = instance_problems(arguments, tool.parameters)
    if problems:
        told = "; ".join(problem.message for problem in problems)
        return Checked(None, f"arguments of {call.id} ({call.function}) are wrong: {told}", tuple(warnings))
    return Checked(arguments, None, tuple(warnings))


def parse_arguments(text: str, warnings: list[str]) -> dict[str, Json]:
    """Return the object that the text holds; blank text is an empty one. Raises ValueError with the reason."""
    if not text.strip():
        return {}
    value = _parse(text, warnings)
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            inner = _parse(value, warnings)
        except _BadArgumentsError:
            inner = None
        if isinstance(inner, dict):
            warnings.append("the arguments were encoded twice; one layer was taken off")
            value = inner
    if not isinstance(value, dict):
        msg = f"must be a JSON object, got {_NAMES[type(value)]}"
        raise _BadArgumentsError(msg)
    if _has_surrogate(value):
        warnings.append("half of a surrogate pair was replaced by U+FFFD")
        value = _without_surrogates(value)
    return value  # type: ignore[no-any-return]  # a dict, from the check above


def _parse(text: str, warnings: list[str]) -> Json:
    try:
        return _decode(text, strict=True)
    except json.JSONDecodeError as exc:
        if exc.msg.startswith("Invalid control character"):
            try:
                value = _decode(text, strict=False)
            except json.JSONDecodeError as again:
                raise _BadArgumentsError(_told(again)) from again
            warnings.append("a string of the arguments holds raw control characters; they were kept")
            return value
        raise _BadArgumentsError(_told(exc)) from exc
    except RecursionError as exc:
        msg = "are nested too deeply"
        raise _BadArgumentsError(msg) from exc


def _decode(text: str, *, strict: bool) -> Json:
    try:
        return json.loads(text, strict=strict, parse_constant=_constant, parse_float=_float, object_pairs_hook=_object)
    except json.JSONDecodeError:
        raise
    except ValueError as exc:
        raise _BadArgumentsError(str(exc)) from exc


def _constant(name: str) -> Json:
    msg = f"are not valid JSON: {name} is no number"
    raise _BadArgumentsError(msg)


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        msg = f"hold a number out of range: {text}"
        raise _BadArgumentsError(msg)
    return number


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) < len(pairs):
        twice = next(key for key in value if sum(key == other for other, _ in pairs) > 1)
        msg = f"name {twice} twice"
        raise _BadArgumentsError(msg)
    return value


def _told(exc: json.JSONDecodeError) -> str:
    end = len(exc.doc.rstrip())
    if exc.msg.startswith("Unterminated string"):
        return f"are not valid JSON: string not closed, from position {exc.pos} to the end at {end}"
    if exc.msg == "Extra data":
        return f"are not valid JSON: unexpected text after the JSON value at position {exc.pos}"
    cut = " (cut at the end)" if exc.pos >= end else ""
    return f"are not valid JSON: {exc.msg[0].lower()}{exc.msg[1:]} at position {exc.pos}{cut}"


def _has_surrogate(value: Json) -> bool:
    if isinstance(value, str):
        return _SURROGATE.search(value) is not None
    if isinstance(value, list):
        return any(map(_has_surrogate, value))
    return isinstance(value, dict) and any(_has_surrogate(k) or _has_surrogate(v) for k, v in value.items())


def _without_surrogates(value: Json) -> Json:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value

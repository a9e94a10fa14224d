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

from agentfn.handlers.fitting import schema_complaint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentfn.definition.agent import FunctionTool
    from agentfn.model import Call, Json

#: Deeper arguments than any schema describes would exhaust the stack of whatever walks them, handlers included.
DEEPEST = 100

_SURROGATE = re.compile("[\ud800-\udfff]")
#: Digits of the longest integer that a float can still come near.
_LONGEST_INTEGER = 308
#: Characters of a number that are shown.
_SHOWN = 40
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
    complaint = schema_complaint(arguments, tool.parameters)
    if complaint is not None:
        return Checked(None, f"arguments of {call.id} ({call.function}) are wrong: {complaint}", tuple(warnings))
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
    if _depth(value) > DEEPEST:
        msg = "are nested too deeply"
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
    return json.loads(
        text,
        strict=strict,
        parse_constant=_constant,
        parse_float=_float,
        parse_int=_int,
        object_pairs_hook=_object,
    )


def _constant(name: str) -> Json:
    msg = f"are not valid JSON: {name} is no number"
    raise _BadArgumentsError(msg)


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _out_of_range(text)
    return number


def _int(text: str) -> int:
    """Return the integer, every digit exact; beyond what a float could hold it is refused, as 1e400 is."""
    if len(text) > _LONGEST_INTEGER:
        raise _out_of_range(text)
    return int(text)


def _out_of_range(text: str) -> _BadArgumentsError:
    return _BadArgumentsError(f"hold a number out of range: {text if len(text) <= _SHOWN else f'{text[:_SHOWN]}…'}")


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value: dict[str, Json] = {}
    for key, item in pairs:
        if key in value:
            msg = f"name {key} twice"
            raise _BadArgumentsError(msg)
        value[key] = item
    return value


def _told(exc: json.JSONDecodeError) -> str:
    end = len(exc.doc.rstrip())
    if exc.msg.startswith("Unterminated string"):
        return f"are not valid JSON: string not closed, from position {exc.pos} to the end at {end}"
    if exc.msg == "Extra data":
        what = "object" if exc.doc.lstrip().startswith("{") else "value"
        return f"are not valid JSON: unexpected text after the JSON {what} at position {exc.pos}"
    cut = " (cut at the end)" if exc.pos >= end else ""
    return f"are not valid JSON: {exc.msg[0].lower()}{exc.msg[1:]} at position {exc.pos}{cut}"


def _depth(value: Json) -> int:
    """Return how deeply lists and objects are nested, without recursion."""
    depth, level = 0, [value]
    while level:
        level = [
            item
            for outer in level
            if isinstance(outer, (dict, list))
            for item in (outer.values() if isinstance(outer, dict) else outer)
        ]
        depth += 1
    return depth


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
        return _object([(_without_surrogates(key), _without_surrogates(item)) for key, item in value.items()])
    return value

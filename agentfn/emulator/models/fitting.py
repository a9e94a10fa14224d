"""Whether a value fits a part of a function's schema, whose references point into the whole."""

from __future__ import annotations

import json
from typing import Any

from agentfn.document.check import instance_problems
from agentfn.document.walk import resolve_pointer

#: Where shared parts usually are; a reference to anywhere else costs a copy of the schema.
_SHARED = ("$defs", "definitions")


def fits(value: Any, part: Any, root: dict[str, Any]) -> bool:
    """Tell whether a value is valid against a part of the schema `root`."""
    if isinstance(part, bool) or part == {}:
        return part is not False
    if not isinstance(part, dict):
        return False
    if part is root:
        return not instance_problems(value, root)
    shared = {key: root[key] for key in _SHARED if key in root}
    if _points_elsewhere(part) or _points_elsewhere(shared):
        moved = {"$defs": {"root": _moved(root)}}
        return not instance_problems(value, {**_moved(part), **moved})
    return not instance_problems(value, {**part, **shared})


def resolved(part: Any, root: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with its reference followed; what stands beside the reference still holds."""
    beside: dict[str, Any] = {}
    for _ in range(8):  # they may run in a circle
        if not isinstance(part, dict) or "$ref" not in part:
            break
        beside = {**{key: value for key, value in part.items() if key != "$ref"}, **beside}
        part = resolve_pointer(root, str(part["$ref"]))
    return {**part, **beside} if isinstance(part, dict) else beside


def types_of(part: dict[str, Any]) -> list[Any]:
    """Return the types that a schema names."""
    types = part.get("type")
    return types if isinstance(types, list) else [types]


def _points_elsewhere(part: Any) -> bool:
    text = json.dumps(part)
    return '"$ref"' in text and any(
        not reference.startswith(tuple(f"#/{key}/" for key in _SHARED)) for reference in _references(part)
    )


def _references(part: Any) -> list[str]:
    if isinstance(part, dict):
        own = [part["$ref"]] if isinstance(part.get("$ref"), str) else []
        return own + [reference for value in part.values() for reference in _references(value)]
    if isinstance(part, list):
        return [reference for value in part for reference in _references(value)]
    return []


def _moved(part: Any) -> Any:
    """Return a schema as it reads below ``#/$defs/root``."""
    if isinstance(part, dict):
        return {
            key: f"#/$defs/root{value[1:]}"
            if key == "$ref" and isinstance(value, str) and value.startswith("#")
            else _moved(value)
            for key, value in part.items()
        }
    return [_moved(value) for value in part] if isinstance(part, list) else part

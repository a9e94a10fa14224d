"""The smallest value that a JSON Schema allows: zero, the empty text, the fewest items and properties."""

from __future__ import annotations

import math
import re
from typing import Any

from agentfn.document.schema import instance_problems, resolve_pointer

#: References and branches are followed this deep; a schema that needs more allows no finite value, or hides it well.
DEEPEST = 12

_FORMATS = {
    "date": "1970-01-01",
    "date-time": "1970-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "duration": "PT0S",
    "email": "a@example.com",
    "hostname": "example.com",
    "ipv4": "127.0.0.1",
    "ipv6": "::1",
    "uri": "https://example.com",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


def smallest(schema: Any, root: dict[str, Any], depth: int = 0) -> Any:
    """Return the smallest valid value; None where none was found."""
    if not isinstance(schema, dict) or depth > DEEPEST:
        return None
    if "$ref" in schema:
        return smallest(resolve_pointer(root, str(schema["$ref"])), root, depth + 1)
    if "const" in schema:
        return schema["const"]
    if isinstance(schema.get("enum"), list):
        return next((value for value in schema["enum"] if _fits(value, schema, root)), None)
    for key in ("anyOf", "oneOf"):
        for branch in schema.get(key) or []:
            merged = {**{k: v for k, v in schema.items() if k != key}, **(branch if isinstance(branch, dict) else {})}
            value = smallest(merged, root, depth + 1)
            if _fits(value, schema, root):
                return value
    if "allOf" in schema:
        merged = {k: v for k, v in schema.items() if k != "allOf"}
        for part in schema["allOf"]:
            merged = _merge(merged, part, root)
        return smallest(merged, root, depth + 1)
    types = schema.get("type")
    for kind in types if isinstance(types, list) else [types or _guess(schema)]:
        value = _of_type(kind, schema, root, depth)
        if _fits(value, schema, root):
            return value
    return None


def _merge(into: dict[str, Any], part: Any, root: dict[str, Any]) -> dict[str, Any]:
    if isinstance(part, dict) and "$ref" in part:
        part = resolve_pointer(root, str(part["$ref"]))
    if not isinstance(part, dict):
        return into
    merged = {**into, **part}
    for key, join in (("properties", dict), ("required", list)):
        if key in into and key in part:
            merged[key] = {**into[key], **part[key]} if join is dict else [*into[key], *part[key]]
    return merged


def _guess(schema: dict[str, Any]) -> str:
    """Return the type that a schema without one speaks of."""
    for key, kind in (("properties", "object"), ("required", "object"), ("items", "array"), ("minimum", "number")):
        if key in schema:
            return kind
    return "string"


def _of_type(kind: Any, schema: dict[str, Any], root: dict[str, Any], depth: int) -> Any:
    if kind == "object":
        properties = schema.get("properties") or {}
        extra = schema.get("additionalProperties", True)
        return {
            name: smallest(properties.get(name, extra if isinstance(extra, dict) else {}), root, depth + 1)
            for name in schema.get("required") or []
        }
    if kind == "array":
        return _array(schema, root, depth)
    if kind == "string":
        return _text(schema)
    if kind in ("integer", "number"):
        return _number(schema, whole=kind == "integer")
    return False if kind == "boolean" else None


def _array(schema: dict[str, Any], root: dict[str, Any], depth: int) -> list[Any]:
    least = schema.get("minItems", 0)
    first = schema.get("prefixItems") or []
    items = schema.get("items", {})
    parts = [first[i] if i < len(first) else items for i in range(least)]
    values = [smallest(part, root, depth + 1) for part in parts]
    if schema.get("uniqueItems") and isinstance(items, dict):
        choices = items.get("enum")
        values = choices[:least] if isinstance(choices, list) else [_another(v, i) for i, v in enumerate(values)]
    return values


def _another(value: Any, index: int) -> Any:
    """Return a value that differs from its neighbours in a list without repetitions."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float)):
        return value + index
    return value + "a" * index if isinstance(value, str) else value


def _number(schema: dict[str, Any], *, whole: bool) -> Any:
    low = _bound(schema, "minimum", "exclusiveMinimum", whole=whole, up=True)
    high = _bound(schema, "maximum", "exclusiveMaximum", whole=whole, up=False)
    value: Any = 0
    if low is not None and value < low:
        value = low
    if high is not None and value > high:
        value = high
    step = schema.get("multipleOf")
    if step and value % step:
        value = math.ceil(value / step) * step if low is not None and low > 0 else math.floor(value / step) * step
    return int(value) if whole or float(value).is_integer() else value


def _bound(schema: dict[str, Any], inclusive: str, exclusive: str, *, whole: bool, up: bool) -> Any:
    bound = schema.get(inclusive)
    outer = schema.get(exclusive)
    if outer is not None:
        inside = (math.floor(outer) + 1 if up else math.ceil(outer) - 1) if whole else outer + (0.5 if up else -0.5)
        bound = inside if bound is None else (max if up else min)(bound, inside)
    if bound is not None and whole:
        bound = math.ceil(bound) if up else math.floor(bound)
    return bound


def _text(schema: dict[str, Any]) -> str:
    least = schema.get("minLength", 0)
    if schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        found = _matching(pattern)
        if found is not None and len(found) >= least:
            return found
        for filler in "aA0":
            if re.search(pattern, filler * max(least, 1)):
                return filler * max(least, 1)
    return "a" * least


def _matching(pattern: str) -> str | None:
    """Return a short text that a regular expression matches, or None where that takes more than this knows."""
    from re import _constants as codes  # type: ignore[attr-defined]  # the only parser of Python's own expressions
    from re import _parser  # type: ignore[attr-defined]  # see above

    def build(parts: Any) -> str:
        return "".join(one(code, value) for code, value in parts)

    def one(code: Any, value: Any) -> str:
        if code is codes.LITERAL:
            return chr(value)
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            return build(value[2]) * value[0]
        if code is codes.SUBPATTERN:
            return build(value[3])
        if code is codes.BRANCH:
            return min((build(branch) for branch in value[1]), key=len)
        if code is codes.IN:
            return member(value)
        if code is codes.ANY:
            return "a"
        if code is codes.NOT_LITERAL:
            return "a" if value != ord("a") else "b"
        return ""

    def member(choices: Any) -> str:
        if choices and choices[0][0] is codes.NEGATE:
            text = "".join(c for c in "a0A_-. " if not any(holds(choice, c) for choice in choices[1:]))
            return text[:1]
        kind, value = choices[0]
        if kind is codes.LITERAL:
            return chr(value)
        if kind is codes.RANGE:
            return chr(value[0])
        return {codes.CATEGORY_DIGIT: "0", codes.CATEGORY_WORD: "a", codes.CATEGORY_SPACE: " "}.get(value, "a")

    def holds(choice: Any, character: str) -> bool:
        kind, value = choice
        if kind is codes.LITERAL:
            return ord(character) == value
        return kind is codes.RANGE and value[0] <= ord(character) <= value[1]

    try:
        text = build(_parser.parse(pattern))
    except (re.error, RecursionError, OverflowError):
        return None
    return text if re.search(pattern, text) else None


def _fits(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    shared = {key: root[key] for key in ("$defs", "definitions") if key in root}
    return not instance_problems(value, {**shared, **schema})

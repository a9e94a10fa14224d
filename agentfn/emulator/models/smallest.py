"""The smallest value that a JSON Schema allows: zero, the empty text, the fewest items and properties."""

from __future__ import annotations

import math
from typing import Any

from agentfn.emulator.models.fitting import fits, resolved
from agentfn.emulator.models.matching import matching

#: References and branches are followed this deep; a schema that needs more allows no finite value, or hides it well.
DEEPEST = 12

#: A text of each format; longer where none shorter is one.
FORMATS = {
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
_GUESSES = (
    ("object", ("properties", "required", "additionalProperties", "minProperties")),
    ("array", ("items", "prefixItems", "minItems", "uniqueItems")),
    ("number", ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
)


def smallest(schema: Any, root: dict[str, Any], depth: int = 0) -> Any:
    """Return the smallest valid value; None where none was found (or null is the one)."""
    if depth > DEEPEST:
        return None
    part = resolved(schema, root)
    for value in _attempts(part, root, depth):
        if fits(value, schema, root):
            return value
    return None


def _attempts(part: dict[str, Any], root: dict[str, Any], depth: int) -> Any:
    """Yield values that may be valid, the most likely first."""
    if "const" in part:
        yield part["const"]
    if isinstance(part.get("enum"), list):
        yield from part["enum"]
        return
    for key in ("anyOf", "oneOf"):
        for branch in part.get(key) or []:
            rest = {name: value for name, value in part.items() if name != key}
            yield smallest(_merged(rest, resolved(branch, root)), root, depth + 1)
    if isinstance(part.get("allOf"), list):
        whole = {name: value for name, value in part.items() if name != "allOf"}
        for branch in part["allOf"]:
            whole = _merged(whole, resolved(branch, root))
        yield smallest(whole, root, depth + 1)
    types = part.get("type")
    for kind in types if isinstance(types, list) else [types or _guess(part)]:
        yield from _of_type(kind, part, root, depth)


def _merged(into: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    merged = {**into, **part}
    if isinstance(into.get("properties"), dict) and isinstance(part.get("properties"), dict):
        merged["properties"] = {**into["properties"], **part["properties"]}
    if isinstance(into.get("required"), list) and isinstance(part.get("required"), list):
        merged["required"] = list(dict.fromkeys([*into["required"], *part["required"]]))
    for key in ("minimum", "exclusiveMinimum", "minLength", "minItems"):
        if key in into and key in part:
            merged[key] = max(into[key], part[key])
    for key in ("maximum", "exclusiveMaximum", "maxLength", "maxItems"):
        if key in into and key in part:
            merged[key] = min(into[key], part[key])
    return merged


def _guess(schema: dict[str, Any]) -> str:
    """Return the type that a schema without one speaks of."""
    return next((kind for kind, keys in _GUESSES if any(key in schema for key in keys)), "string")


def _of_type(kind: Any, part: dict[str, Any], root: dict[str, Any], depth: int) -> Any:
    if kind == "object":
        yield _object(part, root, depth)
    elif kind == "array":
        yield _array(part, root, depth)
    elif kind == "string":
        yield from _texts(part)
    elif kind in ("integer", "number"):
        yield from _numbers(part, whole=kind == "integer")
    elif kind == "boolean":
        yield from (False, True)
    else:
        yield None


def _object(part: dict[str, Any], root: dict[str, Any], depth: int) -> dict[str, Any]:
    properties = part.get("properties") or {}
    extra = part.get("additionalProperties", True)
    names = list(part.get("required") or [])
    names += [name for name in properties if name not in names][: max(0, part.get("minProperties", 0) - len(names))]
    return {
        name: smallest(properties.get(name, extra if isinstance(extra, dict) else {}), root, depth + 1)
        for name in names
    }


def _array(part: dict[str, Any], root: dict[str, Any], depth: int) -> list[Any]:
    first, items = part.get("prefixItems") or [], part.get("items", {})
    values: list[Any] = []
    for index in range(part.get("minItems", 0)):
        schema = first[index] if index < len(first) else items
        value = smallest(schema, root, depth + 1)
        if part.get("uniqueItems"):
            value = _another(value, values, schema, root)
        values.append(value)
    return values


def _another(value: Any, taken: list[Any], schema: Any, root: dict[str, Any]) -> Any:
    """Return a value that is not taken yet, for a list without repetitions."""
    known = resolved(schema, root).get("enum") or [value]
    more: list[Any] = [False, True]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        more = [value + number for number in range(1, len(taken) + 2)]
    elif isinstance(value, str):
        more = [value[: len(value) - len(str(n))] + str(n) for n in range(len(taken) + 2)]
        more += [value + "a" * number for number in range(1, len(taken) + 2)]
    candidates = (other for other in [*known, *more] if other not in taken)
    return next((other for other in candidates if fits(other, schema, root)), value)


def _numbers(part: dict[str, Any], *, whole: bool) -> Any:
    """Yield zero, the bounds and what lies just inside them, on the grid where there is one."""
    low = max((part[key] for key in ("minimum", "exclusiveMinimum") if key in part), default=None)
    high = min((part[key] for key in ("maximum", "exclusiveMaximum") if key in part), default=None)
    step = part.get("multipleOf") or (1 if whole else None)
    yield 0
    for bound in (low, high):
        if bound is None:
            continue
        if step:
            at = math.floor(bound / step)
            for number in (at, at + 1, at - 1):
                value = number * step
                yield int(value) if float(value).is_integer() else value
        else:
            inside = (low + high) / 2 if low is not None and high is not None else bound + (1 if bound is low else -1)
            yield from (bound, inside)


def _texts(part: dict[str, Any]) -> Any:
    least = part.get("minLength", 0)
    if part.get("format") in FORMATS:
        yield FORMATS[part["format"]]
    if isinstance(part.get("pattern"), str):
        yield matching(part["pattern"], least)
    yield from ("a" * least, "a" * (least + 1))

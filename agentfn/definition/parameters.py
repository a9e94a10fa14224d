"""The JSON Schema of a function's parameters: is it one, does every service take it, and what strict mode demands.

Places inside the schema are written ``#/properties/…``, as services write them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentfn.document.check import instance_problems, schema_problems
from agentfn.document.walk import pointer, subschemas

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentfn.definition.reader import Reader
    from agentfn.document.read import Path
    from agentfn.model import Json

_AT_ROOT = ("oneOf", "anyOf", "allOf", "enum", "not")
#: What strict mode refuses (foundry.md §8).
_NOT_STRICT = (
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
)
#: The formats that strict mode knows; others are refused when the model is called.
STRICT_FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")
#: foundry.md §8; Azure's own page has long said less, so these are warned about, not refused.
STRICT_DEPTH, STRICT_PROPERTIES, STRICT_ENUM_VALUES = 10, 5000, 1000


def check_parameters(reader: Reader, schema: dict[str, Json], path: Path, *, strict: bool) -> None:
    """Note everything that is wrong with a function's parameters."""
    if not schema:
        return
    problems = schema_problems(schema)
    for problem in problems:
        reader.error((*path, *problem.path), "schema", f"{_place(problem.path)}: {problem.message}")
    _check_root(reader, schema, path)
    parts = list(subschemas(schema))
    for at, part in parts:
        _check_part(reader, part, (*path, *at), at)
    if not problems:
        _check_values(reader, parts, path)
    if strict:
        for at, part in parts:
            for message in _strict(part, at):
                reader.error((*path, *at), "strict", message)
        _check_strict_size(reader, parts, path)


def _place(path: Path) -> str:
    return "#" + pointer(path)


def _check_root(reader: Reader, schema: dict[str, Json], path: Path) -> None:
    present = [key for key in _AT_ROOT if key in schema]
    if schema.get("type") != "object" or present:
        has = f"; this one has {', '.join(present)}" if present else ""
        message = (
            f"the root must be type: object and must not have {'/'.join(_AT_ROOT)}{has};"
            " put the alternatives into a property of an object"
        )
        reader.error(path, "schema-root", message)


def _types(part: dict[str, Json]) -> list[Json]:
    types = part.get("type")
    return types if isinstance(types, list) else [types]


def _check_part(reader: Reader, part: dict[str, Json], path: Path, at: Path) -> None:
    if "array" in _types(part) and "items" not in part and "prefixItems" not in part:
        reader.error(path, "array-items", f"{_place(at)}: an array needs items; what may it hold?")
    properties, required = part.get("properties"), part.get("required")
    if isinstance(properties, dict) and isinstance(required, list):
        for name in required:
            if name not in properties:
                reader.warn(path, "required", f"{_place(at)}: required names {name}, which is no property")


def _check_values(reader: Reader, parts: list[tuple[Path, dict[str, Json]]], path: Path) -> None:
    """Check that enum, const and default fit their own type."""
    for at, part in parts:
        if "type" not in part:
            continue
        own = {"type": part["type"]}
        for index, value in enumerate(part["enum"] if isinstance(part.get("enum"), list) else []):
            if instance_problems(value, own):
                message = f"{_place((*at, 'enum', index))}: {value!r} is not of type {part['type']}; quote it if text is meant"
                reader.error((*path, *at, "enum", index), "enum-type", message)
        for key, check in (("const", own), ("default", part)):
            if key in part and instance_problems(part[key], {k: v for k, v in check.items() if k != "$ref"}):
                message = f"{_place((*at, key))}: {part[key]!r} does not fit the schema it stands in"
                reader.warn((*path, *at, key), "value", message)


def _is_object(part: dict[str, Json]) -> bool:
    return "object" in _types(part) or "properties" in part


def _strict(part: dict[str, Json], at: Path) -> Iterator[str]:
    """Yield what strict mode refuses in one part of the schema."""
    place = _place(at)
    if _is_object(part):
        if part.get("additionalProperties") is not False:
            yield f"{place}: strict mode needs additionalProperties: false here"
        listed = part.get("required")
        required = listed if isinstance(listed, list) else []
        for name in part.get("properties") or {}:
            if name not in required:
                yield (
                    f"{_place((*at, 'properties', name))} is not in required; in strict mode add it, and allow null where"
                    f' it is optional (type: [{_first_type(part["properties"][name])}, "null"], null in an enum too)'
                )
    if "$ref" in part and len(part) > 1:
        others = ", ".join(key for key in part if key != "$ref")
        if at or set(part) - {"$ref", "$defs"}:
            yield f"{place}: $ref stands beside {others}; in strict mode inline it, or move them into what it points to"
    if "format" in part and part["format"] not in STRICT_FORMATS:
        yield f"{_place((*at, 'format'))}: strict mode has no format {part['format']}; known: {', '.join(STRICT_FORMATS)}"
    for key in _NOT_STRICT:
        if key in part:
            yield f"{_place((*at, key))}: strict mode has no {key}"


def _first_type(part: Json) -> str:
    return str(_types(part)[0] or "string") if isinstance(part, dict) else "string"


def _check_strict_size(reader: Reader, parts: list[tuple[Path, dict[str, Json]]], path: Path) -> None:
    depth = max((sum(step in {"properties", "items"} for step in at) for at, _ in parts), default=0)
    properties = sum(len(part.get("properties") or {}) for _, part in parts)
    values = sum(len(part["enum"]) for _, part in parts if isinstance(part.get("enum"), list))
    for count, limit, what in (
        (depth, STRICT_DEPTH, "levels"),
        (properties, STRICT_PROPERTIES, "properties"),
        (values, STRICT_ENUM_VALUES, "enum values"),
    ):
        if count > limit:
            reader.warn(path, "strict-size", f"{count} {what}; strict mode takes {limit}")

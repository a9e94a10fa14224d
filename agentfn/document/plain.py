"""Sees that plain schemas and values are right without loading jsonschema, which costs more than a whole request.

Only a clear yes is given here: whatever is not plainly right, wrong values included, is left to `document.schema`, which
alone says what is wrong. A property test holds both together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentfn.model import Json

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "integer": (int,),
    "number": (int, float),
}
_TEXTS = ("description", "title", "$comment")
_KNOWN = frozenset({"type", "properties", "required", "additionalProperties", "enum", "items", *_TEXTS})


def is_sound(schema: Json) -> bool:
    """Tell whether a schema is plainly a good one: a few keywords, each of the right form."""
    if not isinstance(schema, dict) or not _KNOWN.issuperset(schema):
        return False
    types, enum, required = schema.get("type", "object"), schema.get("enum", [0]), schema.get("required", [])
    properties = schema.get("properties", {})
    return (
        isinstance(types, str)
        and types in _TYPES
        and all(isinstance(schema[key], str) for key in _TEXTS if key in schema)
        and isinstance(enum, list)
        and isinstance(required, list)
        and all(isinstance(name, str) for name in required)
        and len(set(required)) == len(required)
        and isinstance(schema.get("additionalProperties", True), bool)
        and isinstance(properties, dict)
        and all(map(is_sound, properties.values()))
        and ("items" not in schema or is_sound(schema["items"]))
    )


def fits(value: Json, schema: Json) -> bool:
    """Tell whether a value plainly fits a sound, plain schema."""
    if not is_sound(schema):
        return False
    return _fits(value, schema)


def _fits(value: Json, schema: dict[str, Json]) -> bool:
    if "type" in schema and not _has_type(value, schema["type"]):
        return False
    # Texts alone: numbers and truth values compare in ways that JSON Schema does not (1, 1.0, True).
    if "enum" in schema and not (isinstance(value, str) and value in schema["enum"]):
        return False
    if isinstance(value, list):
        return "items" not in schema or all(_fits(item, schema["items"]) for item in value)
    if not isinstance(value, dict):
        return True
    properties = schema.get("properties", {})
    extra = schema.get("additionalProperties", True)
    return all(name in value for name in schema.get("required", [])) and all(
        _fits(item, properties[name]) if name in properties else extra for name, item in value.items()
    )


def _has_type(value: Json, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _TYPES[name])

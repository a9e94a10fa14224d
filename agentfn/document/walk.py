"""Walks JSON Schemas: their parts, their places, their local references. Loads nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agentfn.model import Json

Path = tuple[str | int, ...]
"""The way to a value: keys of objects and indexes of arrays, from the root."""

_GROUPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_SINGLE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")


def pointer(path: Iterable[str | int]) -> str:
    """Return a path as a JSON pointer (RFC 6901)."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def subschemas(schema: Json, path: Path = ()) -> Iterator[tuple[Path, dict[str, Json]]]:
    """Yield every object that stands where a schema stands, with its path, the root first."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    for key in _GROUPS:
        group = schema.get(key)
        if isinstance(group, dict):
            for name, item in group.items():
                yield from subschemas(item, (*path, key, name))
    for key in _SINGLE:
        yield from subschemas(schema.get(key), (*path, key))
    for key in _LISTS:
        group = schema.get(key)
        if isinstance(group, list):
            for index, item in enumerate(group):
                yield from subschemas(item, (*path, key, index))


def resolve_pointer(schema: Json, reference: str) -> Json | None:
    """Return what a local reference such as ``#/$defs/Role`` points to, or None."""
    target = schema
    for part in reference.removeprefix("#").split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(target, dict) and name in target:
            target = target[name]
        elif isinstance(target, list) and name.isdigit() and int(name) < len(target):
            target = target[int(name)]
        else:
            return None
    return target

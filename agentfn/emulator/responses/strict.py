"""What the engine refuses in a function's schema when the model is called (foundry.md §2.4, §5.2, §8).

The real one checks at the first response, not when the agent is made; that timing is an inference of foundry.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentfn.emulator.http import ApiError, openai_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_AT_ROOT = ("oneOf", "anyOf", "allOf", "enum", "not")
_NOT_STRICT = ("allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas")
_DEEPEST = 10

Context = tuple[str, ...]


def require_schemas(tools: Iterable[dict[str, Any]]) -> None:
    """Refuse the first function whose parameters break the rules, those of strict mode where it is strict."""
    for index, tool in enumerate(tools):
        if tool.get("type") != "function":
            continue
        schema = tool.get("parameters") or {"type": "object", "properties": {}}
        reason = _root_problem(schema) or _array_problem(schema, ())
        if reason is None and tool.get("strict"):
            reason = _strict_problem(schema, (), 0)
        if reason is not None:
            message = f"Invalid schema for function '{tool.get('name')}': {reason}"
            error = openai_error(message, param=f"tools[{index}].parameters", code="invalid_function_parameters")
            raise ApiError(400, error)


def _root_problem(schema: dict[str, Any]) -> str | None:
    if schema.get("type") != "object" or any(key in schema for key in _AT_ROOT):
        return f"schema must have type 'object' and not have {'/'.join(map(repr, _AT_ROOT))} at the top level."
    return None


def _types(schema: dict[str, Any]) -> list[Any]:
    types = schema.get("type")
    return types if isinstance(types, list) else [types]


def _parts(schema: dict[str, Any]) -> Iterator[tuple[Context, dict[str, Any]]]:
    """Yield the schemas right inside a schema."""
    for group in ("properties", "$defs", "definitions"):
        named = schema.get(group)
        if isinstance(named, dict):
            yield from (((group, name), part) for name, part in named.items() if isinstance(part, dict))
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield (key,), schema[key]
    for key in ("anyOf", "oneOf", "allOf"):
        branches = schema.get(key)
        if isinstance(branches, list):
            yield from (((key, str(index)), part) for index, part in enumerate(branches) if isinstance(part, dict))


def _array_problem(schema: dict[str, Any], context: Context) -> str | None:
    if "array" in _types(schema) and "items" not in schema and "prefixItems" not in schema:
        return f"In context={context!r}, array schema missing items."
    return next((reason for at, part in _parts(schema) if (reason := _array_problem(part, (*context, *at)))), None)


def _strict_problem(schema: dict[str, Any], context: Context, depth: int) -> str | None:
    where = f"In context={context!r}"
    properties = schema.get("properties")
    if "object" in _types(schema) or isinstance(properties, dict):
        if schema.get("additionalProperties") is not False:
            return f"{where}, 'additionalProperties' is required to be supplied and to be false."
        missing = [name for name in properties or {} if name not in (schema.get("required") or [])]
        if missing:
            return (
                f"{where}, 'required' is required to be supplied and to be an array including every key in properties."
                f" Missing '{missing[0]}'."
            )
        depth += 1
    if depth > _DEEPEST:
        return f"{where}, the schema is nested more than {_DEEPEST} levels deep."
    beside = [key for key in schema if key != "$ref"] if "$ref" in schema and context else []
    if beside:
        return f"{where}, $ref cannot have keywords {beside}."
    for key in _NOT_STRICT:
        if key in schema:
            return f"{where}, '{key}' is not permitted."
    return next(
        (reason for at, part in _parts(schema) if (reason := _strict_problem(part, (*context, *at), depth))), None
    )

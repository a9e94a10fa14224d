"""What the engine refuses in the schema of a strict function, when the model is called (foundry.md §2.4, §5.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentfn.emulator.http import ApiError, openai_error

if TYPE_CHECKING:
    from collections.abc import Iterable


def require_strict(tools: Iterable[dict[str, Any]]) -> None:
    """Refuse the first strict function whose parameters break the rules."""
    for index, tool in enumerate(tools):
        if tool.get("type") == "function" and tool.get("strict"):
            reason = _problem(tool.get("parameters") or {}, ())
            if reason is not None:
                message = f"Invalid schema for function '{tool.get('name')}': {reason}"
                error = openai_error(message, param=f"tools[{index}].parameters", code="invalid_function_parameters")
                raise ApiError(400, error)


def _problem(schema: Any, context: tuple[str, ...]) -> str | None:
    if not isinstance(schema, dict):
        return None
    properties = schema.get("properties")
    types = schema.get("type")
    is_object = "object" in (types if isinstance(types, list) else [types]) or isinstance(properties, dict)
    shown = f"context={context!r}"
    if is_object:
        if schema.get("additionalProperties") is not False:
            return f"In {shown}, 'additionalProperties' is required to be supplied and to be false."
        missing = [name for name in properties or {} if name not in (schema.get("required") or [])]
        if missing:
            return (
                f"In {shown}, 'required' is required to be supplied and to be an array including every key in"
                f" properties. Missing '{missing[0]}'."
            )
    for key in ("allOf", "not", "if", "dependentRequired", "dependentSchemas"):
        if key in schema:
            return f"In {shown}, '{key}' is not permitted."
    for name, part in (properties or {}).items() if isinstance(properties, dict) else ():
        reason = _problem(part, (*context, "properties", name))
        if reason is not None:
            return reason
    parts: list[tuple[str, Any]] = [("items", schema.get("items"))]
    parts += [(key, part) for key in ("anyOf", "oneOf") for part in schema.get(key) or []]
    parts += list((schema.get("$defs") or {}).items())
    return next((reason for key, part in parts if (reason := _problem(part, (*context, key))) is not None), None)

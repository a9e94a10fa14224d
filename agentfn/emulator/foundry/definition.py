"""The definition of a prompt agent: what is refused, and how it is echoed (foundry.md §2.3, §2.4)."""

from __future__ import annotations

import re
from typing import Any

from agentfn.emulator.http import ApiError
from agentfn.emulator.responses.errors import foundry_error, payload

#: foundry.md §8.
MOST_TOOLS = 128
_FUNCTION_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
_RANGES = {"temperature": (0, 2), "top_p": (0, 1)}


def definition_of(body: dict[str, Any]) -> dict[str, Any]:
    """Return the definition as it is echoed: only what was set, `kind` first (foundry.md §2.5)."""
    given = body.get("definition")
    if not isinstance(given, dict):
        raise payload("definition is required", param="/definition")
    kind, model = given.get("kind"), given.get("model")
    if not isinstance(kind, str):
        raise payload("definition.kind is required", param="/definition/kind")
    if kind != "prompt":
        message = "This kind of agent is a preview; the embedded service has prompt agents only."
        raise ApiError(403, foundry_error("preview_feature_required", message, param="Foundry-Features"))
    if not isinstance(model, str) or not model:
        raise payload("definition.model is required", param="/definition/model")
    definition = {"kind": kind} | {key: value for key, value in given.items() if value is not None}
    if not isinstance(definition.get("instructions", ""), str):
        raise payload("definition.instructions must be a string", param="/definition/instructions")
    for key, (low, high) in _RANGES.items():
        value = definition.get(key, low)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
            raise payload(f"definition.{key} must be between {low} and {high}", param=f"/definition/{key}")
    if "tools" in definition:
        definition["tools"] = _tools(definition["tools"])
    return definition


def _tools(tools: Any) -> list[dict[str, Any]]:
    if not isinstance(tools, list) or not all(isinstance(t, dict) and isinstance(t.get("type"), str) for t in tools):
        raise payload("definition.tools must be an array of objects with a type", param="/definition/tools")
    if len(tools) > MOST_TOOLS:
        message = f"The agent has {len(tools)} tools, the limit is {MOST_TOOLS}."
        raise ApiError(400, foundry_error("tool_limit_exceeded", message, param="/definition/tools"))
    return [_function(tool, index) if tool["type"] == "function" else tool for index, tool in enumerate(tools)]


def _function(tool: dict[str, Any], index: int) -> dict[str, Any]:
    at = f"/definition/tools/{index}"
    if not isinstance(tool.get("name"), str) or not _FUNCTION_NAME.fullmatch(tool["name"]):
        raise payload("a function's name has 1 to 128 characters of A-Za-z0-9_-", param=f"{at}/name")
    if not isinstance(tool.get("parameters") or {}, dict):
        raise payload("a function's parameters are a JSON Schema object", param=f"{at}/parameters")
    if not isinstance(tool.get("strict", False), bool):
        raise payload("strict is true or false", param=f"{at}/strict")
    # An empty schema is echoed as that of an object without properties (foundry.md §2.4).
    return tool | {"parameters": tool.get("parameters") or {"type": "object", "properties": {}}}

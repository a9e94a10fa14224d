"""Tells whether a definition changed: a digest of all that is sent to a service, and of nothing else."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentfn.definition.agent import Agent, FunctionTool
    from agentfn.model import Json


def wire_tool(tool: FunctionTool) -> dict[str, Json]:
    """Return a function tool as services take it: flat, with `strict` only where the author set it."""
    body: dict[str, Json] = {"type": "function", "name": tool.name}
    if tool.description is not None:
        body["description"] = tool.description
    body["parameters"] = tool.parameters or {"type": "object", "properties": {}}
    if tool.strict is not None:
        body["strict"] = tool.strict
    return body | tool.extra


def wire_tools(agent: Agent) -> list[dict[str, Json]]:
    """Return all tools in the author's order."""
    functions = {tool.name: tool for tool in agent.functions}
    return [
        wire_tool(functions[entry]) if isinstance(entry, str) else agent.other_tools[entry]
        for entry in agent.tool_order
    ]


def digest(agent: Agent) -> str:
    """Return 32 hexadecimal digits that change when anything a service would see changes.

    Handlers, questions and the local scenario are ours alone and do not count.
    """
    seen = {
        "name": agent.name,
        "model": agent.model,
        "instructions": agent.instructions,
        "description": agent.description,
        "metadata": agent.metadata,
        "settings": agent.settings,
        "tools": wire_tools(agent),
    }
    text = json.dumps(seen, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]

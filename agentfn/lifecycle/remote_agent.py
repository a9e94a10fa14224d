"""An agent that only a service knows, in the form of a definition: its functions can be checked, nothing answers them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentfn.definition.agent import Agent, FunctionTool

if TYPE_CHECKING:
    from agentfn.model import Json, RemoteAgent


def agent_from_remote(remote: RemoteAgent) -> Agent:
    """Return the definition that a service shows for one version of an agent; every handler is manual."""
    definition = remote.definition
    functions = [
        _function(tool)
        for tool in definition.get("tools") or []
        if isinstance(tool, dict) and tool.get("type") == "function" and isinstance(tool.get("name"), str)
    ]
    instructions = definition.get("instructions")
    return Agent(
        name=remote.ref.name,
        model=str(definition.get("model") or ""),
        instructions=instructions if isinstance(instructions, str) else None,
        metadata=dict(remote.metadata),
        functions=tuple(functions),
        tool_order=tuple(tool.name for tool in functions),
    )


def _function(tool: dict[str, Json]) -> FunctionTool:
    parameters = tool.get("parameters")
    description = tool.get("description")
    return FunctionTool(
        name=tool["name"],
        description=description if isinstance(description, str) else None,
        parameters=parameters if isinstance(parameters, dict) else {},
        strict=tool.get("strict"),
    )

"""An agent as members of a request, for servers that keep no agents (openai-agents.md §7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentfn.definition.agent import Agent
    from agentfn.model import Json, Stamp


def agent_members(agent: Agent, stamp: Stamp | None = None) -> dict[str, Json]:
    """Return what of an agent goes with each request; every function says whether it is strict, null is the default."""
    from agentfn.definition.digest import wire_tools

    del stamp  # it marks what is kept here, and goes nowhere
    members: dict[str, Json] = {"model": agent.model}
    if agent.instructions is not None:
        members["instructions"] = agent.instructions
    tools = [{"strict": None, **tool} if tool.get("type") == "function" else tool for tool in wire_tools(agent)]
    if tools:
        members["tools"] = tools
    return members | agent.settings

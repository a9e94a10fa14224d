"""What one service demands or lacks beyond what all of them take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentfn.definition.advice import at_tool

if TYPE_CHECKING:
    from agentfn.definition.agent import Agent
    from agentfn.definition.reader import Reader
    from agentfn.document.read import Path

#: Settings that OpenAI's sessions lack (openai-agents.md §2).
_NOT_ON_OPENAI = ("temperature", "top_p", "tool_choice")


def check_openai(reader: Reader, agent: Agent) -> None:
    """Note what OpenAI's sessions demand, and what of the file is left out there."""
    for tool in agent.functions:
        if not tool.description:
            message = f"OpenAI sessions demand a description, {tool.name} has none"
            reader.findings.append(at_tool(reader, tool, "openai-description", message, "error"))
        if tool.strict is not None:
            message = f"OpenAI sessions have no strict; {tool.name} is sent without it"
            reader.findings.append(at_tool(reader, tool, "openai-strict", message, "warning"))
    for key in _NOT_ON_OPENAI:
        if key in agent.settings:
            path: Path = (key,)
            reader.warn(path, "openai-setting", f"OpenAI sessions have no {key}; the agent is sent without it")

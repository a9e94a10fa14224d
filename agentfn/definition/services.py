"""What one service demands or lacks beyond what all of them take."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agentfn.definition.advice import at_tool
from agentfn.definition.digest import wire_tools

if TYPE_CHECKING:
    from agentfn.definition.agent import Agent
    from agentfn.definition.reader import Reader
    from agentfn.document.read import Path

#: Settings that OpenAI's sessions lack (openai-agents.md §2).
_NOT_ON_OPENAI = ("temperature", "top_p", "tool_choice")
#: What they take of a setting; anything else in it is refused.
_PARTS = {"reasoning": ("effort", "summary"), "text": ("format", "verbosity")}
_FORMATS = ("text", "json_schema")
_MOST_TOOLS, _LARGEST_TOOLS = 2000, 3_145_728
#: The most functions elsewhere (foundry.md §8).
_MOST_FUNCTIONS = 128


def check_service(reader: Reader, agent: Agent, protocol: str | None) -> None:
    """Note what a service of that protocol demands and lacks; None stands for any of them."""
    searches = any(tool.get("type") == "tool_search" for tool in agent.other_tools)
    for tool in agent.functions:
        if tool.extra.get("defer_loading") is True and not searches:
            message = f"{tool.name} has defer_loading, but there is no tool {{type: tool_search}} that could load it"
            reader.findings.append(at_tool(reader, tool, "defer-loading", message, "warning"))
    if protocol == "openai":
        _check_openai(reader, agent)
    elif len(agent.functions) > _MOST_FUNCTIONS:
        count = len(agent.functions)
        reader.error(("tools",), "limit", f"{count} functions, the limit is {_MOST_FUNCTIONS}")


def _check_openai(reader: Reader, agent: Agent) -> None:
    """Note what OpenAI's sessions demand, and what of the file is left out there."""
    for tool in agent.functions:
        if not tool.description:
            message = f"OpenAI sessions demand a description, {tool.name} has none"
            reader.findings.append(at_tool(reader, tool, "openai-description", message, "error"))
        if tool.strict is not None:
            message = f"OpenAI sessions have no strict; {tool.name} is sent without it"
            reader.findings.append(at_tool(reader, tool, "openai-strict", message, "warning"))
        for key in sorted(set(tool.extra) - {"defer_loading", "async"}):
            message = f"OpenAI sessions have no {key}; {tool.name} is sent without it"
            reader.findings.append(at_tool(reader, tool, "openai-setting", message, "warning"))
    for key in _NOT_ON_OPENAI:
        if key in agent.settings:
            path: Path = (key,)
            reader.warn(path, "openai-setting", f"OpenAI sessions have no {key}; the agent is sent without it")
    if agent.description is not None:
        reader.warn(
            ("description",), "openai-setting", "OpenAI agents have no description; the agent is sent without it"
        )
    _check_parts(reader, agent)
    _check_size(reader, agent)


def _check_parts(reader: Reader, agent: Agent) -> None:
    for key, known in _PARTS.items():
        setting = agent.settings.get(key)
        for part in setting if isinstance(setting, dict) else ():
            if part not in known:
                message = f"OpenAI sessions take {' and '.join(known)} of {key}, not {part}"
                reader.error((key, part), "openai-setting", message)
    text = agent.settings.get("text")
    form = text.get("format") if isinstance(text, dict) else None
    if isinstance(form, dict) and form.get("type") not in _FORMATS:
        message = f"OpenAI sessions have the formats {' and '.join(_FORMATS)}, not {form.get('type')}"
        reader.error(("text", "format"), "openai-setting", message)


def _check_size(reader: Reader, agent: Agent) -> None:
    tools = wire_tools(agent)
    if len(tools) > _MOST_TOOLS:
        reader.error(("tools",), "limit", f"{len(tools)} tools, the limit of OpenAI sessions is {_MOST_TOOLS}")
    size = len(json.dumps(tools, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))
    if size > _LARGEST_TOOLS:
        reader.error(
            ("tools",), "limit", f"the tools take {size:,} bytes, the limit of OpenAI sessions is {_LARGEST_TOOLS:,}"
        )

"""What is allowed and still goes wrong: names and descriptions from which no model can tell what a function is for."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from agentfn.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentfn.definition.agent import Agent, FunctionTool
    from agentfn.definition.reader import Reader

#: First words of names that promise to change something.
_EFFECTS = frozenset(
    {
        *("add", "book", "buy", "cancel", "charge", "create", "delete", "deploy", "drop", "execute", "grant", "insert"),
        *(
            "merge",
            "move",
            "order",
            "pay",
            "post",
            "publish",
            "purchase",
            "refund",
            "remove",
            "restart",
            "revoke",
            "send",
        ),
        *("start", "stop", "submit", "transfer", "update", "upload", "withdraw", "write"),
    }
)
_GENERIC = re.compile(r"(?i)(do|run|call|execute|function|func|tool|action|test|foo|bar|helper|process|handle)_?\d*")
#: Two descriptions more alike than this leave the model guessing.
_ALIKE = 0.9


def advise(reader: Reader, agent: Agent) -> None:
    """Note what is likely to go wrong."""
    if agent.functions and any(f.severity == "error" for f in reader.findings):
        return
    for tool in agent.functions:
        for rule, message in _tool_advice(tool):
            reader.findings.append(at_tool(reader, tool, rule, message, "warning"))
    for one, other in _alike(agent.functions):
        message = f"{one.name} and {other.name} are described almost alike; the model has to guess between them"
        reader.findings.append(at_tool(reader, other, "advice-description", message, "warning"))


def at_tool(reader: Reader, tool: FunctionTool, rule: str, message: str, severity: str) -> Finding:
    """Return a finding about a tool as a whole."""
    return Finding(reader.document.source, tool.line, tool.column, rule, message, severity)


def _tool_advice(tool: FunctionTool) -> Iterator[tuple[str, str]]:
    words = re.findall(r"\w+", tool.description or "")
    if not tool.description:
        yield "advice-description", f"{tool.name} has no description, so the model cannot tell when to call it"
    elif len(words) < 3 or _bare(tool.description) == _bare(tool.name):  # noqa: PLR2004  # two words describe nothing
        yield "advice-description", f"the description of {tool.name} says little: what does it do, and when?"
    if _GENERIC.fullmatch(tool.name):
        yield "advice-name", f"{tool.name} is a name that says nothing; name what the function does"
    verb = re.split(r"[_-]|(?<=[a-z])(?=[A-Z])", tool.name)[0].lower()
    if verb in _EFFECTS and not tool.is_asking and not tool.idempotent and tool.verify is None:
        yield (
            "advice-ask",
            (
                f"{tool.name} seems to change something: say ask: always (or never), and idempotent or verify for after a crash"
            ),
        )
    properties = tool.parameters.get("properties")
    if not isinstance(properties, dict) or not properties:
        return
    bare = [name for name, part in properties.items() if isinstance(part, dict) and not part.get("description")]
    bare = [name for name in bare if "enum" not in properties[name]]
    if bare:
        yield "advice-parameters", f"{tool.name}: describe {', '.join(bare)}, best with an example"
    if not tool.strict and not tool.parameters.get("required"):
        yield "advice-required", f"{tool.name} requires nothing, so a call may come without any argument"


def _bare(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _alike(tools: tuple[FunctionTool, ...]) -> Iterator[tuple[FunctionTool, FunctionTool]]:
    described = [tool for tool in tools if tool.description]
    for index, one in enumerate(described):
        for other in described[index + 1 :]:
            matcher = SequenceMatcher(None, one.description or "", other.description or "")
            # The cheap upper bounds first: with 128 functions there are 8,128 pairs.
            if matcher.real_quick_ratio() > _ALIKE and matcher.quick_ratio() > _ALIKE and matcher.ratio() > _ALIKE:
                yield one, other

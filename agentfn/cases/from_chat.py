"""Writes a test file from a conversation that was really had: what was said, what was asked for, what was given."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agentfn.definition.agent import FunctionTool
from agentfn.document.write import to_yaml
from agentfn.handlers.arguments import check_arguments
from agentfn.model import Call
from agentfn.turn.state import arguments_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentfn.definition.agent import Agent
    from agentfn.model import Entry, Json

_HEAD = """\
# Made from the conversation {conversation}. Without an account the scenario under `local` answers, elsewhere the agent.
# What is expected is what happened: loosen what may vary, with regex, one_of, ignore (docs/tests.md).
"""


class _Turn(NamedTuple):
    message: str
    entries: list[Entry]


class Chat(NamedTuple):
    """A conversation that was had. `agent` is None where its file is not known here.

    `failure` is why the last turn failed, None where it did not.
    """

    conversation: str
    agent: Agent | None
    entries: Sequence[Entry]
    failure: str | None = None

    def tool(self, entry: Entry) -> FunctionTool | None:
        """Return the function that a call is for; of an agent that is not known here nothing but the name."""
        if entry.kind != "call" or not entry.function:
            return None
        return FunctionTool(entry.function, None, {}) if self.agent is None else self.agent.function(entry.function)

    def runs(self, entry: Entry) -> bool:
        """Tell whether a call gets as far as its function: arguments that do not fit are answered before."""
        tool = self.tool(entry)
        call = Call(entry.call_id or "", entry.function or "", entry.text)
        return tool is not None and check_arguments(call, tool, ()).problem is None


def as_case(chat: Chat) -> str:
    """Return a test file with one case. A conversation of which nobody knows how a turn ended gives none: ValueError."""
    entries = chat.entries
    turns = _turns(entries)
    if not turns:
        raise ValueError("nobody said anything in it")
    waits = bool(turns[-1].entries) and turns[-1].entries[-1].kind == "call" and chat.failure is None
    ended = turns if chat.failure is None and not waits else turns[:-1]
    silent = next((turn for turn in ended if not turn.entries or turn.entries[-1].kind != "agent"), None)
    if silent is not None:
        msg = f"no answer came to {silent.message!r}, and why is not known here"
        raise ValueError(msg)
    case: dict[str, Json] = {"name": _name(turns[0].message)}
    if len(turns) == 1:
        case["input"] = turns[0].message
    else:
        case["turns"] = [{"input": turn.message} for turn in turns]
    case["local"] = [step for turn in turns for step in _steps(turn)]
    if chat.failure is not None:
        if turns[-1].entries and set(case["local"][-1]) == {"say"}:
            case["local"].pop()  # as far as the answer came; with it the turn would end well
        case["local"].append({"fail": _failed(chat.failure)})
    outputs = _outputs(chat)
    if outputs:
        case["outputs"] = outputs
    calls = [_expected(entry, tool) for entry in entries if (tool := chat.tool(entry)) is not None]
    case["expect"] = {"calls": calls, "order": "in_order"} if calls else {"calls": []}
    if waits:
        case["handlers"] = False
        case["expect"]["pending"] = True
    if chat.failure is not None:
        case["expect"]["failure"] = {"contains": chat.failure}
    path = chat.agent.path if chat.agent is not None else None
    agent = Path(os.path.relpath(str(path))).as_posix() if path is not None else "agent.yaml"
    return _HEAD.format(conversation=chat.conversation) + to_yaml({"agent": agent, "cases": [case]})


def _turns(entries: Sequence[Entry]) -> list[_Turn]:
    turns: list[_Turn] = []
    for entry in entries:
        if entry.kind == "user":
            turns.append(_Turn(entry.text, []))
        elif turns:
            turns[-1].entries.append(entry)
    return turns


def _name(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= 60 else f"{line[:60].rstrip()}…"  # noqa: PLR2004  # enough to recognise it


def _steps(turn: _Turn) -> list[dict[str, Json]]:
    """Return a turn as steps of a scenario: what stands together, with no output between, came in one response."""
    steps: list[dict[str, Json]] = [{}]
    for entry in turn.entries:
        if entry.kind == "output" and steps[-1]:
            steps.append({})
        elif entry.kind == "call":
            steps[-1].setdefault("call", []).append(_scripted(entry))
        elif entry.kind == "agent":
            said = steps[-1].get("say")
            steps[-1]["say"] = entry.text if said is None else f"{said}\n{entry.text}"
    return [step for step in steps if step]


def _scripted(entry: Entry) -> dict[str, Json]:
    value = arguments_value(entry.text)
    if isinstance(value, dict) and "{{" not in entry.text:  # which a scenario would fill in
        return {"name": entry.function, "arguments": value}
    return {"name": entry.function, "raw": entry.text}


def _outputs(chat: Chat) -> dict[str, Json]:
    """Return what each function gave, call by call, in the order in which they were asked for."""
    given = {entry.call_id: entry.text for entry in chat.entries if entry.kind == "output"}
    found: dict[str, list[Json]] = {}
    for entry in chat.entries:
        if entry.call_id in given and chat.runs(entry):
            found.setdefault(str(entry.function), []).append(_answer(given[entry.call_id]))
    return {name: answers[0] if len(answers) == 1 else answers for name, answers in found.items()}


def _answer(text: str) -> dict[str, Json]:
    """Return an output as a case gives it; the JSON object that stands for a failure becomes one again."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {"output": text}
    if isinstance(value, dict) and set(value) == {"error"} and isinstance(value["error"], str):
        return {"error": value["error"]}
    return {"output": text}


def _failed(failure: str) -> dict[str, Json]:
    """Return a failure as a scenario's step; the service's code stands at its end in brackets."""
    message, _, code = failure.removesuffix(")").rpartition(" (")
    return {"code": code, "message": message} if message and failure.endswith(")") else {"message": failure}


def _expected(entry: Entry, tool: FunctionTool) -> dict[str, Json]:
    value = arguments_value(entry.text)
    if not isinstance(value, dict) or not value:
        return {"name": entry.function}
    parameters = (tool.parameters or {}).get("properties", {})
    # A parameter that is called like a matcher word is meant where that word stands.
    exactly = {"schema": {"const": value}} if "equals" in parameters else {"equals": value}
    return {"name": entry.function, "arguments": value if "schema" in exactly and "schema" in parameters else exactly}

"""Sessions, turns and items of the Agents API, read with tolerance and written exactly (openai-agents.md §2 to §6)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agentfn.model import AgentRef, Call, Entry, Json, OtherAction, Outcome, RemoteAgent, RemoteConversation, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentfn.definition.agent import Agent
    from agentfn.model import Stamp

Item = dict[str, Any]

#: What of an agent file's settings a saved agent takes (openai-agents.md §2).
_SETTINGS = ("reasoning", "text")
#: What a function tool takes beside name, description and parameters.
_FUNCTION_EXTRAS = ("defer_loading", "async")

#: Actions that no function output answers, with what to do (openai-agents.md §3).
_ADVICE = {
    "environment_connection": "an executor must connect to that environment; agentfn's own sessions need none",
    "mcp_approval_request": "approve or deny it where you manage the session; agentfn answers function calls only",
    "computer_use_approval_request": "approve or deny it where you manage the session; agentfn answers function calls only",
}
_UNKNOWN = "this version of agentfn does not know it; answer it where you manage the session, or agentfn cleanup"


def agent_body(agent: Agent, stamp: Stamp | None) -> dict[str, Json]:
    """Return the body that saves an agent; what the API lacks is left out (`definition.services` warns of it)."""
    from agentfn.definition.digest import wire_tools

    body: dict[str, Json] = {"model": agent.model, "name": agent.name}
    if agent.instructions is not None:
        body["instructions"] = agent.instructions
    tools = [_tool(tool) for tool in wire_tools(agent)]
    if tools:
        body["tools"] = tools
    body |= {key: agent.settings[key] for key in _SETTINGS if key in agent.settings}
    if "text" in body:
        body["text"] = _text(body["text"])
    metadata = agent.metadata | (stamp.metadata() if stamp else {})
    if metadata:
        body["metadata"] = metadata
    return body


def _tool(tool: dict[str, Json]) -> dict[str, Json]:
    if tool.get("type") != "function":
        return tool
    body = {"type": "function", "name": tool["name"], "description": tool.get("description")}
    body["parameters"] = tool["parameters"]
    return body | {key: tool[key] for key in _FUNCTION_EXTRAS if key in tool}


def _text(text: dict[str, Json]) -> dict[str, Json]:
    """Return the text settings without what only Responses has: a schema's name and strictness."""
    form = text.get("format")
    if not isinstance(form, dict) or form.get("type") != "json_schema":
        return text
    return {**text, "format": {"type": "json_schema", "schema": form.get("schema")}}


def remote_agent(body: Item) -> RemoteAgent:
    """Return a saved agent. It has no versions: each is one by itself, so its id stands for the version."""
    identity = str(body.get("id") or "")
    return RemoteAgent(
        AgentRef(str(body.get("name") or ""), identity, identity),
        _number(body.get("created_at")),
        _pairs(body.get("metadata")),
        body,
    )


def remote_conversation(body: Item) -> RemoteConversation:
    """Return a session of the list."""
    return RemoteConversation(str(body.get("id") or ""), _number(body.get("created_at")), _pairs(body.get("metadata")))


def message_event(message: str) -> Item:
    """Return the event that says something (openai-agents.md §4.1)."""
    content = [{"type": "input_text", "text": message}]
    return {"type": "agent.session.input.message", "input": [{"role": "user", "content": content}]}


def result_event(turn: str, call: Call, outcome: Outcome) -> Item:
    """Return the event that answers a call (openai-agents.md §6)."""
    event: Item = {"type": "agent.session.input.tool_result", "turn_id": turn, "call_id": call.id}
    if outcome.error is not None:
        return event | {"success": False, "error": outcome.error}
    return event | {"success": True, "output": outcome.output if outcome.content is None else outcome.content}


def actions_in(session: Item) -> list[Item]:
    """Return a session's required actions."""
    actions = session.get("required_actions")
    return [action for action in actions if isinstance(action, dict)] if isinstance(actions, list) else []


def calls_in(session: Item) -> list[tuple[str, Call]]:
    """Return the function calls that a session waits for, each with its turn."""
    return [
        (str(action.get("turn_id") or ""), call_of(action))
        for action in actions_in(session)
        if action.get("type") == "function_call"
    ]


def call_of(source: Item) -> Call:
    """Return the call of an action or an item."""
    return Call(str(source.get("call_id") or ""), str(source.get("name") or ""), _arguments(source.get("arguments")))


def others_in(session: Item) -> tuple[OtherAction, ...]:
    """Return what else a session waits for; kinds that nobody knew when this was written are kept."""
    found = []
    for action in actions_in(session):
        kind = str(action.get("type") or "unknown")
        if kind == "function_call":
            continue
        identity = str(action.get("request_id") or action.get("environment_id") or action.get("id") or "")
        request = action.get("request")
        about = str(request.get("message") or request.get("name") or "") if isinstance(request, dict) else ""
        advice = _ADVICE.get(kind, _UNKNOWN)
        found.append(OtherAction(kind, identity, f"{advice} ({about})" if about else advice))
    return tuple(found)


def _arguments(value: Json) -> str:
    """Return arguments as text; they come as an object (openai-agents.md §3)."""
    return value if isinstance(value, str) else json.dumps({} if value is None else value, ensure_ascii=False)


def answer_in(items: Iterable[Item]) -> str:
    """Return the final text of a turn: what the agent said that is no commentary (openai-agents.md §5)."""
    return "".join(
        message_text(item)
        for item in items
        if item.get("type") == "message"
        and item.get("role") == "assistant"
        and item.get("status") == "completed"
        and item.get("phase") != "commentary"
    )


def message_text(item: Item) -> str:
    """Return the text of a message."""
    content = item.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(str(part["text"]) for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


def is_user_message(item: Item) -> bool:
    """Tell whether an item is a message of the user."""
    return item.get("type") == "message" and item.get("role") == "user"


def failure_of(turn: Item) -> str | None:
    """Return why a turn ended without an answer, or None."""
    status = turn.get("status")
    if status == "cancelled":
        return "the turn was cancelled"
    if status != "failed":
        return None
    error = turn.get("error")
    error = error if isinstance(error, dict) else {}
    return f"{error.get('message') or 'no reason given'} ({error.get('code') or 'failed'})"


def usage_of(turn: Item) -> Usage | None:
    """Return a turn's token counts; None while the service has not counted."""
    usage = turn.get("usage")
    if not isinstance(usage, dict):
        return None
    read, wrote = (int(_number(usage.get(key)) or 0) for key in ("input_tokens", "output_tokens"))
    return Usage(read, wrote, int(_number(usage.get("total_tokens")) or read + wrote))


def agent_of(session: Item) -> AgentRef | None:
    """Return the agent that a session was made from."""
    agent = session.get("agent")
    if not isinstance(agent, dict) or not agent.get("id"):
        return None
    return AgentRef(str(agent.get("name") or ""), str(agent["id"]), str(agent["id"]))


def entry(item: Item) -> Entry:
    """Return an item as a line of the transcript."""
    kind = str(item.get("type") or "message")
    line = Entry(kind, "", id=item.get("id"), call_id=item.get("call_id"), response_id=item.get("turn_id"), raw=item)
    if kind == "message":
        role = str(item.get("role"))
        return line._replace(kind="agent" if role == "assistant" else role, text=message_text(item))
    if kind == "function_call":
        return line._replace(kind="call", text=_arguments(item.get("arguments")), function=str(item.get("name") or ""))
    if kind == "function_call_output":
        return line._replace(kind="output", text=_output_text(item))
    return line._replace(text=json.dumps(item, ensure_ascii=False))


def _output_text(item: Item) -> str:
    """Return an output as text; a plain one comes back as an array with one part (openai-agents.md §4.4)."""
    output = item.get("output")
    if output is None and item.get("error") is not None:
        return json.dumps({"error": item["error"]}, ensure_ascii=False)
    if isinstance(output, list) and len(output) == 1 and isinstance(output[0], dict) and "text" in output[0]:
        return str(output[0]["text"])
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)


def _pairs(metadata: Json) -> dict[str, str]:
    return {str(key): str(value) for key, value in metadata.items()} if isinstance(metadata, dict) else {}


def _number(value: Json) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

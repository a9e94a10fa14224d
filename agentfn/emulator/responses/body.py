"""The response object and its items, as both faces write them (foundry.md §4.4, §4.5; openai-agents.md §7)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agentfn.emulator.models.deferred import searched_for
from agentfn.emulator.responses.ids import new_call_id, new_id

if TYPE_CHECKING:
    from agentfn.emulator.foundry.agents import Version
    from agentfn.emulator.models.step import Reply
    from agentfn.emulator.responses.asked import Asked
    from agentfn.emulator.responses.items import Item


def reference(agent: Version) -> dict[str, Any]:
    """Return how a response names its agent: always with the resolved version (foundry.md §4.2)."""
    return {"type": "agent_reference", "name": agent.name, "version": str(agent.number)}


def output_items(asked: Asked, response: str, reply: Reply) -> list[Item]:
    """Return what the model wrote, as items of that response."""
    if reply.failure is not None:
        return []
    status = "incomplete" if reply.incomplete else "completed"
    # Only Foundry says of an item which response and agent it came from.
    by: dict[str, Any] = {} if asked.plain else {"response_id": response}
    if asked.agent is not None:
        by = {"agent_reference": reference(asked.agent), **by}
    items = _search_items(asked, reply, by)
    if reply.text is not None:
        part = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        message = {"type": "message", "id": new_id("msg", asked.partition), **by, "role": "assistant"}
        items.append({**message, "content": [part], "status": status})
    for call in reply.calls:
        head = {"type": "function_call", "id": new_id("fc", asked.partition), **by}
        named = {"call_id": call.id or new_call_id(), "name": call.function, "arguments": call.arguments}
        items.append({**head, **named, "status": status})
    return items


def _search_items(asked: Asked, reply: Reply, by: dict[str, Any]) -> list[Item]:
    """Return what shows that the model searched for deferred functions before it asked for them."""
    history = [*asked.history, *asked.given]
    loaded = [t.get("name", "") for item in history if item["type"] == "tool_search_output" for t in item["tools"]]
    tools = searched_for(asked.tools, [call.function for call in reply.calls], loaded)
    if not tools:
        return []
    common = {**by, "call_id": None, "execution": "server", "status": "completed"}
    arguments = {"paths": [tool["name"] for tool in tools]}
    return [
        {"type": "tool_search_call", "id": new_id("tsc", asked.partition), **common, "arguments": arguments},
        {"type": "tool_search_output", "id": new_id("tso", asked.partition), **common, "tools": tools},
    ]


def open_body(asked: Asked, identity: str, created_at: float, status: str) -> dict[str, Any]:
    """Return the response before the model has answered: queued or in_progress."""
    source = asked.source
    body: dict[str, Any] = {
        "metadata": asked.body.get("metadata") or {},
        "top_logprobs": 0,
        "temperature": source.get("temperature", 1),
        "top_p": source.get("top_p", 1),
        "service_tier": "default",
        "model": source.get("model"),
        "reasoning": {"effort": None, "summary": None} | (source.get("reasoning") or {}),
        "background": asked.background,
        "text": {"format": {"type": "text"}} | (source.get("text") or {}),
        "tools": [_echoed(tool) for tool in asked.tools] if asked.plain else asked.tools,
        "tool_choice": source.get("tool_choice") or "auto",
        "truncation": "disabled",
        "id": identity,
        "object": "response",
        "status": status,
        "created_at": int(created_at),
        "completed_at": None,
        "error": None,
        "incomplete_details": None,
        "output": [],
        "instructions": source.get("instructions"),
        "parallel_tool_calls": True,
    }
    conversation = None if asked.conversation is None else {"id": asked.conversation}
    if asked.plain:
        return body | _plain_settings(asked) | {"conversation": conversation, "previous_response_id": asked.previous}
    body["agent_reference"] = reference(asked.agent) if asked.agent else None
    if conversation is not None:
        body["conversation"] = conversation
    if asked.previous is not None:
        body["previous_response_id"] = asked.previous
    return body


def _echoed(tool: dict[str, Any]) -> dict[str, Any]:
    """Return a tool as a plain response shows it: a function has all of its members."""
    if tool.get("type") != "function":
        return tool
    return {"description": None, "parameters": None, "strict": None} | tool


def _plain_settings(asked: Asked) -> dict[str, Any]:
    """Return what a plain response repeats of its request, with the defaults; every field is always there."""
    defaults: dict[str, Any] = {
        "max_output_tokens": None,
        "max_tool_calls": None,
        "presence_penalty": 0,
        "frequency_penalty": 0,
        "store": True,
        "safety_identifier": None,
        "prompt_cache_key": None,
        "truncation": "disabled",
        "top_logprobs": 0,
    }
    return {key: default if asked.body.get(key) is None else asked.body[key] for key, default in defaults.items()}


def final_body(opened: dict[str, Any], asked: Asked, output: list[Item], reply: Reply, now: float) -> dict[str, Any]:
    """Return the response once the model has answered."""
    body = {**opened, "status": "completed", "output": output, "usage": _usage(asked, output, reply)}
    if reply.failure is not None:
        code, message = reply.failure
        return {**body, "status": "failed", "error": {"code": code, "message": message}}
    if reply.incomplete is not None:
        return {**body, "status": "incomplete", "incomplete_details": {"reason": reply.incomplete}}
    return {**body, "completed_at": int(now)}


def _usage(asked: Asked, output: list[Item], reply: Reply) -> dict[str, Any]:
    """Return token counts: the scenario's, else a fixed guess of four characters a token."""
    told = reply.usage or {}
    read = told.get("input_tokens", len(json.dumps([asked.history, asked.given])) // 4)
    wrote = told.get("output_tokens", len(json.dumps(output)) // 4)
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": wrote,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": told.get("total_tokens", read + wrote),
    }

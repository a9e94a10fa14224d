"""Items and responses, read with tolerance and written exactly (foundry.md §3, §4; openai-agents.md §7)."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, TypeGuard

from agentfn.model import (
    AgentRef,
    Call,
    Entry,
    Json,
    OtherAction,
    Outcome,
    Step,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


Item = dict[str, Any]

#: Items that stop a run and wait for something no function output can give, with what to do (foundry.md §4.5).
_ADVICE = {
    "mcp_approval_request": "it wants approval for a tool of an MCP server; approve it where you manage the agent",
    "oauth_consent_request": "open its consent link, then send a new message",
    "computer_call": "it wants a computer to be used, which agentfn does not do",
    "custom_tool_call": "it calls a custom tool, which agentfn does not answer",
    "local_shell_call": "it wants a shell command to be run, which agentfn does not do",
    "shell_call": "it wants a shell command to be run, which agentfn does not do",
    "apply_patch_call": "it wants a patch to be applied, which agentfn does not do",
    "tool_search_call": "it wants tools to be searched for here, which agentfn does not do",
}


def output_item(call: Call, outcome: Outcome) -> Item:
    """Return what answers a call (foundry.md §4.5). There is no flag for failure, so an error goes as a text that says so."""
    output: Json = outcome.output
    if outcome.content is not None:
        output = outcome.content
    elif outcome.error is not None:
        output = json.dumps({"error": outcome.error}, ensure_ascii=False)
    return {"type": "function_call_output", "call_id": call.id, "output": "" if output is None else output}


def replayable(item: Item) -> Item:
    """Return an item that a server gave as it takes it back: without nulls, a call in its usual form."""
    kept = {key: value for key, value in item.items() if value is not None}
    if item.get("type") != "function_call":
        return kept
    (call,) = calls_of([item])
    return {**kept, "call_id": call.id, "name": call.function, "arguments": call.arguments}


def calls_of(output: Iterable[Item]) -> tuple[Call, ...]:
    """Return the function calls among items; arguments that came as an object become text again."""
    return tuple(
        Call(str(item.get("call_id") or item.get("id") or ""), str(_part(item, "name") or ""), arguments_text(item))
        for item in output
        if item.get("type") == "function_call"
    )


def _part(item: Item, key: str) -> Json:
    """Return a call's name or arguments; some servers nest them, as Chat Completions does."""
    nested = item.get("function")
    return item.get(key) if item.get(key) is not None or not isinstance(nested, dict) else nested.get(key)


def arguments_text(item: Item) -> str:
    """Return a call's arguments as text."""
    arguments = _part(item, "arguments")
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else json.dumps(arguments, ensure_ascii=False)


def actions_of(output: Iterable[Item]) -> tuple[OtherAction, ...]:
    """Return what else the service waits for; what its own side has answered already is not waited for."""
    found = list(output)
    closed = {str(item.get("call_id")) for item in found if str(item.get("type")).endswith("_output")}
    return tuple(
        OtherAction(str(item["type"]), str(item.get("id") or ""), _advice(item))
        for item in found
        if str(item.get("type")) in _ADVICE and str(item.get("call_id")) not in closed and _is_ours(item)
    )


def _is_ours(item: Item) -> bool:
    """Tell whether an item waits for the client: tools are searched for by the service itself, unless it says so."""
    return item["type"] != "tool_search_call" or item.get("execution") == "client"


def _advice(item: Item) -> str:
    link = item.get("consent_link")
    return f"open {link}, then send a new message" if link else _ADVICE[item["type"]]


def text_of(output: Iterable[Item]) -> str | None:
    """Return the agent's text among items; a refusal counts as its text. None where there is no message."""
    found: list[str] = []
    for item in output:
        if item.get("type") == "message" and item.get("role", "assistant") == "assistant":
            found += [_part_text(part) for part in _parts(item)]
    return "".join(found) if found else None


def message_text(item: Item) -> str:
    """Return the text of any message."""
    return "".join(_part_text(part) for part in _parts(item))


def _parts(item: Item) -> list[Item]:
    content = item.get("content", item.get("text"))
    return [{"type": "output_text", "text": content}] if isinstance(content, str) else objects(content)


def objects(value: Json) -> list[Item]:
    """Return the objects of an array; nothing where it is none."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _part_text(part: Item) -> str:
    for key in ("text", "refusal"):
        if isinstance(part.get(key), str):
            return str(part[key])
    return ""


def usage_of(body: Item) -> Usage | None:
    """Return a response's token counts, None where it has none."""
    usage = body.get("usage")
    if not isinstance(usage, dict):
        return None
    read, wrote = (_count(usage.get(key)) for key in ("input_tokens", "output_tokens"))
    return Usage(read, wrote, _count(usage.get("total_tokens")) or read + wrote)


def _count(value: Json) -> int:
    return int(value) if _is_number(value) else 0


def _is_number(value: Json) -> TypeGuard[float]:
    # json reads NaN and Infinity, which no service means.
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def created_at(body: Item) -> float | None:
    """Return when something was created, in unix seconds; None where it does not say so in numbers."""
    created = body.get("created_at")
    return float(created) if _is_number(created) else None


def step_of(body: Item, now: float) -> Step:
    """Return what a response says (foundry.md §4.4); `now` is the service's clock."""
    output = objects(body.get("output"))
    failure = failure_of(body)
    calls = calls_of(output) if failure is None else ()
    actions = actions_of(output) if failure is None else ()
    answer = text_of(output)
    if answer is None and isinstance(body.get("output_text"), str):
        answer = body["output_text"]  # some servers put the text there alone
    if calls or actions:
        answer = None
    elif answer is None and failure is None:
        answer = ""  # it has come to its end and said nothing
    created = created_at(body)
    agent = agent_of(body)
    return Step(
        id=str(body.get("id") or ""),
        created_at=now if created is None else created,
        service_now=now,
        calls=calls,
        answer=answer,
        failure=failure,
        usage=usage_of(body),
        actions=actions,
        version=agent.version if agent is not None else None,
    )


def failure_of(body: Item) -> str | None:
    """Return why a response has no answer, or only part of one; None where it was completed."""
    status = body.get("status") or "completed"
    if status == "completed":
        return None
    if status == "incomplete":
        details = body.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        return f"the answer is incomplete: {reason or 'no reason given'}"
    if status == "failed":
        error = body.get("error")
        error = error if isinstance(error, dict) else {}
        return f"{error.get('message') or 'no reason given'} ({error.get('code') or 'failed'})"
    return "the response was cancelled" if status == "cancelled" else f"the service stopped while it was {status}"


def response_of(item: Item) -> str | None:
    """Return the response that an item of a conversation came from (foundry.md §3)."""
    if isinstance(item.get("response_id"), str):
        return str(item["response_id"])
    created = item.get("created_by")
    found = created.get("response_id") if isinstance(created, dict) else None
    return str(found) if found else None


def agent_of(item: Item) -> AgentRef | None:
    """Return the agent that an item or a response came from."""
    created = item.get("created_by")
    for source in (item.get("agent_reference"), created.get("agent") if isinstance(created, dict) else None):
        if isinstance(source, dict) and source.get("name"):
            version = source.get("version")
            return AgentRef(str(source["name"]), None if version is None else str(version))
    return None


def entry(item: Item) -> Entry:
    """Return an item as a line of the transcript."""
    kind = str(item.get("type") or "message")
    line = Entry(kind, "", id=item.get("id"), call_id=item.get("call_id"), response_id=response_of(item), raw=item)
    if kind == "message":
        role = str(item.get("role"))
        return line._replace(kind="agent" if role == "assistant" else role, text=message_text(item))
    if kind == "function_call":
        return line._replace(kind="call", text=arguments_text(item), function=str(item.get("name") or ""))
    if kind == "function_call_output":
        output = item.get("output")
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
        return line._replace(kind="output", text=text)
    return line._replace(text=json.dumps(item, ensure_ascii=False))

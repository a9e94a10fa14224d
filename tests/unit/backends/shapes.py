"""The service's objects as the tests script them (foundry.md §4), and requests to go with them."""

from __future__ import annotations

import json
from typing import Any

from agentfn.backends.protocol import Start, Submit
from agentfn.model import AgentRef, Call, Outcome, Stamp

AGENT = AgentRef("demo", "3")
STAMP = Stamp("run_1", "rsc_1")
CONVERSATIONS = "/openai/v1/conversations"
RESPONSES = "/openai/v1/responses"
ITEMS = f"{CONVERSATIONS}/conv_1/items"

Item = dict[str, Any]


def call_item(call_id: str = "call_A1", response: str = "resp_1", *, city: str = "Oslo") -> Item:
    arguments = json.dumps({"city": city})
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": "get_weather",
        "arguments": arguments,
        "response_id": response,
        "agent_reference": {"type": "agent_reference", "name": "demo", "version": "3"},
    }


def output_item(call_id: str = "call_A1", output: str = "sunny") -> Item:
    return {"type": "function_call_output", "id": f"fco_{call_id}", "call_id": call_id, "output": output}


def said(text: str, *, role: str = "assistant", response: str | None = "resp_1") -> Item:
    kind = "output_text" if role == "assistant" else "input_text"
    extra = {"response_id": response} if role == "assistant" else {}
    return {"type": "message", "id": f"msg_{text}", "role": role, "content": [{"type": kind, "text": text}], **extra}


def response(*output: Item, identity: str = "resp_1", status: str = "completed", **more: Any) -> Item:
    usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    return {
        "id": identity,
        "object": "response",
        "status": status,
        "created_at": 1_799_999_990,
        "output": list(output),
        "usage": usage,
        "agent_reference": {"type": "agent_reference", "name": "demo", "version": "3"},
        **more,
    }


def start(message: str = "Weather in Oslo?", **more: Any) -> Start:
    return Start(
        **{"agent": AGENT, "message": message, "turn": "turn_1", "conversation": "conv_1", "stamp": STAMP} | more
    )


def submit(*calls: tuple[str, Outcome], **more: Any) -> Submit:
    given = calls or (("call_A1", Outcome(output="sunny")),)
    outcomes = tuple((Call(call, "get_weather", "{}"), outcome) for call, outcome in given)
    return Submit(
        **{
            "agent": AGENT,
            "conversation": "conv_1",
            "turn": "turn_1",
            "asked_by": "resp_1",
            "outcomes": outcomes,
        }
        | more
    )

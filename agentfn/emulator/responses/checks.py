"""What a request for a response must hold before anything is run (foundry.md §4.2, §4.3, §5.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentfn.emulator.http import ApiError, openai_error
from agentfn.emulator.models.prompt import output_text
from agentfn.emulator.responses.errors import payload
from agentfn.emulator.responses.items import waiting_calls
from agentfn.emulator.responses.limits import metadata_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentfn.emulator.responses.items import Item
    from agentfn.emulator.store import Store

#: A run, waiting for outputs included, lives this long (foundry.md §8).
RUN_SECONDS = 600.0
#: The OpenAI schema's limit for an output (foundry.md §8, an inference there).
LONGEST_OUTPUT = 10_485_760

_NOT_WITH_AGENT = (
    "model",
    "instructions",
    "tools",
    "tool_choice",
    "temperature",
    "top_p",
    "text",
    "reasoning",
)
_TYPES: dict[str, tuple[type, ...]] = {
    "agent_reference": (dict,),
    "agent": (dict,),
    "input": (str, list),
    "conversation": (str, dict),
    "previous_response_id": (str,),
    "stream": (bool,),
    "background": (bool,),
    "store": (bool,),
    "metadata": (dict,),
    "structured_inputs": (dict,),
    "include": (list,),
    "tools": (list,),
    "model": (str,),
}
_TYPE_NAMES = {dict: "an object", str: "a string", list: "an array", bool: "a boolean"}


def check_types(body: dict[str, Any]) -> None:
    """Refuse fields of the wrong type, all of them at once; null counts as absent, unknown fields are ignored."""
    details = [
        {
            "code": "ValidationError",
            "message": f"Expected {' or '.join(_TYPE_NAMES[kind] for kind in kinds)}.",
            "param": field,
            "type": "error",
        }
        for field, kinds in _TYPES.items()
        if body.get(field) is not None and not isinstance(body[field], kinds)
    ]
    if details:
        raise payload("Invalid payload", param=str(details[0]["param"]), details=details)
    metadata_of(body)


def conversation_of(body: dict[str, Any]) -> str | None:
    """Return the id of the conversation that a request is on."""
    given = body.get("conversation")
    identity = given.get("id") if isinstance(given, dict) else given
    if given is not None and not isinstance(identity, str):
        raise payload("conversation must be an id, or an object with one", param="conversation")
    if identity is not None and body.get("previous_response_id") is not None:
        # The service's own words are not recorded (foundry.md §4.3).
        message = "conversation and previous_response_id exclude each other; send one of them."
        raise ApiError(400, openai_error(message, param="previous_response_id"))
    return identity


def agent_of(body: dict[str, Any], *, loose: bool) -> tuple[str, str | None] | None:
    """Return the name and version of the agent that a request names; None where it names a model instead."""
    if body.get("agent") is not None and not loose:
        raise payload("The 'agent' property is deprecated. Use 'agent_reference' instead.", param="agent")
    field = "agent" if body.get("agent_reference") is None else "agent_reference"
    reference = body.get(field)
    if reference is None:
        require_model(body)
        return None
    if reference.get("type") != "agent_reference":
        raise payload(f"{field}.type must be 'agent_reference'", param=f"{field}.type")
    name, version = reference.get("name"), reference.get("version")
    if not isinstance(name, str):
        raise payload(f"{field}.name must be a string", param=f"{field}.name")
    if isinstance(version, bool) or not isinstance(version, (str, int, type(None))):
        raise payload(f"{field}.version must be a string", param=f"{field}.version")
    extra = [field for field in _NOT_WITH_AGENT if body.get(field) is not None]
    if extra:
        details = [
            {"code": "ValidationError", "message": "Not allowed when agent is specified.", "param": f, "type": "error"}
            for f in extra
        ]
        raise payload("Invalid payload", details=details)
    return name, None if version is None else str(version)


def require_model(body: dict[str, Any]) -> None:
    """Refuse a request that names neither agent nor model."""
    if not body.get("model"):
        error = openai_error("Missing required parameter: 'model'.", param="model", code="missing_required_parameter")
        raise ApiError(400, error)


def check_outputs(store: Store, history: Sequence[Item], given: Sequence[Item]) -> list[Item]:
    """Return the request's items without calls that the history has; refuse what does not fit the calls that wait.

    Outputs must be for calls that wait, in time, and leave none unanswered.
    """
    waiting = waiting_calls(history)
    fresh: list[Item] = []
    for item in given:
        if item["type"] == "function_call":
            # A documented sample sends calls back beside their outputs (foundry.md sources); they are not kept twice.
            if item["call_id"] in waiting:
                continue
            waiting[item["call_id"]] = item
        elif item["type"] == "function_call_output":
            call = waiting.pop(item["call_id"], None)
            if call is None:
                # Also for a call that has its output already: an inference, the service's words are not recorded.
                message = f"No tool call found for function call output with call_id {item['call_id']}."
                raise ApiError(400, openai_error(message, param="input"))
            _check_time(store, call)
            _check_length(item)
        fresh.append(item)
    for call_id in waiting:
        message = f"No tool output found for function call {call_id}."
        raise ApiError(400, openai_error(message, param="input"))
    return fresh


def _check_time(store: Store, call: Item) -> None:
    row = store.one("SELECT created_at FROM response WHERE id = ?", call.get("response_id"))
    if row is not None and store.now() > row[0] + RUN_SECONDS:
        # The code is the embedded service's own: no recording shows what the real one says (foundry.md §5.2).
        message = (
            f"The run that asked for {call['call_id']} has expired: runs expire {int(RUN_SECONDS // 60)} minutes after"
            " their creation and do not accept tool outputs afterwards."
        )
        raise ApiError(400, openai_error(message, param="input", code="run_expired"))


def _check_length(item: Item) -> None:
    length = len(output_text(item))
    if length > LONGEST_OUTPUT:
        message = (
            f"Invalid 'input': string too long. Expected a string with maximum length {LONGEST_OUTPUT}, but got a"
            f" string with length {length} instead."
        )
        raise ApiError(400, openai_error(message, param="input", code="string_above_max_length"))

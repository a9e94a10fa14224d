"""Runs the documented flows of the openai SDK, unmodified, against the service its environment names; prints what it saw.

With the argument ``race`` it only runs a helper whose first result comes before the call is registered.
"""

import json
import sys
from typing import Any

import openai

client: Any = openai.OpenAI()
agents = client.beta.agents
once = client.with_options(max_retries=0).beta.agents  # a conflict would be sent three times
TOOL = {
    "type": "function",
    "name": "get_horoscope",
    "description": "Get today's horoscope for an astrological sign.",
    "parameters": {
        "type": "object",
        "properties": {"sign": {"type": "string", "description": "An astrological sign like Taurus or Aquarius"}},
        "required": ["sign"],
        "additionalProperties": False,
    },
}
ASKED = "What is my horoscope? I am an Aquarius."
seen: dict[str, object] = {}


def horoscope(arguments):
    return {"horoscope": f"{arguments['sign']}: a baby otter."}


def refusal(call):
    """Return the error that a call ends in."""
    try:
        call()
    except openai.APIStatusError as exc:
        return [exc.status_code, exc.type, exc.code]
    return None


saved = agents.create(model="gpt-5-mini", name="support", tools=[TOOL, {"type": "tool_search"}], metadata={"k": "v"})


def ended(stream):
    """Return the text in which a helper's stream ends."""
    with stream as running:
        return running.get_final_result().output_text


if sys.argv[1:] == ["race"]:
    stream = agents.sessions.create(
        environment={"type": "none"},
        agent_id=saved.id,
        input=ASKED,
        stream=True,
        tool_handlers={"get_horoscope": horoscope},
    )
    print(json.dumps({"answer": ended(stream)}))
    sys.exit()

# The flow by its single calls.
session = agents.sessions.create(environment={"type": "none"}, agent_id=saved.id, input=ASKED, metadata={"p": "x y"})
seen["created"] = [session.status, session.required_actions, session.usage]
kinds = []
with agents.sessions.events.stream(session.id, include_obfuscation=False) as events:
    for event in events:
        kinds.append(event.type)
        if event.type == "agent.session.requires_action":
            seen["deletion_while_waiting"] = refusal(lambda: once.sessions.delete(session.id))
            (action,) = agents.sessions.retrieve(session.id).required_actions
            seen["arguments"] = action.arguments
            seen["turn_while_waiting"] = agents.sessions.turns.retrieve(action.turn_id, session_id=session.id).status
            result = {"type": "agent.session.input.tool_result", "turn_id": action.turn_id, "call_id": action.call_id}
            result |= {"success": True, "output": json.dumps(horoscope(action.arguments))}
            for _ in range(2):  # the same result again is no other result
                seen["returned"] = agents.sessions.events.create(session.id, events=[result])
            changed = {**result, "output": "something else"}
            seen["changed"] = refusal(lambda events=[changed]: once.sessions.events.create(session.id, events=events))
        if event.type == "agent.session.idle":
            break
seen["kinds"] = kinds
items = list(agents.sessions.items.list(session.id, order="asc", limit=2))
seen["items"] = [item.type for item in items]
seen["answer"] = items[-1].content[0].text
(turn,) = agents.sessions.turns.list(session.id)
seen["turn"] = [turn.status, turn.usage is not None]
seen["turn_items"] = [
    item.type for item in agents.sessions.turns.items.list(turn.id, session_id=session.id, order="asc")
]
seen["found_by_metadata"] = [s.id == session.id for s in agents.sessions.list(agent_id=saved.id, metadata={"p": "x y"})]

# The helpers, which run the functions themselves.
helper = agents.sessions.stream(session.id, input=ASKED, tool_handlers={"get_horoscope": horoscope})
seen["helper"] = ended(helper)
created = agents.sessions.create(
    environment={"type": "none"},
    agent_id=saved.id,
    input=ASKED,
    stream=True,
    tool_handlers={"get_horoscope": horoscope},
)
seen["created_helper"] = ended(created)


def broken(arguments):
    raise LookupError("no stars today")


failing = agents.sessions.stream(session.id, input=ASKED, tool_handlers={"get_horoscope": broken})
seen["failing_helper"] = ended(failing)

# Changing and removing.
seen["renamed"] = agents.update(saved.id, name="renamed").name
seen["session_metadata"] = agents.sessions.update(session.id, metadata={"a": "b"}).metadata
for one in agents.sessions.list(agent_id=saved.id):
    seen["session_deleted"] = agents.sessions.delete(one.id).deleted
seen["deleted_twice"] = agents.sessions.delete(session.id).deleted
seen["gone"] = refusal(lambda: agents.sessions.retrieve(session.id))
seen["agent_deleted"] = agents.delete(saved.id).deleted

# Responses, by response and in a conversation.
FUNCTION = {**TOOL, "strict": True}


def outputs(response):
    return [
        {
            "type": "function_call_output",
            "call_id": item.call_id,
            "output": json.dumps(horoscope(json.loads(item.arguments))),
        }
        for item in response.output
        if item.type == "function_call"
    ]


first = client.responses.create(model="gpt-5-mini", tools=[FUNCTION], input=ASKED)
second = client.responses.create(
    model="gpt-5-mini", tools=[FUNCTION], input=outputs(first), previous_response_id=first.id
)
seen["by_response"] = second.output_text
conversation = client.conversations.create(metadata={"k": "v"})
first = client.responses.create(model="gpt-5-mini", tools=[FUNCTION], input=ASKED, conversation=conversation.id)
with client.responses.stream(
    model="gpt-5-mini", tools=[FUNCTION], input=outputs(first), conversation=conversation.id
) as stream:
    for _event in stream:
        pass
    seen["by_conversation"] = stream.get_final_response().output_text
listed = client.conversations.items.list(conversation.id, order="asc")
seen["conversation_items"] = [item.type for item in listed]
seen["unanswered"] = refusal(
    lambda: client.responses.create(model="m", input="and?", previous_response_id=first.id, tools=[FUNCTION])
)
seen["conversation_deleted"] = client.conversations.delete(conversation.id).deleted
print(json.dumps(seen))

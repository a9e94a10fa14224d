"""Parts of programs as their authors would write them for the real service: the unmodified openai SDK, and its environment.

The argument names the part to run; it prints one JSON document of what it saw.
"""

import asyncio
import json
import sys
from typing import Any

import openai

client: Any = openai.OpenAI()
agents = client.beta.agents
once = client.with_options(max_retries=0)  # what is refused is asked for once
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "name": "get_weather", "description": "Weather in a city.", "parameters": CITY}
NEW = {"environment": {"type": "none"}, "input": "Weather in Oslo and Bergen?"}
INLINE = {**NEW, "agent": {"model": "gpt-5-mini", "tools": [TOOL]}}
ran: list[str] = []


def get_weather(arguments):
    """Answer, and remember for which city."""
    ran.append(arguments["city"])
    return {"weather": f"sunny in {arguments['city']}"}


HANDLERS = {"tool_handlers": {"get_weather": get_weather}}


def result(action, output):
    event = {"type": "agent.session.input.tool_result", "turn_id": action.turn_id, "call_id": action.call_id}
    return {**event, "success": True, "output": output}


def refusal(call):
    """Return what the SDK makes of a refusal."""
    try:
        call()
    except openai.APIStatusError as exc:
        return [type(exc).__name__, exc.status_code, exc.type, exc.code, exc.param]
    return None


def flow():
    """The documented single calls, with two calls in one turn and pages of one entry."""
    saved = agents.create(model="gpt-5-mini", name="weather", tools=[TOOL], metadata={"k": "v"})
    session = agents.sessions.create(**NEW, agent_id=saved.id, metadata={"run": "x y"})
    partly, kinds = [], []
    with agents.sessions.events.stream(session.id) as events:
        for event in events:
            kinds.append(event.type.removeprefix("agent.session."))
            if event.type == "agent.session.requires_action":
                first, second = agents.sessions.retrieve(session.id).required_actions
                for action in (second, first):
                    agents.sessions.events.create(session.id, events=[result(action, action.arguments["city"])])
                    state = agents.sessions.retrieve(session.id)
                    partly.append([state.status, [left.arguments for left in state.required_actions]])
            if event.type == "agent.session.idle":
                break
    agents.sessions.events.create(
        session.id,
        events=[
            {
                "type": "agent.session.input.message",
                "input": [{"role": "user", "content": [{"type": "input_text", "text": "Thanks."}]}],
            }
        ],
    )
    turns = list(agents.sessions.turns.list(session.id, limit=1, order="asc"))
    items = list(agents.sessions.items.list(session.id, limit=1, order="asc"))
    others = [agents.create(model="gpt-5-mini").id for _ in range(2)]
    seen = {
        "partly": partly,
        "kinds": [kind for kind in kinds if kind.startswith("turn.item") or "." not in kind],
        "turns": [turn.status for turn in turns],
        "items": [item.type for item in items],
        "agents": [agent.id for agent in agents.list(limit=1)] == [*others[::-1], saved.id],
        "found": [found.id == session.id for found in agents.sessions.list(metadata={"run": "x y"}, limit=1)],
        "deleted": agents.sessions.delete(session.id).deleted,
    }
    for agent in [saved.id, *others]:
        agents.delete(agent)
    return {**seen, "left": [agent.id for agent in agents.list()]}


def helpers():
    """Both helpers, iterated and not; each runs two functions."""
    with agents.sessions.create(**INLINE, stream=True, **HANDLERS) as stream:
        collected = stream.with_result_collection()
        kinds = [event.type for event in collected]
        created = collected.get_final_result()
    fresh = agents.sessions.create(**INLINE, stream=True, **HANDLERS).get_final_result()
    with agents.sessions.stream(created.session_id, input="Once more?", **HANDLERS) as stream:
        again = stream.get_final_result()
    (first, second) = agents.sessions.turns.list(created.session_id, order="asc")
    return {
        "ended": kinds[-1],
        "texts": [one.output_text for one in (created, fresh, again)],
        "turns": [created.turn_id, again.turn_id] == [first.id, second.id],
        "phases": [message.phase for message in again.messages],
        "ran": ran,
    }


def race():
    """A helper returns its result before the call takes one; then the other helper does."""
    created = agents.sessions.create(**INLINE, stream=True, **HANDLERS).get_final_result()
    with agents.sessions.stream(created.session_id, input="Once more?", **HANDLERS) as stream:
        again = stream.get_final_result()
    return {"texts": [created.output_text, again.output_text], "ran": ran}


def broken():
    """A stream breaks; what it was about goes on."""
    session, seen = None, []
    try:
        with agents.sessions.create(**INLINE, stream=True) as events:
            for event in events:
                session = session or event.session.id
                seen.append(event.type.removeprefix("agent.session."))
    except openai.APIConnectionError as exc:
        seen.append(type(exc).__name__)
    with agents.sessions.events.stream(session) as events:
        (action,) = agents.sessions.retrieve(session).required_actions
        agents.sessions.events.create(session, events=[result(action, "sunny")])
        for event in events:
            if event.type == "agent.session.turn.output_text.done":
                text = event.text
            if event.type == "agent.session.idle":
                break
    with agents.sessions.events.stream(session) as events:
        agents.sessions.delete(session)
        rest = [event.type for event in events]  # the deletion ends the stream
    return {"seen": seen, "text": text, "rest": rest}


def refused():
    """The refusals as the SDK's exceptions."""
    without_beta = {"extra_headers": {"OpenAI-Beta": "agents=v2"}}
    return {
        "beta": refusal(lambda: once.beta.agents.list(**without_beta)),
        "missing": refusal(lambda: once.beta.agents.create(model=None)),
        "nested": refusal(
            lambda: once.beta.agents.sessions.create(**NEW, agent={"model": "m", "tools": [{**TOOL, "strict": True}]})
        ),
        "absent": refusal(lambda: once.beta.agents.sessions.retrieve("sess_x")),
        "busy": refusal(lambda: once.beta.agents.sessions.create(**INLINE)),
    }


def retried():
    """The SDK asks again after 503 and after a lost answer; the second leaves a session that nobody knows of."""
    session = agents.sessions.create(**INLINE, metadata={"run": "r"})
    return {
        "known": session.status,
        "sessions": len(list(agents.sessions.list(metadata={"run": "r"}))),
    }


def in_async():
    """The asynchronous client's helper, with a handler that is a coroutine."""

    async def handler(arguments):
        return get_weather(arguments)

    async def run():
        async with openai.AsyncOpenAI() as other:
            sessions: Any = other.beta.agents.sessions
            stream = await sessions.create(**INLINE, stream=True, tool_handlers={"get_weather": handler})
            created = await stream.get_final_result()
            async with sessions.stream(
                created.session_id, input="Once more?", tool_handlers={"get_weather": handler}
            ) as again:
                return [created.output_text, (await again.get_final_result()).output_text]

    return {"texts": asyncio.run(run()), "ran": ran}


def responses():
    """The other API of the same SDK: by response, then in a conversation, whole and streamed."""
    given = {"model": "gpt-5-mini", "tools": [{**TOOL, "strict": False}]}

    def outputs(response):
        calls = [item for item in response.output if item.type == "function_call"]
        return [
            {
                "type": "function_call_output",
                "call_id": call.call_id,
                "output": json.dumps(get_weather(json.loads(call.arguments))),
            }
            for call in calls
        ]

    first = client.responses.create(**given, input=NEW["input"])
    second = client.responses.create(**given, input=outputs(first), previous_response_id=first.id)
    conversation = client.conversations.create(items=[{"role": "user", "content": "Hello."}])
    asked = client.responses.create(**given, input=NEW["input"], conversation=conversation.id)
    half = outputs(asked)[:1]
    unanswered = refusal(lambda: once.responses.create(**given, input=half, conversation=conversation.id))
    both = refusal(
        lambda: once.responses.create(**given, input="x", conversation=conversation.id, previous_response_id=second.id)
    )
    with client.responses.stream(**given, input=outputs(asked), conversation=conversation.id) as stream:
        deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
        answered = stream.get_final_response()
    items = client.conversations.items.list(conversation.id, order="asc", limit=2)
    return {
        "by_response": second.output_text,
        "in_conversation": answered.output_text,
        "streamed": "".join(deltas) == answered.output_text,
        "unanswered": unanswered,
        "both": both,
        "items": [item.type for item in items],
    }


print(json.dumps(globals()[sys.argv[1]]()))
client.close()

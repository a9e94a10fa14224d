"""A program as its author would write it for the real service: unmodified SDKs, and nothing but environment variables.

The test runs it in a process of its own; it prints one JSON document of what it saw.
"""

import json
import os
import sys

import openai
from azure.ai.projects import AIProjectClient
from azure.ai.projects.models import FunctionTool, PromptAgentDefinition
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.identity import DefaultAzureCredential

PARAMETERS = {
    "type": "object",
    "properties": {"sign": {"type": "string", "description": "An astrological sign like Taurus or Aquarius"}},
    "required": ["sign"],
    "additionalProperties": False,
}
QUESTION = "What is my horoscope? I am an Aquarius."

project = AIProjectClient(endpoint=os.environ["FOUNDRY_PROJECT_ENDPOINT"], credential=DefaultAzureCredential())
client = project.get_openai_client()
seen: dict[str, object] = {}


def definition(**changes):
    tool = FunctionTool(
        name="get_horoscope",
        parameters=changes.pop("parameters", PARAMETERS),
        description="Get today's horoscope for an astrological sign.",
        strict=True,
    )
    return PromptAgentDefinition(model="gpt-5-mini", instructions="You help.", tools=[tool], **changes)


def reference(name):
    return {"extra_body": {"agent_reference": {"name": name, "type": "agent_reference"}}}


def outputs(response):
    """Run the function for every call, as the documentation does."""
    return [
        {
            "type": "function_call_output",
            "call_id": item.call_id,
            "output": json.dumps({"horoscope": f"{json.loads(item.arguments)['sign']}: a baby otter."}),
        }
        for item in response.output
        if item.type == "function_call"
    ]


def documented(agent):
    """The documented flow: previous_response_id, then the same on a conversation."""
    response = client.responses.create(input=QUESTION, **reference(agent.name))
    seen["by_response"] = client.responses.create(
        input=outputs(response), previous_response_id=response.id, **reference(agent.name)
    ).output_text
    conversation = client.conversations.create(
        items=[{"type": "message", "role": "user", "content": QUESTION}], metadata={"k": "v"}
    )
    response = client.responses.create(conversation=conversation.id, input=[], **reference(agent.name))
    response = client.responses.create(conversation=conversation.id, input=outputs(response), **reference(agent.name))
    seen["by_conversation"] = response.output_text
    seen["items"] = [item.type for item in client.conversations.items.list(conversation.id, order="asc", limit=2)]
    seen["retrieved"] = client.responses.retrieve(response.id).output_text == response.output_text
    seen["input_items"] = [item.type for item in client.responses.input_items.list(response.id)]
    seen["metadata"] = client.conversations.update(conversation.id, metadata={"a": "b"}).metadata
    client.responses.delete(response.id)
    seen["conversation_deleted"] = client.conversations.delete(conversation.id).deleted


def streamed(agent):
    with client.responses.create(input=QUESTION, stream=True, **reference(agent.name)) as stream:
        events = list(stream)
    seen["stream_first"] = [event.type for event in events[:2]]
    response = events[-1].response
    arguments = [event.delta for event in events if event.type == "response.function_call_arguments.delta"]
    seen["stream_arguments"] = "".join(arguments) == response.output[0].arguments
    again = {"input": outputs(response), "previous_response_id": response.id, "stream": True}
    with client.responses.create(**again, **reference(agent.name)) as stream:
        seen["stream_text"] = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
    queued = client.responses.create(input=QUESTION, background=True, **reference(agent.name))
    seen["cancelled"] = [queued.status, client.responses.cancel(queued.id).status]


def managed(agent):
    """Versions, lists with the SDK's extra page, and deletions."""
    second = project.agents.create_version(agent_name=agent.name, definition=definition(), metadata={"m": "1"})
    seen["versions"] = [version.version for version in project.agents.list_versions(agent.name)]
    seen["latest"] = project.agents.get(agent.name).versions.latest.version == second.version
    seen["listed"] = [found.name for found in project.agents.list(limit=1, kind="prompt", order="asc")]
    project.agents.delete_version(agent_name=agent.name, agent_version=second.version)
    project.agents.delete(agent.name)
    seen["gone"] = [found.name for found in project.agents.list()]


def error_of(kind, call):
    try:
        call()
    except kind as exc:
        return getattr(exc, "code", None) or exc.error.code
    return "no error"


def refused():
    seen["missing_agent"] = error_of(ResourceNotFoundError, lambda: project.agents.get("nobody"))
    bad_name = lambda: project.agents.create_version(agent_name="a_b", definition=definition())  # noqa: E731
    seen["bad_name"] = error_of(HttpResponseError, bad_name)
    project.agents.create_version(agent_name="lax", definition=definition(parameters={"type": "object"}))
    ask = lambda name, **more: client.responses.create(input="x", **{**reference(name), **more})  # noqa: E731
    seen["strict"] = error_of(openai.BadRequestError, lambda: ask("lax"))
    seen["unknown_agent"] = error_of(openai.NotFoundError, lambda: ask("nobody"))
    old = {"extra_body": {"agent": {"name": "lax", "type": "agent_reference"}}}
    seen["old_field"] = error_of(openai.BadRequestError, lambda: ask("lax", **old))
    seen["model_too"] = error_of(openai.BadRequestError, lambda: ask("lax", model="m"))
    project.agents.delete("lax")


made = project.agents.create_version(agent_name="MyAgent", definition=definition())
documented(made)
streamed(made)
refused()
managed(made)
json.dump(seen, sys.stdout)
client.close()
project.close()

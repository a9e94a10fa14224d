"""The yardstick: the six requests of one whole job, sent by a bare httpx script. Usage: bare_job.py ENDPOINT."""

import json
import sys

import httpx

endpoint = sys.argv[1].rstrip("/")
client = httpx.Client(headers={"Authorization": "Bearer local"})
parameters = {
    "type": "object",
    "properties": {"sign": {"type": "string", "description": "An astrological sign like Taurus or Aquarius"}},
    "required": ["sign"],
    "additionalProperties": False,
}
tool = {"type": "function", "name": "get_horoscope", "description": "Get a horoscope.", "parameters": parameters}
definition = {"kind": "prompt", "model": "gpt-5-mini", "instructions": "Help.", "tools": [tool]}


def send(method, path, body=None):
    """Send one request and return its JSON."""
    answer = client.request(method, endpoint + path, json=body)
    answer.raise_for_status()
    return answer.json()


agent = send("POST", "/agents/bare-job/versions?api-version=v1", {"definition": definition})
reference = {"type": "agent_reference", "name": agent["name"], "version": agent["version"]}
conversation = send("POST", "/openai/v1/conversations", {})["id"]
asked = send(
    "POST",
    "/openai/v1/responses",
    {"agent_reference": reference, "conversation": conversation, "input": "What is my horoscope? I am an Aquarius."},
)
call = next(item for item in asked["output"] if item["type"] == "function_call")
output = {"type": "function_call_output", "call_id": call["call_id"], "output": json.dumps({"horoscope": "otter"})}
answer = send(
    "POST",
    "/openai/v1/responses",
    {"agent_reference": reference, "conversation": conversation, "input": [output]},
)
print(answer["output"][-1]["content"][0]["text"])
send("DELETE", f"/openai/v1/conversations/{conversation}")
send("DELETE", f"/agents/bare-job/versions/{agent['version']}?api-version=v1")

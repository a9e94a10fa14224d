"""The documented curl commands, byte for byte: played with --loose, refused in the service's words without it.

The documentation still names the agent by the field `agent`, which the service refuses today (foundry.md §4.2).
"""

from __future__ import annotations

from typing import Any

import httpx
import pytest

CREATE = """{
    "name": "weather-function-calling",
    "description": "Agent with function calling",
    "definition": {
      "kind": "prompt",
      "model": "gpt-5-mini",
      "instructions": "You are a helpful agent.",
      "tools": [
        {
          "type": "function",
          "name": "getCurrentWeather",
          "description": "Get the current weather in a location",
          "parameters": {
            "type": "object",
            "properties": {
              "location": {"type": "string", "description": "The city and state e.g. San Francisco, CA"},
              "unit": {"type": "string", "enum": ["c", "f"]}
            },
            "required": ["location"]
          }
        }
      ]
    }
  }"""
QUESTION = {
    "items": [
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "What's the weather in Dar es Salaam, Tanzania?"}],
        }
    ]
}
AGENT = {"agent": {"type": "agent_reference", "name": "weather-function-calling"}}


class Curl:
    """Sends what curl sends."""

    def __init__(self, endpoint: str, token: str) -> None:
        self._client = httpx.Client(
            base_url=endpoint, headers={"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        )

    def __call__(self, method: str, path: str, body: str | dict[str, Any] | None = None) -> httpx.Response:
        if isinstance(body, dict):
            return self._client.request(method, path, json=body)
        return self._client.request(method, path, content=body)

    def close(self) -> None:
        self._client.close()


@pytest.fixture
def curl(serve):
    opened: list[Curl] = []

    def start(*options: str) -> Curl:
        env = serve(*options).env
        opened.append(Curl(env["FOUNDRY_PROJECT_ENDPOINT"], env["AGENT_TOKEN"]))
        return opened[-1]

    yield start
    for client in opened:
        client.close()


def test_the_documented_commands_with_loose(curl):
    send = curl("--loose")
    for _ in range(2):  # also where the agent is there already
        made = send("POST", "/agents?api-version=v1", CREATE)
        assert (made.status_code, made.json()["object"]) == (200, "agent")
    conversation = send("POST", "/openai/v1/conversations", QUESTION).json()["id"]
    asked = send("POST", "/openai/v1/responses", {**AGENT, "conversation": conversation, "input": []}).json()
    (call,) = asked["output"]
    assert (call["type"], call["name"]) == ("function_call", "getCurrentWeather")
    text = '{"temperature": "30", "unit": "c", "description": "Sunny"}'
    answer = {"type": "function_call_output", "call_id": call["call_id"], "output": text}
    done = send("POST", "/openai/v1/responses", {**AGENT, "conversation": conversation, "input": [answer]}).json()
    assert done["output"][0]["content"][0]["text"] == f"getCurrentWeather gave {text}"
    assert send("DELETE", "/agents/weather-function-calling?api-version=v1").json()["deleted"] is True
    assert send("DELETE", f"/openai/v1/conversations/{conversation}").json()["deleted"] is True


def test_the_documented_commands_without_loose(curl):
    send = curl()
    assert send("POST", "/agents?api-version=v1", CREATE).status_code == 200
    again = send("POST", "/agents?api-version=v1", CREATE)
    assert (again.status_code, again.json()["error"]["code"]) == (409, "conflict")
    conversation = send("POST", "/openai/v1/conversations", QUESTION).json()["id"]
    refused = send("POST", "/openai/v1/responses", {**AGENT, "conversation": conversation, "input": []})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid_payload")
    assert "Use 'agent_reference' instead." in refused.json()["error"]["message"]


def test_without_a_token(curl):
    send = curl()
    send._client.headers.pop("authorization")
    refused = send("GET", "/agents?api-version=v1")
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")

"""The Agents API's face: its states, orders, refusals and races (openai-agents.md §1 to §6)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from tests.unit.emulator.in_process import Reply

HEADERS = {"openai-beta": "agents=v1", "content-type": "application/json"}
TOOL = {
    "type": "function",
    "name": "get_weather",
    "description": "Weather in a city.",
    "parameters": {"type": "object"},
}
ASK = {"call": {"get_weather": {"city": "Oslo"}}}
TWO = {"call": [{"get_weather": {"city": "Oslo"}}, {"get_weather": {"city": "Bergen"}}]}
SAY = {"say": "Sunny in Oslo."}


class Api(NamedTuple):
    """The service as a client of the Agents API sees it."""

    service: Any

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        given = {**HEADERS, **{name.replace("_", "-"): value for name, value in headers.items()}}
        reply: Reply = self.service(method, f"/v1{path}", body, given)
        return reply

    def agent(self, **more: Any) -> str:
        made = self("POST", "/agents", {"model": "m", "tools": [TOOL], **more})
        assert made.status == 201, made.text
        identity: str = made.json["id"]
        return identity

    def open(self, said: str = "Weather?", **more: Any) -> str:
        body = {"environment": {"type": "none"}, "agent_id": self.agent(), "input": said, **more}
        made = self("POST", "/agents/sessions", body)
        assert made.status == 201, made.text
        identity: str = made.json["id"]
        return identity

    def state(self, session: str) -> dict[str, Any]:
        found: dict[str, Any] = self("GET", f"/agents/sessions/{session}").json
        return found

    def send(self, session: str, *events: dict[str, Any], **headers: str) -> Reply:
        return self("POST", f"/agents/sessions/{session}/events", {"events": list(events)}, **headers)

    def answer(self, session: str, index: int = 0, **result: Any) -> Reply:
        action = self.state(session)["required_actions"][index]
        return self.send(session, result_of(action, **result))

    def items(self, session: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self("GET", f"/agents/sessions/{session}/items?order=asc").json["data"]
        return found


def result_of(action: dict[str, Any], **result: Any) -> dict[str, Any]:
    given = {"success": True, "output": "sunny"} | result
    event = {"type": "agent.session.input.tool_result", "turn_id": action["turn_id"], "call_id": action["call_id"]}
    return event | given


def message(text: str) -> dict[str, Any]:
    content = [{"type": "input_text", "text": text}]
    return {"type": "agent.session.input.message", "input": [{"role": "user", "content": content}]}


@pytest.fixture
def api(make_service):
    def make(*steps: Any, **options: Any) -> Api:
        return Api(make_service(*steps, **options))

    return make


# Headers and bodies --------------------------------------------------------------------------------------------------


def test_the_beta_is_looked_at_before_the_key_and_the_key_before_the_body(make_service):
    service = make_service(require_token=True)
    without = service("POST", "/v1/agents", b"{", {})
    assert (without.status, without.error["type"], without.error["code"]) == (400, "invalid_beta", "invalid_beta")
    no_key = service("POST", "/v1/agents", b"{", {"openai-beta": "agents=v1"})
    assert (no_key.status, no_key.error["code"]) == (401, None)
    no_type = service("POST", "/v1/agents", {}, {"openai-beta": "agents=v1", "authorization": "Bearer x"})
    assert no_type.error["message"] == "expected request with Content-Type: application/json"


@pytest.mark.parametrize(
    ("body", "param", "told"),
    [
        ({}, "model", "Missing required parameter: 'model'."),
        ({"model": "m", "temperature": 1}, "temperature", "Unknown parameter: 'temperature'."),
        ({"model": 3}, "model", "Invalid type for 'model': expected a string, but got an integer instead."),
        ({"model": "m", "tools": [{**TOOL, "strict": True}]}, "tools[0].strict", "Unknown parameter"),
        ({"model": "m", "tools": [{"type": "function", "name": "f"}]}, "tools[0].description", "Missing required"),
        ({"model": "m", "tools": [TOOL, TOOL]}, "tools", "duplicate function tool name: get_weather"),
        ({"model": "m", "tools": [{"type": "tool_search"}] * 2}, "tools", "duplicate tool_search tool"),
        (
            {"model": "m", "tools": [{**TOOL, "parameters": {"type": "string"}}]},
            "tools[0].parameters",
            "got 'type: \"string\"'",
        ),
        (
            {"model": "m", "reasoning": {"effort": "huge"}},
            "reasoning.effort",
            "Invalid value: 'huge'. Supported values are:",
        ),
        ({"model": "m", "metadata": {"k": 1}}, "metadata.k", "expected a string"),
        (b'{"model": "m", "model": "n"}', None, "duplicate JSON key 'model'"),
        (b"{", None, "Invalid body"),
        (b"[]", None, "expected an object"),
    ],
)
def test_a_body_that_breaks_a_rule_is_refused_with_its_place(api, body, param, told):
    refused = api()("POST", "/agents", body)
    assert refused.status == 400
    assert set(refused.error) == {"type", "code", "message", "param"}
    assert told in refused.error["message"]
    assert refused.error["param"] == param


def test_an_agent_is_completed_changed_and_deleted(api):
    here = api()
    identity = here.agent(name="a", instructions="Help.", metadata={"k": "v"})
    shown = here("GET", f"/agents/{identity}").json
    assert shown["reasoning"] == {"effort": "medium", "summary": None}
    assert shown["tools"] == [{**TOOL, "defer_loading": False}]
    changed = here("POST", f"/agents/{identity}", {"name": None, "metadata": {"n": "w"}}).json
    assert (changed["name"], changed["instructions"], changed["metadata"]) == (None, "Help.", {"n": "w"})
    assert here("DELETE", f"/agents/{identity}").json == {"id": identity, "object": "agent.deleted", "deleted": True}
    assert here("GET", f"/agents/{identity}").error["code"] == "not_found_error"


def test_lists_have_the_quirks_of_the_service(api):
    here = api()
    agents = [here.agent(name=str(number)) for number in range(3)]
    assert [a["id"] for a in here("GET", "/agents?limit=0").json["data"]] == [agents[2]]
    assert here("GET", f"/agents?after={agents[2]}&limit=999").json["last_id"] == agents[0]
    assert here("GET", "/agents?after=agent_x").status == 404
    session = here.open(metadata={"p": "x"})
    here.open()
    assert [s["id"] for s in here("GET", "/agents/sessions?metadata%5Bp%5D=x").json["data"]] == [session]
    assert (
        here("GET", f"/agents/sessions/{session}/turns?limit=0").error["message"] == "limit must be between 1 and 100"
    )
    assert here("GET", f"/agents/sessions/{session}/items?after=x").status == 400
    empty = here("GET", "/agents/sessions?agent_id=agent_x").json
    assert (empty["data"], empty["first_id"], empty["has_more"]) == ([], None, False)


# Sessions ------------------------------------------------------------------------------------------------------------


def test_a_session_needs_an_environment_and_something_to_say(api):
    here = api()
    agent = here.agent()
    assert here("POST", "/agents/sessions", {"agent_id": agent, "input": "x"}).error["param"] == "environment"
    told = here("POST", "/agents/sessions", {"agent_id": agent, "environment": {"type": "none"}}).error["message"]
    assert told == "conversation-only sessions currently require initial input"
    wrong = {"agent": {"model": "m", "tools": [{"type": "function"}]}, "environment": {"type": "none"}}
    assert here("POST", "/agents/sessions", wrong).error["param"] == "agent.tools[0].name"


def test_a_turn_goes_through_its_states(api):
    here = api(ASK, SAY)
    session = here.open()
    waiting = here.state(session)
    assert (waiting["status"], waiting["usage"]) == ("requires_action", None)
    (action,) = waiting["required_actions"]
    assert (action["name"], action["arguments"]) == ("get_weather", {"city": "Oslo"})
    assert [item["type"] for item in here.items(session)] == ["message"]  # what is under way is not listed
    (turn,) = here("GET", f"/agents/sessions/{session}/turns").json["data"]
    assert (turn["status"], turn["id"]) == ("waiting", action["turn_id"])
    accepted = here.answer(session)
    assert (accepted.status, accepted.text) == (202, "")
    done = here.state(session)
    assert (done["status"], done["required_actions"]) == ("idle", [])
    assert done["usage"]["total_tokens"] > 0
    assert [item["type"] for item in here.items(session)] == [
        "message",
        "function_call",
        "function_call_output",
        "message",
    ]
    assert here.items(session)[2]["output"] == [{"type": "input_text", "text": "sunny"}]


def test_the_creation_stream_tells_a_turn_in_its_order_and_ends_when_it_is_idle(api):
    here = api(SAY)
    body = {"environment": {"type": "none"}, "agent_id": here.agent(), "input": "hi", "stream": True}
    told = here("POST", "/agents/sessions", body)
    assert told.status == 201
    kinds = [event["type"].removeprefix("agent.session.") for event in told.events]
    assert [kind for kind in kinds if "delta" not in kind] == [
        "created",
        "turn.created",
        "turn.item.added",
        "in_progress",
        "turn.in_progress",
        "turn.item.added",
        "turn.content_part.added",
        "turn.output_text.done",
        "turn.content_part.done",
        "turn.item.done",
        "turn.completed",
        "idle",
    ]
    assert len({event["event_id"] for event in told.events}) == len(told.events)
    assert told.events[2]["output_index"] is None
    assert told.events[-2]["usage"] is None


def test_two_calls_are_answered_one_by_one_in_any_order(api):
    here = api(TWO, {"say": "{{output.get_weather}}"})
    session = here.open()
    first, second = here.state(session)["required_actions"]
    here.send(session, result_of(second, output="rain"))
    assert here.state(session)["required_actions"] == [first]
    here.send(session, result_of(first, success=False, output=None, error="no"))
    assert here.state(session)["status"] == "idle"
    outputs = [item for item in here.items(session) if item["type"] == "function_call_output"]
    assert [(item["output"], item["error"]) for item in outputs] == [
        ([{"type": "input_text", "text": "rain"}], None),
        (None, "no"),
    ]


# Results that do not fit ---------------------------------------------------------------------------------------------


def test_a_result_that_does_not_fit_is_refused_as_the_service_does(api):
    here = api(ASK, SAY, ASK, SAY)
    session = here.open()
    (action,) = here.state(session)["required_actions"]
    unknown = here.send(session, result_of({**action, "call_id": "exec_x"}))
    assert unknown.error["message"] == "Unknown pending tool call: exec_x"
    other = here.send(session, result_of({**action, "turn_id": "turn_x"}))
    assert "belongs to a different managed agent turn" in other.error["message"]
    huge = here.send(session, result_of(action, output="x" * 4_194_304))
    assert (huge.status, huge.error["param"]) == (400, "events[0].output")
    assert here.send(session, result_of(action, output={"a": 1})).error["param"] == "events[0].output"
    assert here.send(session, result_of(action)).status == 202
    assert here.send(session, result_of(action)).status == 202  # identical, also after the turn
    changed = here.send(session, result_of(action, output="rain"))
    assert (changed.status, changed.error["type"]) == (409, "conflict_error")
    assert len([item for item in here.items(session) if item["type"] == "function_call_output"]) == 1


def test_a_call_is_seen_before_it_takes_its_result(api, clock):
    here = api({**ASK, "accepts_after": "2s"}, SAY)
    session = here.open()
    assert (here.state(session)["status"], here.state(session)["required_actions"]) == ("in_progress", [])
    turn = here("GET", f"/agents/sessions/{session}/turns").json["data"][0]
    assert turn["status"] == "waiting"
    early = result_of({"turn_id": turn["id"], "call_id": "exec_early"})
    assert here.send(session, early).status == 400
    clock.now += 2
    assert here.answer(session).status == 202
    assert here.state(session)["status"] == "idle"


def test_an_event_with_a_key_that_was_seen_is_not_taken_again(api):
    here = api({"say": "one"}, {"say": "two"}, {"say": "three"})
    session = here.open()
    here.state(session)
    for _ in range(2):
        assert here.send(session, message("again"), idempotency_key="k1").status == 202
    here.send(session, message("again"), idempotency_key="k2")
    said = [item["content"][0]["text"] for item in here.items(session) if item["role"] == "assistant"]
    assert said == ["one", "two", "three"]


def test_a_message_while_a_turn_runs_waits_for_its_end(api):
    here = api(ASK, SAY, {"say": "Later."})
    session = here.open()
    here.state(session)
    assert here.send(session, message("and now?")).status == 202
    assert here.state(session)["status"] == "requires_action"
    here.answer(session)
    assert here.state(session)["status"] == "idle"
    texts = [item["content"][0]["text"] for item in here.items(session) if item["type"] == "message"]
    assert texts == ["Weather?", "Sunny in Oslo.", "and now?", "Later."]


def test_a_message_before_the_first_one_is_set_up_has_to_come_again(api):
    here = api(SAY, SAY)
    session = here.open()
    early = here.send(session, message("hello?"))
    assert (early.status, early.error["message"]) == (409, "session initial input is still pending")
    assert here.send(session, message("hello?")).status == 202


def test_a_waiting_session_is_cancelled_before_it_can_be_deleted(api):
    here = api(ASK, SAY)
    session = here.open()
    (action,) = here.state(session)["required_actions"]
    assert here("DELETE", f"/agents/sessions/{session}").status == 409
    assert here.send(session, {"type": "agent.session.input.cancel"}).status == 202
    assert here.state(session)["status"] == "idle"
    late = here.send(session, result_of(action))
    assert (late.status, late.error["type"]) == (409, "conflict_error")
    for _ in range(2):
        assert here("DELETE", f"/agents/sessions/{session}").json["deleted"] is True
    assert here("GET", f"/agents/sessions/{session}").status == 404
    assert here("DELETE", "/agents/sessions/sess_x").status == 404


# Trouble and time ----------------------------------------------------------------------------------------------------


def test_a_turn_may_fail_and_leaves_an_idle_session(api):
    here = api(
        {"fail": {"code": "server_error", "message": "oh"}}, {"say": "Sun", "incomplete": "max_output_tokens"}, SAY
    )
    session = here.open()
    assert here.state(session)["status"] == "idle"
    here.send(session, message("again"))
    turns = here("GET", f"/agents/sessions/{session}/turns?order=asc").json["data"]
    assert [(turn["status"], turn["error"]["code"]) for turn in turns] == [
        ("failed", "server_error"),
        ("failed", "max_output_tokens"),
    ]


def test_a_slow_model_is_in_progress_until_its_time(api, clock):
    here = api({**SAY, "delay": "5s"})
    session = here.open()
    assert [here.state(session)["status"] for _ in range(2)] == ["in_progress"] * 2
    clock.now += 5
    assert here.state(session)["status"] == "idle"


@pytest.mark.parametrize("steps", [[ASK, SAY], [{**ASK, "delay": "5s"}, SAY]])
def test_another_process_carries_a_session_on(api, clock, steps):
    here = api(*steps)
    session = here.open()
    here.state(session)
    here.service.app.close()
    other = api()  # on the same file, and without the scenario
    clock.now += 5
    assert other.answer(session).status == 202
    assert other.state(session)["status"] == "idle"
    assert other.items(session)[-1]["content"][0]["text"] == "Sunny in Oslo."


def test_an_error_meets_the_request_that_leads_to_it(api):
    fault = {"error": {"status": 503, "code": "overloaded", "headers": {"Retry-After": "1"}}}
    here = api(fault, ASK, fault, SAY)
    body = {"environment": {"type": "none"}, "agent_id": here.agent(), "input": "hi"}
    refused = here("POST", "/agents/sessions", body)
    assert (refused.status, refused.headers["retry-after"]) == (503, "1")
    session = here("POST", "/agents/sessions", body).json["id"]
    assert here.answer(session).status == 503
    assert here.state(session)["status"] == "requires_action"  # nothing was taken
    assert here.answer(session).status == 202
    assert here.state(session)["status"] == "idle"


def test_who_comes_late_is_shown_what_was_said_and_no_call_that_waits(api):
    here = api({**ASK, "say": "Let me see."}, SAY)
    session = here.open()
    here.state(session)
    status, _, body = here.service.open("GET", f"/v1/agents/sessions/{session}/events", None, HEADERS)
    frames = iter(body)
    told = [next(frames).decode() for _ in range(7)]
    body.close()
    assert status == 200
    kinds = [json.loads(frame.partition("\ndata: ")[2])["type"] for frame in told[1:]]
    assert kinds == [
        f"agent.session.turn.{k}"
        for k in (
            "item.added",
            "item.added",
            "content_part.added",
            "output_text.done",
            "content_part.done",
            "item.done",
        )
    ]
    assert "function_call" not in "".join(told)

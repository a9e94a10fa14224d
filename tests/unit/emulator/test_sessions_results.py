"""Events that a client sends to a session: results of all kinds, messages, keys, batches (openai-agents.md §4.1, §6)."""

from __future__ import annotations

import json

import pytest

from tests.unit.emulator.test_agents_api import ASK, SAY, TWO, Api, message, result_of

PREFIX = "agent.session.input."
RESULT = {"type": f"{PREFIX}tool_result", "turn_id": "turn_x", "call_id": "exec_x", "success": True}
TEXT = {"type": "input_text", "text": "sunny"}
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}


@pytest.fixture
def api(make_service):
    return lambda *steps, **options: Api(make_service(*steps, **options))


@pytest.fixture
def waiting(api):
    """Return a session that waits for the result of one call, and the call."""
    here = api(ASK, SAY)
    session = here.open()
    (action,) = here.state(session)["required_actions"]
    return here, session, action


def told(here):
    """Return the events of the only session, so far."""
    return [json.loads(row[0]) for row in here.service.app.store.rows("SELECT data FROM session_event")]


def outputs(here, session):
    return [item for item in here.items(session) if item["type"] == "function_call_output"]


# Shapes --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "param", "told"),
    [
        (None, "events", "Missing required parameter: 'events'."),
        ({}, "events", "expected an array, but got an object"),
        ([7], "events[0]", "expected an object, but got an integer"),
        ([{}], "events[0].type", "Missing required parameter"),
        ([{"type": "tool_result"}], "events[0].type", "Invalid value: 'tool_result'. Supported values are:"),
        ([RESULT | {"turn_id": None}], "events[0].turn_id", "Missing required parameter"),
        ([RESULT | {"call_id": 7}], "events[0].call_id", "expected a string, but got an integer"),
        ([RESULT | {"success": None}], "events[0].success", "Missing required parameter"),
        ([RESULT | {"success": "yes"}], "events[0].success", "expected a boolean, but got a string"),
        ([RESULT | {"error": 7}], "events[0].error", "expected a string"),
        ([RESULT | {"output": 1.5}], "events[0].output", "expected an array, but got a decimal"),
        ([RESULT | {"output": ["sunny"]}], "events[0].output[0]", "expected an object"),
        ([RESULT | {"output": [{"type": "input_file"}]}], "events[0].output[0].type", "Invalid value: 'input_file'"),
        ([RESULT | {"output": [{"type": "input_text"}]}], "events[0].output[0].text", "Missing required parameter"),
        ([RESULT | {"name": "n"}], "events[0].name", "Unknown parameter: 'events[0].name'."),
        ([message("x") | {"input": "x"}], "events[0].input", "expected an array, but got a string"),
        ([message("x"), message("x") | {"input": None}], "events[1].input", "Missing required parameter"),
        ([{"type": f"{PREFIX}cancel", "turn_id": "t"}], "events[0].turn_id", "Unknown parameter"),
        ([{"type": f"{PREFIX}cancel"}] * 16_385, "events", "16384"),
    ],
)
def test_what_is_no_event(waiting, events, param, told):
    here, session, _ = waiting
    refused = here("POST", f"/agents/sessions/{session}/events", {"events": events})
    assert (refused.status, refused.error["type"], refused.error["param"]) == (400, "invalid_request_error", param)
    assert told in refused.error["message"]
    assert here.state(session)["status"] == "requires_action"


def test_no_events_are_accepted_and_do_nothing(waiting):
    here, session, action = waiting
    accepted = here.send(session)
    assert (accepted.status, accepted.text) == (202, "")
    assert here.state(session)["required_actions"] == [action]


def test_events_for_a_session_that_is_not_there_are_a_404(waiting):
    here, _, action = waiting
    assert here.send("sess_x", result_of(action)).error["type"] == "not_found_error"
    assert here.send("sess_x").status == 404


@pytest.mark.parametrize("kind", ["mcp_approval_request_result", "computer_use_approval_request_result"])
def test_an_approval_that_nobody_asked_for_is_refused(waiting, kind):
    here, session, _ = waiting
    refused = here.send(session, {"type": f"{PREFIX}{kind}", "request_id": "r", "response": {"decision": "approve"}})
    assert (refused.status, refused.error["type"]) == (400, "invalid_request_error")


# What becomes of a result --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "output", "error"),
    [
        ({"output": "sunny"}, [TEXT], None),
        ({"output": ""}, [{"type": "input_text", "text": ""}], None),
        ({"output": [TEXT, IMAGE]}, [TEXT, IMAGE], None),
        ({"output": None}, None, None),
        ({"success": False, "output": None, "error": "no"}, None, "no"),
        ({"success": False, "output": "half", "error": "no"}, None, "no"),
    ],
)
def test_a_result_is_listed_in_the_services_own_shape(waiting, result, output, error):
    here, session, action = waiting
    assert here.send(session, result_of(action, **result)).status == 202
    user, call, given, said = here.items(session)
    assert call == {
        "type": "function_call",
        "id": action["call_id"],
        "turn_id": action["turn_id"],
        "call_id": action["call_id"],
        "name": "get_weather",
        "arguments": {"city": "Oslo"},
        "status": "completed",
    }
    assert given == {
        "type": "function_call_output",
        "id": given["id"],
        "turn_id": action["turn_id"],
        "call_id": action["call_id"],
        "status": "completed",
        "output": output,
        "error": error,
    }
    assert given["id"].startswith("fco_")
    assert (user["role"], user["phase"], said["role"], said["phase"]) == ("user", None, "assistant", "final_answer")


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ({"output": "rain"}, "rain"),
        ({"success": False, "error": "no stars"}, "no stars"),
        ({"output": [TEXT]}, "sunny"),
    ],
)
def test_the_model_reads_the_output_or_the_error(api, result, told):
    here = api(ASK, {"say": "It gave {{output}}."})
    session = here.open()
    assert here.answer(session, **{"output": None, **result}).status == 202
    assert here.items(session)[-1]["content"][0]["text"] == f"It gave {told}."


def test_a_result_may_be_as_large_as_is_allowed_and_not_one_byte_more(waiting):
    here, session, action = waiting
    spare = 4_194_304 - len(json.dumps(result_of(action, output="")).encode())
    refused = here.send(session, result_of(action, output="é" * (spare // 2) + "x" * (spare % 2)))
    assert (refused.status, refused.error["param"]) == (400, "events[0].output")
    assert here.state(session)["required_actions"] == [action]
    assert here.send(session, result_of(action, output="x" * (spare - 1))).status == 202
    assert here.state(session)["status"] == "idle"


def test_a_call_that_is_not_registered_yet_is_unknown_and_then_is_asked_for(api, clock):
    here = api({**ASK, "accepts_after": "2s"}, SAY)
    session = here.open()
    assert here.state(session)["status"] == "in_progress"
    (turn,) = here("GET", f"/agents/sessions/{session}/turns").json["data"]
    call = told(here)[-1]["item"]
    early = here.send(session, result_of(call))
    assert (early.status, early.error["param"]) == (400, None)
    assert early.error["message"] == f"Unknown pending tool call: {call['call_id']}"
    assert (call["status"], turn["status"]) == ("in_progress", "waiting")
    clock.now += 2
    assert here.send(session, result_of(call)).status == 202  # though nobody has looked since
    kinds = [event["type"] for event in told(here)]
    assert kinds.count("agent.session.requires_action") == 1


def test_a_result_of_an_earlier_turn_does_not_fit_into_the_next(api):
    here = api(ASK, SAY, ASK, SAY)
    session = here.open()
    (first,) = here.state(session)["required_actions"]
    here.send(session, result_of(first))
    here.send(session, message("again"))
    (second,) = here.state(session)["required_actions"]
    crossed = here.send(session, result_of({**second, "turn_id": first["turn_id"]}))
    assert (crossed.status, crossed.error["type"], crossed.error["param"]) == (400, "invalid_request_error", None)
    named = second["call_id"].replace("exec_", "exec-")
    assert crossed.error["message"] == f"function call {named} belongs to a different managed agent turn"
    assert here.send(session, result_of(first)).status == 202  # that of the ended turn, once more
    assert here.state(session)["required_actions"] == [second]


@pytest.mark.parametrize("ended", [False, True])
def test_only_the_identical_result_is_taken_twice(api, ended):
    here = api(ASK if ended else TWO, SAY)
    session = here.open()
    first = here.state(session)["required_actions"][0]
    for _ in range(2):
        assert here.send(session, result_of(first, output="sunny", error=None)).status == 202
    assert (here.state(session)["status"] == "idle") is ended
    for change in ({"output": "sunny "}, {"output": [TEXT]}, {"success": False}, {"error": "e"}):
        refused = here.send(session, result_of(first, **change))
        assert (refused.status, refused.error) == (
            409,
            {
                "type": "conflict_error",
                "code": "conflict_error",
                "message": "The tool call already has a different result.",
                "param": None,
            },
        )
    assert len(outputs(here, session)) == 1


def test_a_cancelled_turn_takes_no_result(waiting):
    here, session, action = waiting
    here.send(session, {"type": f"{PREFIX}cancel"})
    refused = here.send(session, result_of(action))
    assert (refused.status, refused.error["type"], refused.error["code"], refused.error["param"]) == (
        409,
        "conflict_error",
        "conflict_error",
        None,
    )
    assert refused.error["message"] == "The Turn cannot accept this input in its current state."
    assert outputs(here, session) == []


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_calls_are_answered_in_either_order_and_the_turn_waits_for_both(api, order):
    here = api(TWO, SAY)
    session = here.open()
    actions = here.state(session)["required_actions"]
    assert [action["arguments"]["city"] for action in actions] == ["Oslo", "Bergen"]
    first, last = (actions[index] for index in order)
    assert here.send(session, result_of(first, output="1")).status == 202
    state = here.state(session)
    assert (state["status"], state["required_actions"], state["usage"]) == ("requires_action", [last], None)
    (turn,) = here("GET", f"/agents/sessions/{session}/turns").json["data"]
    assert turn["status"] == "waiting"
    assert here.send(session, result_of(last, output="2")).status == 202
    assert here.state(session)["status"] == "idle"
    assert [item["call_id"] for item in outputs(here, session)] == [first["call_id"], last["call_id"]]


def test_a_batch_is_taken_whole_or_not_at_all(api):
    here = api(TWO, SAY)
    session = here.open()
    first, second = here.state(session)["required_actions"]
    assert here.send(session, result_of(first), result_of({**second, "call_id": "exec_x"})).status == 400
    assert here.state(session)["required_actions"] == [first, second]
    assert here.send(session, result_of(first), result_of(second), message("and then?")).status == 202
    assert here.state(session)["status"] == "idle"
    assert len(here("GET", f"/agents/sessions/{session}/turns").json["data"]) == 2


# Messages and keys ---------------------------------------------------------------------------------------------------


def test_messages_wait_for_the_turn_that_runs_in_the_order_they_came(api, clock):
    here = api({**SAY, "delay": "5s"}, {"say": "{{message}}!", "repeat": 2})
    session = here.open()
    here.state(session)
    for text in ("one", "two"):
        assert here.send(session, message(text)).status == 202
    turns = here("GET", f"/agents/sessions/{session}/turns?order=asc").json["data"]
    assert [turn["status"] for turn in turns] == ["in_progress", "queued", "queued"]
    assert [turn["started_at"] is None for turn in turns] == [False, True, True]
    assert len(here.items(session)) == 1
    clock.now += 5
    assert here.state(session)["status"] == "idle"
    texts = [item["content"][0]["text"] for item in here.items(session)]
    assert texts == ["Weather?", "Sunny in Oslo.", "one", "one!", "two", "two!"]


def test_the_refusal_of_an_early_message_has_the_words_of_the_service(api):
    here = api({"say": "{{message}}", "repeat": "forever"})
    session = here.open("first")
    early = here.send(session, message("second"))
    assert (early.status, early.error) == (
        409,
        {
            "type": "conflict_error",
            "code": "conflict_error",
            "message": "session initial input is still pending",
            "param": None,
        },
    )
    here.state(session)
    assert [item["content"][0]["text"] for item in here.items(session)] == ["first", "first"]


def test_a_key_counts_in_its_own_session_and_only_when_it_was_taken(api):
    here = api({"say": "one", "repeat": "forever"})
    session, other = here.open(), here.open()
    for one in (session, other):
        here.state(one)
        here.send(one, result_of({"turn_id": "t", "call_id": "c"}), idempotency_key="k")
        for _ in range(2):
            assert here.send(one, message("again"), idempotency_key="k").status == 202
        assert len(here("GET", f"/agents/sessions/{one}/turns").json["data"]) == 2
    for key in ("", "k" * 257):
        assert here.send(session, message("again"), idempotency_key=key).status == 400

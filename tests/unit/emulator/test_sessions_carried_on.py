"""Sessions of the Agents API in trouble: faults and cuts of a scenario, another process, clocks (openai-agents.md §3, §6)."""

from __future__ import annotations

import pytest

from agentfn.emulator.app import ConnectionCut
from tests.unit.emulator.test_agents_api import ASK, SAY, TOOL, TWO, Api, message, result_of

INLINE = {"environment": {"type": "none"}, "agent": {"model": "m", "tools": [TOOL]}, "input": "hi"}
FAULT = {"error": {"status": 503, "code": "overloaded", "message": "Too much.", "headers": {"Retry-After": "7"}}}
BEFORE, AFTER = {"cut": "before"}, {"cut": "after"}


@pytest.fixture
def api(make_service):
    return lambda *steps, **options: Api(make_service(*steps, **options))


def only_session(here):
    (session,) = here("GET", "/agents/sessions").json["data"]
    return session["id"]


def last_text(here, session):
    return here.items(session)[-1]["content"][0]["text"]


# Faults --------------------------------------------------------------------------------------------------------------


def test_a_fault_is_told_in_the_shape_of_the_face(api):
    refused = api(FAULT, SAY)("POST", "/agents/sessions", INLINE)
    assert (refused.status, refused.headers["retry-after"]) == (503, "7")
    assert refused.error == {"type": "server_error", "code": "overloaded", "message": "Too much.", "param": None}


@pytest.mark.parametrize("stream", [False, True])
def test_a_fault_at_the_opening_stores_nothing_and_is_used_up(api, stream):
    here = api(FAULT, BEFORE, SAY)
    body = {**INLINE, "stream": stream}
    assert here("POST", "/agents/sessions", body).status == 503
    with pytest.raises(ConnectionCut):
        here("POST", "/agents/sessions", body)
    assert here("GET", "/agents/sessions").json["data"] == []
    assert here("POST", "/agents/sessions", body).status == 201
    assert last_text(here, only_session(here)) == "Sunny in Oslo."


def test_a_cut_after_the_opening_leaves_a_session_that_can_be_found(api):
    here = api({"say": "Lost.", **AFTER}, {"say": "Found."})
    marked = {**INLINE, "metadata": {"run": "1"}}
    with pytest.raises(ConnectionCut):
        here("POST", "/agents/sessions", marked)
    (found,) = here("GET", "/agents/sessions?metadata%5Brun%5D=1").json["data"]
    assert last_text(here, found["id"]) == "Lost."
    with pytest.raises(ConnectionCut):  # somebody else's begins at the start
        here("POST", "/agents/sessions", {**INLINE, "metadata": {"run": "2"}})
    again = here("POST", "/agents/sessions", marked)  # and who asks again gets the following step
    assert last_text(here, again.json["id"]) == "Found."
    here.send(found["id"], message("and?"))
    assert last_text(here, found["id"]) == "Found."


@pytest.mark.parametrize(("fault", "status"), [(FAULT, 503), (BEFORE, None)])
def test_a_fault_before_the_last_result_takes_nothing(api, fault, status):
    here = api(TWO, fault, SAY)
    session = here.open()
    first, second = here.state(session)["required_actions"]
    assert here.send(session, result_of(first)).status == 202  # no model step follows yet
    for wrong in ({"turn_id": "turn_x"}, {"call_id": "exec_x"}):
        assert here.send(session, result_of({**second, **wrong})).status == 400  # and none follows from these
    if status is None:
        with pytest.raises(ConnectionCut):
            here.send(session, result_of(second))
    else:
        assert here.send(session, result_of(second)).status == status
    assert here.state(session)["required_actions"] == [second]
    assert here.send(session, result_of(second)).status == 202
    assert here.state(session)["status"] == "idle"


def test_a_result_that_comes_too_early_uses_no_fault_up(api, clock):
    here = api({"call": {"name": "get_weather", "id": "exec_1"}, "accepts_after": "2s"}, FAULT, SAY)
    session = here.open()
    here.state(session)
    (turn,) = here("GET", f"/agents/sessions/{session}/turns").json["data"]
    call = {"turn_id": turn["id"], "call_id": "exec_1"}
    assert here.send(session, result_of(call)).status == 400
    clock.now += 2
    assert [here.send(session, result_of(call)).status for _ in range(2)] == [503, 202]


def test_a_cut_after_a_result_leaves_it_taken(api):
    here = api(ASK, {**SAY, **AFTER})
    session = here.open()
    (action,) = here.state(session)["required_actions"]
    with pytest.raises(ConnectionCut):
        here.send(session, result_of(action))
    assert here.state(session)["status"] == "idle"
    assert here.send(session, result_of(action)).status == 202  # the same once more
    assert here.send(session, result_of(action, output="rain")).status == 409
    assert [item["type"] for item in here.items(session)].count("function_call_output") == 1


def test_a_fault_at_a_message_begins_no_turn(api):
    here = api(SAY, FAULT, BEFORE, {"say": "There."})
    session = here.open()
    here.state(session)
    assert here.send(session, message("again"), idempotency_key="k").status == 503
    with pytest.raises(ConnectionCut):
        here.send(session, message("again"), idempotency_key="k")
    assert len(here("GET", f"/agents/sessions/{session}/turns").json["data"]) == 1
    assert here.send(session, message("again"), idempotency_key="k").status == 202
    assert last_text(here, session) == "There."


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (FAULT, {"code": "overloaded", "message": "Too much."}),
        (BEFORE, {"code": "connection_failed", "message": "the scenario breaks the connection here"}),
    ],
)
def test_a_fault_that_no_request_leads_to_fails_its_turn(api, fault, error):
    here = api(ASK, SAY, fault, {"say": "There."})
    session = here.open()
    here.state(session)
    for text in ("one", "two"):
        assert here.send(session, message(text)).status == 202
    assert here.answer(session).status == 202
    turns = here("GET", f"/agents/sessions/{session}/turns?order=asc").json["data"]
    assert [turn["status"] for turn in turns] == ["completed", "failed", "completed"]
    assert turns[1]["error"] == error
    texts = [item["content"][0]["text"] for item in here.items(session) if item["type"] == "message"]
    assert texts == ["Weather?", "Sunny in Oslo.", "one", "two", "There."]


def test_a_fault_meets_the_message_after_a_slow_turn_whose_time_has_come(api, clock):
    here = api({**SAY, "delay": "5s"}, FAULT, {"say": "There."})
    session = here.open()
    assert here.state(session)["status"] == "in_progress"
    clock.now += 5
    assert here.send(session, message("again")).status == 503
    assert here.send(session, message("again")).status == 202
    assert last_text(here, session) == "There."


def test_a_turn_without_a_step_fails_and_says_so(api):
    here = api(ASK)
    session = here.open()
    here.answer(session)
    (turn,) = here("GET", f"/agents/sessions/{session}/turns").json["data"]
    assert (turn["status"], turn["error"]["code"]) == ("failed", "scenario_exhausted")
    assert "scenario.yaml has no step for model step 2" in turn["error"]["message"]
    assert here.state(session)["status"] == "idle"


# Time ----------------------------------------------------------------------------------------------------------------


def test_a_delay_counts_anew_for_each_step(api, clock):
    here = api({**ASK, "delay": "5s"}, {**SAY, "delay": "7s"})
    session = here.open()
    seen = []
    for seconds in (0, 4, 1):
        clock.now += seconds
        seen.append(here.state(session)["status"])
    assert seen == ["in_progress", "in_progress", "requires_action"]
    here.answer(session)
    seen = []
    for seconds in (0, 6, 1):
        clock.now += seconds
        seen.append(here.state(session)["status"])
    assert seen == ["in_progress", "in_progress", "idle"]
    assert clock.slept == []  # nobody is kept waiting for an answer


def test_a_step_may_move_the_services_clock(api):
    here = api({**ASK, "advance": "1h"}, SAY)
    session = here.open()
    began = here.state(session)["created_at"]
    here.answer(session)
    (turn,) = here("GET", f"/agents/sessions/{session}/turns").json["data"]
    assert (turn["started_at"], turn["completed_at"]) == (began, began + 3600)


# Another process -----------------------------------------------------------------------------------------------------


@pytest.fixture
def restarted(api):
    """End the service and begin another on the same file, which knows no scenario."""

    def again(here):
        here.service.app.close()
        return api()

    return again


def test_a_session_that_waits_is_carried_on(api, restarted):
    here = api(TWO, {"say": "{{output.get_weather}}"})
    session = here.open()
    first, second = here.state(session)["required_actions"]
    sent = result_of(first, output="one")
    here.send(session, sent)
    here = restarted(here)
    assert here.state(session)["required_actions"] == [second]
    assert here.send(session, sent).status == 202
    assert here.send(session, result_of(first, output="other")).status == 409
    here = restarted(here)
    assert here.send(session, result_of(second, output="two")).status == 202
    assert last_text(here, session) == "two"


def test_a_session_that_thinks_is_carried_on(api, restarted, clock):
    here = api({**ASK, "delay": "5s"}, {**SAY, "delay": "5s"})
    session = here.open()
    assert here.state(session)["status"] == "in_progress"
    here = restarted(here)
    assert here.state(session)["status"] == "in_progress"
    clock.now += 5
    here.answer(session)
    assert here.state(session)["status"] == "in_progress"
    here = restarted(here)
    clock.now += 5
    assert here.state(session)["status"] == "idle"
    assert last_text(here, session) == "Sunny in Oslo."


def test_a_session_that_registers_its_calls_is_carried_on(api, restarted, clock):
    here = api({**ASK, "accepts_after": "2s"}, SAY)
    session = here.open()
    assert here.state(session)["required_actions"] == []
    here = restarted(here)
    assert here.state(session)["required_actions"] == []
    clock.now += 2
    assert here.answer(session).status == 202
    assert last_text(here, session) == "Sunny in Oslo."


def test_a_session_that_nobody_looked_at_is_carried_on(api, restarted):
    here = api(ASK, {"say": "From the scenario."})
    session = here.open()
    here = restarted(here)
    assert here.send(session, message("hello?")).status == 409  # the first message is still pending there
    assert here.answer(session).status == 202
    assert last_text(here, session) == "From the scenario."


def test_a_message_that_waits_is_carried_on(api, restarted):
    here = api(ASK, SAY, {"say": "{{message}}!"})
    session = here.open()
    here.state(session)
    here.send(session, message("later"), idempotency_key="k")
    here = restarted(here)
    here.send(session, message("later"), idempotency_key="k")
    assert here.answer(session).status == 202
    assert last_text(here, session) == "later!"
    assert len(here("GET", f"/agents/sessions/{session}/turns").json["data"]) == 2


def test_a_scenario_that_came_later_is_carried_on_from_its_delay(api, restarted, clock):
    here = api({"say": "Old."})
    session = here.open()
    here.state(session)
    here.service.app.close()
    here = api({"say": "New.", "delay": "5s"})
    here.send(session, message("again"))
    here = restarted(here)
    clock.now += 5
    assert last_text(here, session) == "New."


def test_what_was_deleted_stays_deleted(api, restarted):
    here = api(SAY)
    session, agent = here.open(), here.agent()
    here.state(session)
    here("DELETE", f"/agents/sessions/{session}")
    here("DELETE", f"/agents/{agent}")
    here = restarted(here)
    assert here("DELETE", f"/agents/sessions/{session}").status == 200
    assert here("GET", f"/agents/sessions/{session}").status == 404
    assert here("DELETE", f"/agents/{agent}").status == 404

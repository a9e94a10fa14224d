"""Scenarios as they are played: order, conditions, faults, the clock, and positions that outlive the process."""

from __future__ import annotations

import json

import pytest

from agentfn.emulator.app import ConnectionCut
from tests.unit.emulator.in_process import call_ids, output, said

CALL = {"call": {"get_horoscope": {"sign": "Leo"}}}


def test_steps_are_taken_in_order(play):
    service = play(CALL, {"say": "one"}, {"say": "two"})
    conversation = service.conversation()
    first = service.ask("hi", conversation=conversation)
    assert first.headers["x-agentfn-model"] == "scenario"
    assert said(service.ask([output(call_ids(first)[0])], conversation=conversation)) == "one"
    assert said(service.ask("more", conversation=conversation)) == "two"


def test_each_conversation_plays_from_the_start(play):
    service = play({"say": "one"}, {"say": "two"})
    for _ in range(2):
        conversation = service.conversation()
        assert [said(service.ask("x", conversation=conversation)) for _ in range(2)] == ["one", "two"]


def test_text_comes_before_the_calls_and_calls_keep_their_form(play):
    entries = [
        {"f": {"a": "é"}, "g": None},
        {"name": "h", "raw": '{"a": ', "id": "call_h"},
        {"name": "i", "arguments": {"b": 1}},
    ]
    service = play({"say": "wait", "call": entries})
    items = service.ask("x").json["output"]
    assert [item["type"] for item in items] == ["message"] + ["function_call"] * 4
    assert [(item["name"], item["arguments"]) for item in items[1:]] == [
        ("f", '{"a": "é"}'),
        ("g", "{}"),
        ("h", '{"a": '),
        ("i", '{"b": 1}'),
    ]
    assert items[3]["call_id"] == "call_h"
    assert len({item["call_id"] for item in items[1:]}) == 4


def test_conditions_choose_the_first_step_that_holds(play):
    service = play(
        {"when": {"message": "Oslo"}, "say": "oslo"},
        {"when": {"message": "/^B[a-z]+n$/"}, "say": "bergen"},
        {"when": {"step": 3}, "say": "third"},
        {"say": "anything", "repeat": "forever"},
    )
    conversation = service.conversation()
    spoken = ["Bergen", "in oslo today", "x", "Oslo", "bergen"]
    answers = [said(service.ask(text, conversation=conversation)) for text in spoken]
    assert answers == ["bergen", "oslo", "third", "anything", "anything"]


def test_output_conditions_see_the_outputs_that_have_just_come(play):
    service = play(
        {"call": {"a": {}, "b": {}}},
        {"when": {"output": {"a": "one", "b": "/^t/"}}, "call": {"c": {}}},
        {"when": {"output": "one"}, "say": "too late"},
        {"when": {"output": {"c": "three"}}, "say": "end"},
    )
    conversation = service.conversation()
    a, b = call_ids(service.ask("x", conversation=conversation))
    (c,) = call_ids(service.ask([output(b, "two"), output(a, "One")], conversation=conversation))
    assert said(service.ask([output(c, "three")], conversation=conversation)) == "end"


def test_placeholders_are_filled_and_unknown_ones_left(play):
    service = play(
        {"call": {"a": {"asked": "{{message}}", "deep": [{"x": "{{ message }}"}]}, "b": {}}},
        {"say": "{{output.a}}|{{output}}|{{output.z}}|{{nothing}}|{{message}}"},
    )
    first = service.ask("hello")
    call = first.json["output"][0]
    assert json.loads(call["arguments"]) == {"asked": "hello", "deep": [{"x": "hello"}]}
    a, b = call_ids(first)
    done = service.ask([output(a, "A"), output(b, "B")], previous_response_id=first.json["id"])
    assert said(done) == "A|B|{{output.z}}|{{nothing}}|hello"


def test_repeat(play):
    service = play({"say": "again", "repeat": 2}, {"say": "last"})
    conversation = service.conversation()
    assert [said(service.ask("x", conversation=conversation)) for _ in range(3)] == ["again", "again", "last"]


def test_an_exhausted_scenario_says_why_loudly(play):
    service = play({"say": "one"}, {"when": {"message": "never", "step": 9}, "say": "x"})
    conversation = service.conversation()
    service.ask("a", conversation=conversation)
    body = service.ask("something else", conversation=conversation).json
    assert (body["status"], body["output"], body["error"]["code"]) == ("failed", [], "scenario_exhausted")
    message = body["error"]["message"]
    assert "scenario.yaml has no step for model step 2" in message
    assert "'something else'" in message
    assert "step 2 not: it is for model step 9" in message


@pytest.mark.parametrize(
    ("step", "status", "details"),
    [
        (
            {"fail": {"code": "server_error", "message": "boom"}},
            "failed",
            {"error": {"code": "server_error", "message": "boom"}},
        ),
        (
            {"incomplete": "max_output_tokens", "say": "half"},
            "incomplete",
            {"incomplete_details": {"reason": "max_output_tokens"}, "completed_at": None},
        ),
    ],
)
def test_turns_that_end_badly_are_http_200(play, step, status, details):
    reply = play(step).ask("x")
    assert (reply.status, reply.json["status"]) == (200, status)
    assert details.items() <= reply.json.items()


def test_usage_is_the_scenarios(play):
    usage = play({"say": "x", "usage": {"input_tokens": 7, "output_tokens": 5}}).ask("x").json["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (7, 5, 12)


# --- faults ---


def test_an_error_is_delivered_once_and_stores_nothing(play):
    error = {"status": 429, "code": "rate_limit_exceeded", "message": "slow down", "headers": {"Retry-After": 7}}
    service = play({"error": error}, {"when": {"step": 1}, "say": "ok"})
    conversation = service.conversation()
    refused = service.ask("x", conversation=conversation)
    assert (refused.status, refused.error["code"], refused.error["message"]) == (
        429,
        "rate_limit_exceeded",
        "slow down",
    )
    assert refused.headers["retry-after"] == "7"
    assert service.items(conversation) == []
    assert said(service.ask("x", conversation=conversation)) == "ok"


def test_faults_are_used_up_also_where_there_is_no_conversation(play):
    service = play({"error": {"status": 500}}, CALL, {"error": {"status": 503}}, {"say": "done"})
    assert service.ask("x").status == 500
    assert service.ask("y").status == 500  # another first request is another thread
    first = service.ask("x")
    answer = [output(call_ids(first)[0])]
    assert service.ask(answer, previous_response_id=first.json["id"]).status == 503
    assert said(service.ask(answer, previous_response_id=first.json["id"])) == "done"


def test_a_position_travels_with_unstored_calls(play):
    service = play(CALL, {"say": "done"})
    call = service.ask("x", store=False).json["output"][0]
    user = {"role": "user", "content": "x"}
    assert said(service.ask([user, call, output(call["call_id"])], store=False)) == "done"


def test_a_cut_before_leaves_nothing_behind(play):
    service = play({"cut": "before"}, {"say": "ok"})
    conversation = service.conversation()
    with pytest.raises(ConnectionCut):
        service.ask("x", conversation=conversation)
    assert service.items(conversation) == []
    assert said(service.ask("x", conversation=conversation)) == "ok"


@pytest.mark.parametrize("stream", [False, True])
def test_a_cut_after_leaves_everything_behind_but_the_answer(play, stream):
    service = play({"say": "stored", "cut": "after"}, {"say": "next"})
    conversation = service.conversation()
    with pytest.raises(ConnectionCut):
        service.ask("x", conversation=conversation, stream=stream)
    assert [item["type"] for item in service.items(conversation)] == ["message", "message"]
    assert said(service.ask("y", conversation=conversation)) == "next"


def test_after_a_cut_the_same_first_request_gets_the_following_step(play):
    service = play({"say": "lost", "cut": "after"}, {"say": "found"})
    with pytest.raises(ConnectionCut):
        service.ask("x")
    assert said(service.ask("x")) == "found"


def test_a_cut_in_the_middle_of_a_body(play):
    service = play({"say": "half", "cut": "mid"})
    conversation = service.conversation()
    body = {"agent_reference": {"type": "agent_reference", "name": "bot"}, "conversation": conversation, "input": "x"}
    _, headers, chunks = service.open("POST", "/api/projects/p/openai/v1/responses", body)
    first = next(iter(chunks))
    assert 0 < len(first) < int(headers["content-length"])
    with pytest.raises(ConnectionCut):
        list(chunks)
    assert len(service.items(conversation)) == 2


def test_a_cut_stream_breaks_inside_the_arguments(play):
    service = play({**CALL, "cut": "mid"})
    body = {"agent_reference": {"type": "agent_reference", "name": "bot"}, "input": "x", "stream": True}
    _, _, chunks = service.open("POST", "/api/projects/p/openai/v1/responses", body)
    seen: list[bytes] = []
    with pytest.raises(ConnectionCut):
        seen.extend(chunks)
    assert seen[-1].startswith(b"event: response.function_call_arguments.delta")


def test_a_delay_passes_before_anything_is_stored(play):
    service = play({"say": "slow", "delay": "1500ms"})
    created = service.ask("x").json
    assert service.clock.slept == [1.5]
    assert created["completed_at"] - created["created_at"] in (1, 2)


# --- the clock ---


def test_the_clock_moves_after_a_step_that_advances_it(play):
    service = play({**CALL, "advance": "11m"}, {"say": "never"})
    first = service.ask("x")
    refused = service.ask([output(call_ids(first)[0])], previous_response_id=first.json["id"])
    assert refused.error["code"] == "run_expired"
    assert service("GET", "/_agentfn/clock").json == {"now": 1_800_000_660.0}


def test_a_step_that_only_advances_goes_with_the_one_before_it(play):
    service = play(CALL, {"advance": "6m"}, {"advance": "5m"}, {"say": "never"})
    first = service.ask("x")
    assert (
        service.ask([output(call_ids(first)[0])], previous_response_id=first.json["id"]).error["code"] == "run_expired"
    )


def test_a_step_that_only_advances_at_the_start_comes_before_the_answer(play):
    service = play({"advance": "1h"}, CALL, {"say": "in time"})
    first = service.ask("x")
    assert first.json["created_at"] == 1_800_003_600
    assert said(service.ask([output(call_ids(first)[0])], previous_response_id=first.json["id"])) == "in time"


def test_every_answer_has_the_services_date(play):
    service = play({"error": {"status": 500}, "advance": "1h"})
    assert service("GET", "/_agentfn/clock").headers["date"] == "Fri, 15 Jan 2027 08:00:00 GMT"
    assert service.ask("x").headers["date"] == "Fri, 15 Jan 2027 09:00:00 GMT"


# --- positions are kept ---


def test_a_later_process_goes_on_without_being_told_the_scenario(play):
    first = play({"say": "one"}, {"say": "two"}, {"say": "three"})
    conversation = first.conversation()
    first.ask("x", conversation=conversation)
    untold = play()
    told = untold.ask("x", conversation=conversation)
    assert (said(told), told.headers["x-agentfn-model"]) == ("two", "scenario")
    assert "no language model" in said(untold.ask("x"))  # a new thread has the stand-in


def test_the_same_scenario_goes_on_and_another_one_starts_anew(play):
    conversation = play().conversation()
    assert said(play({"say": "one"}, {"say": "two"}).ask("x", conversation=conversation)) == "one"
    assert said(play({"say": "one"}, {"say": "two"}).ask("x", conversation=conversation)) == "two"
    assert said(play({"say": "other"}).ask("x", conversation=conversation)) == "other"


def test_branches_go_on_each_from_their_own_response(play):
    service = play({"say": "one"}, {"say": "two"}, {"say": "three"})
    first = service.ask("x").json["id"]
    for _ in range(2):
        second = service.ask("y", previous_response_id=first)
        assert said(second) == "two"
        assert said(service.ask("z", previous_response_id=second.json["id"])) == "three"

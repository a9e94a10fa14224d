"""What services send is read with tolerance: what is missing, unknown or oddly typed stops nobody."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentfn.backends.foundry_agents import remote_agent, remote_conversation
from agentfn.backends.steps import history, items
from tests.unit.backends.shapes import call_item, output_item, response, said


def test_arguments_that_come_as_an_object_become_json_again():
    arguments = {"customer_id": "123", "vip": True, "note": None}
    (call,) = items.step_of({"output": [{**call_item(), "arguments": arguments}]}, 7.0).calls
    assert json.loads(call.arguments) == arguments


def test_two_calls_of_one_id_are_both_passed_on():
    step = items.step_of(response(call_item("call_0"), {**call_item("call_0"), "name": "delete_file"}), 7.0)
    assert [(call.id, call.function) for call in step.calls] == [("call_0", "get_weather"), ("call_0", "delete_file")]


def test_ids_are_passed_on_whole():
    long = "call_" + "x" * 90
    (call,) = items.step_of(response(call_item(long)), 7.0).calls
    assert call.id == long


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        (None, ""),
        ([], ""),
        ([{"type": "reasoning", "summary": []}], ""),
        ([said("a"), {"type": "unheard_of"}, said("b")], "ab"),
        ([{"type": "message", "content": "plain"}], "plain"),
        ([{"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}], "No."),
        ([{"type": "message", "role": "assistant", "content": None}], ""),
        (["nonsense", said("a")], "a"),
    ],
)
def test_the_answer_is_the_text_of_all_messages(output: Any, answer: str) -> None:
    assert items.step_of({"id": "r", "output": output}, 7.0).answer == answer


def test_a_body_with_nothing_in_it_counts_from_now():
    step = items.step_of({"created_at": "2026-12-01T00:00:00Z", "usage": None}, 7.0)
    assert (step.created_at, step.service_now, step.usage, step.version) == (7.0, 7.0, None, None)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), True, "12"])
def test_what_is_no_number_does_not_count(number: Any) -> None:
    step = items.step_of({"created_at": number, "usage": {"input_tokens": number, "output_tokens": 3}}, 7.0)
    assert (step.created_at, step.usage) == (7.0, (0, 3, 3))


@pytest.mark.parametrize(
    ("body", "failure", "answer"),
    [
        (
            {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "slow"}},
            "slow (rate_limit_exceeded)",
            None,
        ),
        ({"status": "failed", "error": None}, "no reason given (failed)", None),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}, "output": [said("part")]},
            "the answer is incomplete: content_filter",
            "part",
        ),
        ({"status": "cancelled", "output": []}, "the response was cancelled", None),
        ({"status": "in_progress", "output": []}, "the service stopped while it was in_progress", None),
    ],
)
def test_an_end_without_an_answer_names_its_reason(body: Any, failure: str, answer: str | None) -> None:
    step = items.step_of(body, 7.0)
    assert (step.failure, step.answer) == (failure, answer)


def test_calls_of_a_response_that_failed_are_not_run():
    assert items.step_of(response(call_item(), status="incomplete"), 7.0).calls == ()


@pytest.mark.parametrize(
    ("item", "type_", "advice"),
    [
        ({"type": "mcp_approval_request", "id": "m1"}, "mcp_approval_request", "approve"),
        ({"type": "oauth_consent_request", "consent_link": "https://c"}, "oauth_consent_request", "open https://c"),
        ({"type": "computer_call", "call_id": "c"}, "computer_call", "computer"),
        ({"type": "custom_tool_call"}, "custom_tool_call", "custom tool"),
        ({"type": "tool_search_call", "execution": "client"}, "tool_search_call", "searched"),
    ],
)
def test_what_else_the_service_waits_for_is_named_with_advice(item: Any, type_: str, advice: str) -> None:
    step = items.step_of(response(said("I need you."), item), 7.0)
    assert [action.type for action in step.actions] == [type_]
    assert advice in step.actions[0].advice
    assert step.answer is None, "the turn is not at its end"


def test_what_the_service_does_itself_is_not_waited_for():
    done = [
        {"type": "shell_call", "call_id": "s1"},
        {"type": "shell_call_output", "call_id": "s1"},
        {"type": "tool_search_call", "execution": "server"},
        {"type": "web_search_call", "id": "ws"},
    ]
    assert items.step_of(response(*done, said("found")), 7.0).answer == "found"


def test_a_transcript_line_has_its_kind_text_and_call():
    lines = [
        items.entry(item) for item in (said("hi", role="user"), call_item(), output_item(), {"type": "odd", "n": 1})
    ]
    assert [(line.kind, line.text, line.call_id) for line in lines] == [
        ("user", "hi", None),
        ("call", '{"city": "Oslo"}', "call_A1"),
        ("output", "sunny", "call_A1"),
        ("odd", '{"type": "odd", "n": 1}', None),
    ]
    parts = [{"type": "input_text", "text": "ü"}]
    assert items.entry({**output_item(), "output": parts}).text == '[{"type": "input_text", "text": "ü"}]'


def test_the_last_response_alone_is_the_answer_where_two_stand_there():
    """As when the model was asked to go on, and the lost request came to its end after all."""
    last = history.last_step(
        [said("hi", role="user"), said("first", response="resp_1"), said("again", response="resp_2")]
    )
    assert last is not None
    assert (last.response, last.answer) == ("resp_2", "again")


def test_items_that_do_not_say_where_they_come_from_are_read_all_the_same():
    old = said("old", response=None)
    last = history.last_step([said("a", role="user"), old, said("b", role="user"), said("new", response=None)])
    assert last is not None
    assert (last.response, last.answer, last.item) == (None, "new", "msg_new")


WORDS = ["type", "role", "content", "call_id", "id", "name", "arguments", "output", "created_by", "agent_reference", "status",
         "usage", "error", "incomplete_details", "response_id", "created_at", "text", "metadata", "versions", "latest"]  # fmt: skip
KINDS = [
    "function_call",
    "function_call_output",
    "message",
    "assistant",
    "user",
    "mcp_approval_request",
    "failed",
    "incomplete",
]
leaf = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.sampled_from(KINDS)
inner = st.dictionaries(st.sampled_from(WORDS), leaf, max_size=3)
an_object = st.dictionaries(st.sampled_from(WORDS), leaf | inner | st.lists(leaf | inner, max_size=2), max_size=6)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(an_object, st.lists(an_object, max_size=3))
def test_nothing_a_service_sends_is_a_crash(body: dict[str, Any], found: list[dict[str, Any]]) -> None:
    step = items.step_of({**body, "output": found}, 7.0)
    assert step.failure is not None or step.calls or step.actions or step.answer is not None
    remote_agent(body)
    remote_conversation(body)
    assert len([items.entry(item) for item in found]) == len(found)
    last = history.last_step(found)
    assert last is None or last.calls or last.actions or last.answer is not None

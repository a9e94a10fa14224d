"""A turn that the service holds open: races, cuts, lost replies, and states that nobody has documented."""

from __future__ import annotations

from typing import Any

import pytest

from agentfn.errors import NegativeError, ServiceError
from agentfn.model import Outcome
from tests.unit.backends.conftest import LOST, ok, page, refused
from tests.unit.backends.session_shapes import (
    ACCEPTED,
    ACTION,
    ASKS,
    BEGUN,
    CALL,
    ENDS,
    EVENTS,
    ONE,
    SESSIONS,
    STAMP,
    done,
    event,
    item,
    session,
    start,
    stream,
    submit,
    turn,
)


def test_a_turn_with_a_call_costs_two_requests(server, sessions, listener):
    server.expect(("POST", SESSIONS, stream(*BEGUN, ASKS, *ENDS)), ("POST", EVENTS, ACCEPTED))
    step = sessions.start(start(), listener)
    assert (step.id, step.calls, step.answer) == ("turn_1", (CALL,), None)
    assert listener.opened == ["sess_1"]
    assert server.seen[0].body["metadata"] == STAMP.metadata()
    assert sessions.submit(submit((CALL, Outcome(output="sunny"))), listener).answer == "sunny"
    sent = server.seen[1].body["events"]
    assert sent == [
        {
            "type": "agent.session.input.tool_result",
            "turn_id": "turn_1",
            "call_id": "exec_1",
            "success": True,
            "output": "sunny",
        }
    ]


def test_commentary_is_no_part_of_the_answer_and_a_missing_phase_is(server, sessions, listener):
    said = [done(item("agent", "Let me see. ", phase="commentary")), done(item("agent", "A", phase=None), 1)]
    server.expect(("POST", SESSIONS, stream(*BEGUN, *said, *ENDS)))
    assert sessions.start(start(), listener).answer in ("Asunny", "sunnyA")


def test_what_nobody_has_documented_is_passed_over(server, sessions, listener):
    odd: list[dict[str, Any] | str] = [
        event("budget_hint", session=session()),
        {"type": "something.else", "event_id": "evt_x"},
        {"event_id": "evt_y"},
        ":\n\n",
        "data: no json\n\n",
        event("turn.thinking", turn_id="turn_1", turn="?"),
    ]
    server.expect(("POST", SESSIONS, stream(*BEGUN, *odd, *ENDS)))
    assert sessions.start(start(), listener).answer == "sunny"


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (
            [
                turn("failed", error={"code": "server_overloaded", "message": "too much"}),
                event("idle", session=session("idle")),
            ],
            "too much (server_overloaded)",
        ),
        ([turn("cancelled"), event("idle", session=session("idle"))], "the turn was cancelled"),
        ([event("failed", session=session("failed", error="the environment broke"))], "the environment broke"),
        ([event("budget_reached", session=session("budget_reached"))], "budget_reached"),
    ],
)
def test_a_turn_may_end_without_an_answer(server, sessions, listener, end, told):
    server.expect(("POST", SESSIONS, stream(*BEGUN, *end)))
    step = sessions.start(start(), listener)
    assert (step.failure, step.answer) == (told, None)


def test_actions_other_than_calls_are_shown_with_what_can_be_done(server, sessions, listener):
    actions: list[dict[str, Any]] = [
        {
            "type": "mcp_approval_request",
            "request_id": "req_1",
            "turn_id": "turn_1",
            "request": {"message": "Pay 5 €?"},
        },
        {"type": "environment_connection", "environment_id": "env_1"},
        {"type": "blood_sample", "id": "bs_1"},
    ]
    server.expect(
        ("POST", SESSIONS, stream(*BEGUN, event("requires_action", session=session("requires_action", *actions))))
    )
    step = sessions.start(start(), listener)
    assert (step.calls, step.answer) == ((), None)
    assert [(action.type, action.id) for action in step.actions] == [
        ("mcp_approval_request", "req_1"),
        ("environment_connection", "env_1"),
        ("blood_sample", "bs_1"),
    ]
    assert "Pay 5 €?" in step.actions[0].advice
    assert "does not know" in step.actions[2].advice


# Where the connection breaks -----------------------------------------------------------------------------------------


def test_a_session_whose_creation_got_no_answer_is_found_and_not_made_twice(server, sessions, listener):
    found = session("requires_action", ACTION, metadata=STAMP.metadata())
    server.expect(
        ("POST", SESSIONS, LOST),
        ("GET", SESSIONS, page([])),  # the list lags behind
        ("GET", SESSIONS, page([session(metadata={"agentfn-id": "another's"}), found])),
        ("GET", EVENTS, stream()),
        ("GET", ONE, ok(found)),
    )
    step = sessions.start(start(), listener)
    assert (step.calls, listener.opened) == ((CALL,), ["sess_1"])


def test_a_creation_stream_that_breaks_after_the_name_is_gone_on_with(server, sessions, listener):
    server.expect(
        ("POST", SESSIONS, stream(*BEGUN)),  # ends where it should not
        ("GET", EVENTS, stream(ASKS)),
        ("GET", ONE, ok(session("requires_action", ACTION))),
    )
    assert sessions.start(start(), listener).calls == (CALL,)
    assert len(listener.retries) == 1


def test_a_turn_that_ended_while_nobody_watched_is_read_from_its_items(server, sessions, listener):
    ended = {"id": "turn_1", "status": "completed", "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}}
    server.expect(
        ("POST", SESSIONS, stream(*BEGUN)),
        ("GET", EVENTS, stream()),
        ("GET", ONE, ok(session("idle"))),
        ("GET", f"{ONE}/turns/turn_1", ok(ended)),
        ("GET", f"{ONE}/turns/turn_1/items", page([item("user", "hi"), item("agent", "sunny")])),
    )
    step = sessions.start(start(), listener)
    assert step.answer == "sunny"
    assert step.usage is not None
    assert step.usage.total_tokens == 5


def test_a_stream_that_says_nothing_is_a_reason_to_look(server, sessions, listener, clock):
    clock.step = 3.0
    server.expect(
        ("POST", SESSIONS, stream(*BEGUN, ":\n\n", ":\n\n", ":\n\n", *ENDS)),
        ("GET", ONE, ok(session("requires_action", ACTION))),
    )
    assert sessions.start(start(), listener).calls == (CALL,)


def test_a_snapshot_from_before_our_result_is_not_believed(server, sessions, listener):
    second = {**ACTION, "call_id": "exec_2"}
    server.expect(
        (
            "POST",
            SESSIONS,
            stream(*BEGUN, ASKS, event("requires_action", session=session("requires_action", ACTION)), *ENDS),
        ),
        ("POST", EVENTS, ACCEPTED),
        ("GET", ONE, ok(session("requires_action", ACTION, second))),
    )
    sessions.start(start(), listener)
    step = sessions.submit(submit((CALL, Outcome(output="x"))), listener)
    assert [call.id for call in step.calls] == ["exec_2"]


# Results -------------------------------------------------------------------------------------------------------------

UNKNOWN = refused(400, "invalid_request_error", "Unknown pending tool call: exec_1")


def test_a_call_that_does_not_take_its_result_yet_is_asked_again(server, sessions, listener, slept):
    server.expect(
        ("POST", SESSIONS, stream(*BEGUN, ASKS, *ENDS)),
        ("POST", EVENTS, UNKNOWN),
        ("GET", ONE, ok(session("requires_action", ACTION))),
        ("POST", EVENTS, ACCEPTED),
    )
    sessions.start(start(), listener)
    assert sessions.submit(submit((CALL, Outcome(output="x"))), listener).answer == "sunny"
    assert len(slept) == 1
    assert server.seen[1].raw == server.seen[3].raw
    assert server.seen[1].headers["idempotency-key"] == server.seen[3].headers["idempotency-key"]


def test_a_call_that_is_not_listed_any_more_is_given_up(server, sessions, listener, slept):
    server.expect(("GET", EVENTS, stream()), ("POST", EVENTS, UNKNOWN), ("GET", ONE, ok(session("idle"))))
    with pytest.raises(NegativeError) as caught:
        sessions.submit(submit((CALL, Outcome(output="x"))), listener)
    assert caught.value.code == "call_not_waiting"
    assert slept == []


def test_a_conflict_is_final_and_costs_one_request(server, sessions, listener, slept):
    refusal = refused(409, "conflict_error", "The tool call already has a different result.")
    server.expect(("GET", EVENTS, stream()), ("POST", EVENTS, refusal))
    with pytest.raises(NegativeError, match="different result") as caught:
        sessions.submit(submit((CALL, Outcome(output="x"))), listener)
    assert caught.value.code == "result_refused"
    assert slept == []


def test_a_result_whose_fate_is_unknown_goes_out_again_as_it_was(server, sessions, listener):
    server.expect(
        ("POST", SESSIONS, stream(*BEGUN, ASKS, *ENDS)),
        ("POST", EVENTS, LOST),
        ("POST", EVENTS, refused(503, None)),
        ("POST", EVENTS, ACCEPTED),
    )
    sessions.start(start(), listener)
    assert sessions.submit(submit((CALL, Outcome(error="no"))), listener).answer == "sunny"
    assert len({seen.raw for seen in server.seen[1:]}) == 1


@pytest.mark.parametrize(
    "refusal",
    [
        refused(413, None, "Payload too large"),
        ok({"error": {"message": "string too long", "param": "events[0].output", "code": "x"}}, status=400),
    ],
)
def test_one_result_that_is_too_large_does_not_take_the_others_along(server, sessions, listener, refusal):
    server.expect(("GET", EVENTS, stream()), ("POST", EVENTS, refusal), ("POST", EVENTS, ACCEPTED))
    other = CALL._replace(id="exec_2")
    with pytest.raises(ServiceError) as caught:
        sessions.submit(submit((CALL, Outcome(output="x" * 100)), (other, Outcome(output="y"))), listener)
    assert caught.value.code == "output_too_large"
    assert server.seen[2].body["events"][0]["call_id"] == "exec_2"

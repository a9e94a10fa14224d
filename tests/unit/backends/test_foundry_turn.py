"""A turn on Foundry: what is sent, what is understood of the answer, and what a refusal becomes."""

from __future__ import annotations

import pytest

from agentfn.errors import NegativeError, PendingError, ServiceError
from agentfn.model import Call, Outcome, Usage
from tests.unit.backends.conftest import NOW, ok, page, refused
from tests.unit.backends.shapes import (
    CONVERSATIONS,
    ITEMS,
    RESPONSES,
    STAMP,
    call_item,
    output_item,
    response,
    said,
    start,
    submit,
)

CALL = Call("call_A1", "get_weather", '{"city": "Oslo"}')
LOCKED = refused(400, "conversation_locked", "Another process is currently operating on this conversation.")


def test_a_new_conversation_is_told_of_before_the_message_goes_out(server, backend, listener):
    server.expect(
        ("POST", CONVERSATIONS, ok({"id": "conv_1", "object": "conversation"})),
        ("POST", RESPONSES, ok(response(call_item()))),
    )
    known_at: list[int] = []
    listener.conversation_opened = lambda _: known_at.append(len(server.seen))
    step = backend.start(start(conversation=None), listener)
    assert known_at == [1]
    assert server.seen[0].body == {"metadata": STAMP.metadata()}
    assert step.calls == (CALL,)
    assert (step.answer, step.version, step.usage) == (None, "3", Usage(5, 2, 7))
    assert (step.created_at, step.service_now) == (NOW - 10, NOW)


def test_all_outcomes_go_in_one_request_in_the_calls_order(server, backend, listener):
    server.expect(("POST", RESPONSES, ok(response(said("done")))))
    image = [{"type": "input_image", "image_url": "data:,"}]
    step = backend.submit(
        submit(
            ("call_B", Outcome(output="")),
            ("call_A", Outcome(error="no wörd")),
            ("call_C", Outcome(content=image)),
        ),
        listener,
    )
    assert server.seen[0].body == {
        "agent_reference": {"type": "agent_reference", "name": "demo", "version": "3"},
        "conversation": "conv_1",
        "input": [
            {"type": "function_call_output", "call_id": "call_B", "output": ""},
            {"type": "function_call_output", "call_id": "call_A", "output": '{"error": "no wörd"}'},
            {"type": "function_call_output", "call_id": "call_C", "output": image},
        ],
        "metadata": {"agentfn-turn": "turn_1"},
    }
    assert step.answer == "done"


def test_half_a_surrogate_pair_is_sent_as_the_escape_it_came_as(server, backend, listener):
    server.expect(("POST", RESPONSES, ok(response(said("done")))))
    backend.start(start("half: \ud83d"), listener)
    assert b"half: \\ud83d" in server.seen[0].raw
    server.seen[0].raw.decode("utf-8")


def test_a_throttled_request_is_sent_again_with_the_same_bytes(server, backend, listener, slept):
    server.expect(
        ("POST", RESPONSES, refused(429, "rate_limit_exceeded", retry_after="2")),
        ("POST", RESPONSES, refused(429, "rate_limit_exceeded", retry_after_ms="250", retry_after="9")),
        ("POST", RESPONSES, ok(response(said("done")))),
    )
    assert backend.submit(submit(), listener).answer == "done"
    assert slept == [2, 0.25]
    assert len({seen.raw for seen in server.seen}) == 1
    assert listener.retries == ["the service answered 429 rate_limit_exceeded"] * 2


def test_a_quota_is_not_waited_for(server, backend, listener, slept):
    server.expect(("POST", RESPONSES, refused(429, "insufficient_quota", "You exceeded your current quota.")))
    with pytest.raises(ServiceError, match="exceeded your current quota") as caught:
        backend.start(start(), listener)
    assert slept == []
    assert caught.value.hint is not None
    assert "agentfn cleanup" in caught.value.hint


def test_a_throttle_without_end_ends_and_is_known_to_have_changed_nothing(server, backend, listener, slept):
    server.expect(*[("POST", RESPONSES, refused(429, "429"))] * 5)
    with pytest.raises(ServiceError, match="still throttled") as caught:
        backend.start(start(), listener)
    assert (caught.value.code, caught.value.status, caught.value.request_id) == ("throttled", 429, "req_9")
    assert slept == [0.5, 1, 2, 4]


def test_a_wait_above_the_budget_is_refused_by_name(server, backend, listener, slept):
    server.expect(("POST", RESPONSES, refused(429, None, retry_after="86400")))
    with pytest.raises(ServiceError, match="wait 86400 s") as caught:
        backend.start(start(), listener)
    assert caught.value.status == 429
    assert slept == []


def test_a_locked_conversation_is_waited_for_a_little_and_then_named(server, backend, listener, slept):
    server.expect(*[("POST", RESPONSES, LOCKED)] * 5)
    with pytest.raises(ServiceError, match="Another process") as caught:
        backend.submit(submit(), listener)
    assert (caught.value.code, caught.value.status) == ("conversation_locked", 400)
    assert slept == [0.5, 1, 2, 4]


def test_an_unanswered_call_is_pending_and_names_the_call(server, backend, listener):
    message = "No tool output found for function call call_A1."
    server.expect(("POST", RESPONSES, refused(400, None, message)))
    with pytest.raises(PendingError, match="call_A1 still waits") as caught:
        backend.start(start(), listener)
    assert caught.value.code == "unanswered_call"


def test_an_output_that_the_service_does_not_see_is_not_blamed_on_the_user(server, backend, listener):
    server.expect(("POST", RESPONSES, refused(400, None, "No tool output found for function call call_A1.")))
    with pytest.raises(ServiceError) as caught:
        backend.submit(submit(("call_Z", Outcome(output="1")), ("call_A1", Outcome(output="2"))), listener)
    assert "call_A1 has no output, though this request carried outputs for call_Z, call_A1" in caught.value.message
    assert "req_9" in caught.value.message
    assert caught.value.hint == "agentfn respond sends them again"


def test_an_expired_run_says_since_when_it_ran_and_what_to_do(server, backend, listener):
    server.expect(
        ("POST", RESPONSES, refused(400, None, 'Runs in status "expired" do not accept tool outputs.')),
        ("GET", f"{RESPONSES}/resp_1", ok(response(call_item()))),
    )
    with pytest.raises(NegativeError, match="ten minutes") as caught:
        backend.submit(submit(), listener)
    assert caught.value.code == "expired"
    assert "2027-01-15 07:59:50 UTC" in caught.value.message
    assert "kept in the journal" in caught.value.message


def test_an_expired_run_is_named_even_where_its_response_is_gone(server, backend, listener):
    server.expect(
        ("POST", RESPONSES, refused(400, "run_expired", "too late")),
        ("GET", f"{RESPONSES}/resp_1", refused(404, None, "Response with id 'resp_1' not found.")),
    )
    with pytest.raises(NegativeError) as caught:
        backend.submit(submit(), listener)
    assert caught.value.code == "expired"


# Reading where a conversation stands -------------------------------------------------------------------------------


def test_look_finds_the_calls_that_wait_and_when_they_were_asked_for(server, backend):
    newest_first = [
        call_item("call_B"),
        call_item("call_A"),
        said("hi", role="user"),
        said("old answer", response="resp_0"),
    ]
    server.expect(
        ("GET", ITEMS, page(newest_first, more=True, last="msg_x")),
        ("GET", f"{RESPONSES}/resp_1", ok(response(call_item("call_A"), call_item("call_B")))),
    )
    look = backend.look("conv_1")
    assert [call.id for call in look.waiting] == ["call_A", "call_B"]
    assert look.step is not None
    assert (look.step.id, look.step.created_at, look.step.service_now) == ("resp_1", NOW - 10, NOW)
    assert look.agent == ("demo", "3", None)
    assert "order=desc" in server.seen[0].query, "a long conversation is not read from its beginning"


def test_look_reads_on_until_it_has_the_whole_turn(server, backend):
    server.expect(
        ("GET", ITEMS, page([call_item("call_C", "resp_2"), output_item("call_A")], more=True, last="fco_call_A")),
        ("GET", ITEMS, page([call_item("call_A"), said("hi", role="user")], more=True, last="msg_hi")),
        ("GET", f"{RESPONSES}/resp_2", ok(response(identity="resp_2"))),
    )
    look = backend.look("conv_1")
    assert [call.id for call in look.waiting] == ["call_C"]
    assert look.answered == {"call_A"}
    assert "after=fco_call_A" in server.seen[1].query


def test_look_without_a_kept_response_counts_from_the_services_clock(server, backend):
    server.expect(
        ("GET", ITEMS, page([call_item(), said("hi", role="user")])),
        ("GET", f"{RESPONSES}/resp_1", refused(404, None, "Response with id 'resp_1' not found.")),
    )
    step = backend.look("conv_1").step
    assert step is not None
    assert (step.created_at, step.service_now) == (NOW, NOW)


def test_look_at_an_answered_conversation_gives_its_last_answer(server, backend):
    server.expect(
        ("GET", ITEMS, page([said("sunny"), output_item(), call_item(response="resp_0"), said("hi", role="user")])),
        ("GET", f"{RESPONSES}/resp_1", ok(response(said("sunny")))),
    )
    look = backend.look("conv_1")
    assert look.step is not None
    assert (look.waiting, look.step.answer, look.step.usage) == ((), "sunny", Usage(5, 2, 7))


def test_look_at_a_conversation_that_is_empty_or_gone(server, backend):
    server.expect(
        ("GET", ITEMS, page([])),
        ("GET", ITEMS, refused(404, "not_found", "Conversation 'conv_1' not found")),
    )
    look = backend.look("conv_1")
    assert (look.exists, look.waiting, look.step) == (True, (), None)
    assert backend.look("conv_1").exists is False


def test_look_sees_an_approval_that_no_function_output_can_give(server, backend):
    approval = {"type": "mcp_approval_request", "id": "mcpr_1", "name": "search", "response_id": "resp_1"}
    server.expect(
        ("GET", ITEMS, page([approval, said("I need your word"), said("hi", role="user")])),
        ("GET", f"{RESPONSES}/resp_1", ok(response())),
    )
    step = backend.look("conv_1").step
    assert step is not None
    assert [(action.type, action.id) for action in step.actions] == [("mcp_approval_request", "mcpr_1")]
    assert step.answer is None

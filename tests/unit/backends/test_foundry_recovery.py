"""Requests whose fate is unknown: the conversation is read before anything is sent again, and nothing goes out twice."""

from __future__ import annotations

import pytest

from agentfn.errors import NegativeError, ServiceError
from tests.unit.backends.conftest import LOST, Answer, ok, page, refused
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

MESSAGE = said("Weather in Oslo?", role="user")
WHOLE = ok(response(call_item()))
LOCKED = refused(400, "conversation_locked", "Another process is currently operating on this conversation.")
NO_CALL = refused(400, None, "No tool call found for function call output with call_id call_A1.")
#: Every way in which an answer says nothing of the request's fate.
SAYS_NOTHING = {
    "cut before a byte": LOST,
    "cut in the middle": WHOLE._replace(cut="mid"),
    "500": refused(500, "server_error"),
    "502 page": Answer(502, b"<html><title>Bad gateway</title></html>", (("Content-Type", "text/html"),)),
    "408": refused(408, "Timeout", "The operation was timeout."),
    "200 without JSON": Answer(200, b"<html>login</html>"),
}


@pytest.mark.parametrize("answer", SAYS_NOTHING.values(), ids=SAYS_NOTHING)
def test_a_message_that_did_not_arrive_is_sent_again_with_the_same_bytes(server, backend, listener, answer):
    server.expect(
        ("POST", RESPONSES, answer),
        ("GET", ITEMS, page([])),
        ("POST", RESPONSES, WHOLE),
    )
    assert backend.start(start(), listener).calls[0].id == "call_A1"
    assert server.seen[0].raw == server.seen[2].raw
    assert len(listener.retries) == 1


@pytest.mark.parametrize("answer", SAYS_NOTHING.values(), ids=SAYS_NOTHING)
def test_a_message_that_arrived_is_never_sent_again(server, backend, listener, answer):
    server.expect(
        ("POST", RESPONSES, answer),
        ("GET", ITEMS, page([MESSAGE, call_item()])),
        ("GET", f"{RESPONSES}/resp_1", WHOLE),
    )
    step = backend.start(start(), listener)
    assert [call.id for call in step.calls] == ["call_A1"]
    assert (step.id, step.usage.total_tokens, step.version) == ("resp_1", 7, "3")


def test_a_message_that_arrived_and_was_answered_gives_the_answer(server, backend, listener):
    server.expect(
        ("POST", RESPONSES, LOST),
        ("GET", ITEMS, page([said("Hello", role="user"), said("Hi", response="resp_0"), MESSAGE, said("Sunny")])),
        ("GET", f"{RESPONSES}/resp_1", ok(response(said("Sunny")))),
    )
    assert backend.start(start(), listener).answer == "Sunny"


def test_an_incomplete_answer_found_there_is_still_incomplete(server, backend, listener):
    cut_short = response(said("Sun"), status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    server.expect(
        ("POST", RESPONSES, LOST),
        ("GET", ITEMS, page([MESSAGE, said("Sun")])),
        ("GET", f"{RESPONSES}/resp_1", ok(cut_short)),
    )
    step = backend.start(start(), listener)
    assert (step.answer, step.failure) == ("Sun", "the answer is incomplete: max_output_tokens")


def test_where_the_message_is_there_without_an_answer_the_model_is_asked_to_go_on(server, backend, listener):
    server.expect(
        ("POST", RESPONSES, LOST),
        ("GET", ITEMS, page([MESSAGE])),
        ("POST", RESPONSES, ok(response(said("Sunny")))),
    )
    assert backend.start(start(), listener).answer == "Sunny"
    assert server.seen[2].body == {**server.seen[0].body, "input": []}


def test_the_same_message_of_an_earlier_turn_is_not_taken_for_this_one(server, backend, listener):
    earlier = [MESSAGE, said("Sunny")]
    server.expect(
        ("POST", RESPONSES, LOST),
        ("GET", ITEMS, page(earlier)),
        ("POST", RESPONSES, LOST),
        ("GET", ITEMS, page([*earlier, MESSAGE, said("Rainy", response="resp_2")])),
        ("GET", f"{RESPONSES}/resp_2", ok(response(said("Rainy"), identity="resp_2"))),
    )
    assert backend.start(start(earlier_same=1), listener).answer == "Rainy"


def test_outputs_that_did_not_arrive_are_sent_again_with_the_same_bytes(server, backend, listener):
    server.expect(
        ("POST", RESPONSES, LOST),
        ("GET", ITEMS, page([MESSAGE, call_item()])),
        ("POST", RESPONSES, ok(response(said("Sunny")))),
    )
    assert backend.submit(submit(), listener).answer == "Sunny"
    assert server.seen[0].raw == server.seen[2].raw


def test_outputs_that_arrived_are_never_sent_again(server, backend, listener):
    server.expect(
        ("POST", RESPONSES, refused(503, None)),
        ("GET", ITEMS, page([MESSAGE, call_item(response="resp_0"), output_item()])),
        ("POST", RESPONSES, LOST),
        ("GET", ITEMS, page([MESSAGE, call_item(response="resp_0"), output_item(), said("Sunny")])),
        ("GET", f"{RESPONSES}/resp_1", ok(response(said("Sunny")))),
    )
    assert backend.submit(submit(), listener).answer == "Sunny"
    sent = [seen.body["input"] for seen in server.seen if seen.method == "POST"]
    assert sent[1] == [], "the model goes on from the history"


def test_a_lost_request_that_still_computes_is_waited_for_and_found(server, backend, listener, slept):
    """Sending the same bytes when the lock is gone would say everything twice: each wait ends with reading."""
    server.expect(
        ("POST", RESPONSES, LOST),
        ("GET", ITEMS, page([])),
        *[("POST", RESPONSES, LOCKED), ("GET", ITEMS, page([]))] * 6,
        ("POST", RESPONSES, LOCKED),
        ("GET", ITEMS, page([MESSAGE, call_item()])),
        ("GET", f"{RESPONSES}/resp_1", WHOLE),
    )
    assert backend.start(start(), listener).calls[0].id == "call_A1"
    assert len(slept) == 8, "the time bounds it, not the number of attempts"


def test_a_lock_that_outlasts_the_budget_leaves_the_fate_open(server, backend, listener, slept):
    server.expect(
        ("POST", RESPONSES, LOST),
        ("GET", ITEMS, page([])),
        *[("POST", RESPONSES, LOCKED), ("GET", ITEMS, page([]))] * 9,
        ("POST", RESPONSES, LOCKED),
    )
    with pytest.raises(ServiceError) as caught:
        backend.start(start(), listener)
    assert (caught.value.code, caught.value.status) == ("unknown_fate", None)
    assert 50 < sum(slept) <= 60


def test_a_throttle_after_a_lost_request_ends_with_reading_too(server, backend, listener):
    server.expect(
        ("POST", RESPONSES, LOST),
        ("GET", ITEMS, page([MESSAGE, call_item()])),
        ("GET", f"{RESPONSES}/resp_1", WHOLE),
        ("POST", RESPONSES, LOST),
        ("GET", ITEMS, page([MESSAGE, call_item()])),
        ("POST", RESPONSES, refused(429, None, retry_after="1")),
        ("GET", ITEMS, page([MESSAGE, call_item(), output_item(), said("Sunny", response="resp_2")])),
        ("GET", f"{RESPONSES}/resp_2", ok(response(said("Sunny"), identity="resp_2"))),
    )
    backend.start(start(), listener)
    assert backend.submit(submit(), listener).answer == "Sunny"


def test_a_refusal_because_the_lost_request_had_arrived_is_no_error(server, backend, listener):
    server.expect(
        ("POST", RESPONSES, LOST),
        ("GET", ITEMS, page([MESSAGE, call_item()])),
        ("POST", RESPONSES, NO_CALL),
        ("GET", ITEMS, page([MESSAGE, call_item(), output_item(), said("Sunny", response="resp_2")])),
        ("GET", f"{RESPONSES}/resp_2", ok(response(said("Sunny"), identity="resp_2"))),
    )
    assert backend.submit(submit(), listener).answer == "Sunny"


def test_a_refusal_after_a_lost_request_that_did_not_arrive_is_told(server, backend, listener):
    server.expect(
        ("POST", RESPONSES, LOST),
        ("GET", ITEMS, page([MESSAGE, call_item()])),
        ("POST", RESPONSES, NO_CALL),
        ("GET", ITEMS, page([MESSAGE, call_item()])),
    )
    with pytest.raises(NegativeError) as caught:
        backend.submit(submit(), listener)
    assert caught.value.code == "call_not_waiting"


def test_a_service_that_stays_down_leaves_the_fate_open(server, backend, listener, slept):
    down = refused(500, "server_error", "kaputt")
    server.expect(
        *[("POST", RESPONSES, down), ("GET", ITEMS, page([]))] * 4,
        ("POST", RESPONSES, down),
    )
    with pytest.raises(ServiceError, match=r"server_error: kaputt \[request req_9\]") as caught:
        backend.start(start(), listener)
    assert (caught.value.code, caught.value.status) == ("unknown_fate", None)
    assert slept == [0.5, 1, 2, 4]


def test_a_conversation_that_is_gone_meanwhile_is_named(server, backend, listener):
    server.expect(
        ("POST", RESPONSES, LOST),
        ("GET", ITEMS, refused(404, "not_found", "Conversation 'conv_1' not found")),
    )
    with pytest.raises(NegativeError, match="conv_1 is gone"):
        backend.start(start(), listener)


# What an earlier process may have sent ------------------------------------------------------------------------------


def test_outputs_that_somebody_may_have_sent_are_looked_for_first(server, backend, listener, slept):
    asked = [MESSAGE, call_item(response="resp_0")]
    sunny = ok(response(said("Sunny")))
    server.expect(
        ("GET", ITEMS, page([*asked, output_item(), said("Sunny")])),
        ("GET", f"{RESPONSES}/resp_1", sunny),
        ("GET", ITEMS, page([*asked, output_item()])),
        ("POST", RESPONSES, sunny),
        ("GET", ITEMS, page(asked)),
        ("POST", RESPONSES, sunny),
    )
    assert [backend.submit(submit(maybe_sent=True), listener).answer for _ in range(3)] == ["Sunny"] * 3
    inputs = [seen.body["input"] for seen in server.seen if seen.method == "POST"]
    assert inputs == [[], [{"type": "function_call_output", "call_id": "call_A1", "output": "sunny"}]]
    assert slept == []


# Opening a conversation ----------------------------------------------------------------------------------------------


def test_a_conversation_whose_creation_was_not_confirmed_is_found_by_its_stamp(server, backend, listener):
    listed = [{"id": "conv_0"}, {"id": "conv_1", "metadata": STAMP.metadata(), "created_at": 1}]
    server.expect(
        ("POST", CONVERSATIONS, LOST),
        ("GET", CONVERSATIONS, page(listed, more=True, last="conv_1")),
        ("POST", RESPONSES, WHOLE),
    )
    backend.start(start(conversation=None), listener)
    assert listener.opened == ["conv_1"]


@pytest.mark.parametrize("answer", [LOST, ok({"object": "conversation"}), Answer(200, b"hello")])
def test_a_conversation_that_was_not_made_is_made_again(server, backend, listener, answer):
    server.expect(
        ("POST", CONVERSATIONS, answer),
        ("GET", CONVERSATIONS, page([{"id": "conv_0", "metadata": None}])),
        ("POST", CONVERSATIONS, ok({"id": "conv_1"})),
        ("POST", RESPONSES, WHOLE),
    )
    backend.start(start(conversation=None), listener)
    assert server.seen[0].raw == server.seen[2].raw
    assert listener.opened == ["conv_1"]

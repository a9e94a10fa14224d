"""Messages on sessions that are there already, looking at sessions, and removing them."""

from __future__ import annotations

import pytest

from agentfn.errors import PendingError, ServiceError
from agentfn.model import AgentRef
from tests.unit.backends.conftest import LOST, ok, page, refused
from tests.unit.backends.session_shapes import (
    ACCEPTED,
    ACTION,
    BEGUN,
    ENDS,
    EVENTS,
    ONE,
    STAMP,
    event,
    item,
    session,
    start,
    stream,
)

# Messages on a session that is there already -------------------------------------------------------------------------


def test_a_message_goes_out_on_an_idle_session_with_the_stream_open_before(server, sessions, listener):
    server.expect(
        ("GET", ONE, ok(session("idle"))), ("GET", EVENTS, stream(*BEGUN[1:], *ENDS)), ("POST", EVENTS, ACCEPTED)
    )
    assert sessions.start(start(conversation="sess_1"), listener).answer == "sunny"
    assert server.seen[1].query == "include_obfuscation=false"
    (sent,) = server.seen[2].body["events"]
    assert sent["input"] == [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}]


def test_the_turn_of_another_writer_is_not_taken_for_ours(server, sessions, listener):
    other = {"id": "turn_0", "status": "completed"}
    theirs = [
        event("turn.created", turn_id="turn_0", turn={**other, "status": "queued"}),
        event("turn.item.added", turn_id="turn_0", item=item("user", "theirs")),
        event("turn.item.done", turn_id="turn_0", output_index=0, item=item("agent", "not for us")),
        event("turn.completed", turn_id="turn_0", turn=other),
        event("idle", session=session("idle")),
    ]
    server.expect(
        ("GET", ONE, ok(session("idle"))),
        ("GET", EVENTS, stream(*theirs, *BEGUN[1:], *ENDS)),
        ("POST", EVENTS, ACCEPTED),
    )
    assert sessions.start(start(conversation="sess_1"), listener).answer == "sunny"
    assert listener.turns == ["turn_1"]


@pytest.mark.parametrize(
    ("state", "error", "code"),
    [
        (session("requires_action", ACTION), PendingError, "unanswered_call"),
        (session("requires_action", {"type": "blood_sample", "id": "b"}), PendingError, "other_action"),
        (session("in_progress"), ServiceError, "conversation_locked"),
    ],
)
def test_nothing_is_said_into_a_turn_that_is_not_over(server, sessions, listener, state, error, code):
    server.expect(("GET", ONE, ok(state)))
    with pytest.raises(error) as caught:
        sessions.start(start(conversation="sess_1"), listener)
    assert caught.value.code == code


def test_a_message_whose_fate_is_unknown_is_looked_for_before_it_goes_out_again(server, sessions, listener):
    server.expect(
        ("GET", ONE, ok(session("idle"))),
        ("GET", EVENTS, stream(*BEGUN[1:], *ENDS)),
        ("POST", EVENTS, LOST),
        ("GET", ONE, ok(session("in_progress"))),
        ("GET", f"{ONE}/items", page([item("user", "hi")])),
        ("POST", EVENTS, ACCEPTED),
    )
    # It was said once before, so what is there is not ours: the same bytes go out again with the same key.
    assert sessions.start(start(conversation="sess_1", earlier_same=1), listener).answer == "sunny"
    assert server.seen[2].headers["idempotency-key"] == server.seen[5].headers["idempotency-key"]


def test_an_idle_session_does_not_yet_mean_that_our_turn_is_over(server, sessions, listener, clock):
    clock.step = 3.0
    server.expect(
        ("GET", ONE, ok(session("idle"))),
        ("GET", EVENTS, stream(":\n\n", ":\n\n", *BEGUN[1:], *ENDS)),
        ("POST", EVENTS, ACCEPTED),
        ("GET", ONE, ok(session("idle"))),
        ("GET", f"{ONE}/items", page([])),
    )
    assert sessions.start(start(conversation="sess_1"), listener).answer == "sunny"


def test_what_is_set_up_yet_is_waited_for(server, sessions, listener, slept):
    busy = refused(409, "conflict_error", "session initial input is still pending")
    server.expect(
        ("GET", ONE, ok(session("idle"))),
        ("GET", EVENTS, stream(*BEGUN[1:], *ENDS)),
        ("POST", EVENTS, busy),
        ("POST", EVENTS, ACCEPTED),
    )
    assert sessions.start(start(conversation="sess_1"), listener).answer == "sunny"
    assert len(slept) == 1


# Looking and removing ------------------------------------------------------------------------------------------------


def test_a_session_that_computes_is_running(server, sessions):
    server.expect(("GET", ONE, ok(session("in_progress"))))
    look = sessions.look("sess_1")
    assert (look.exists, look.running, look.step, look.waiting) == (True, True, None, ())


def test_a_session_that_waits_is_cancelled_before_it_is_deleted(server, sessions, slept):
    busy = refused(409, "conflict_error", "session must be durably idle or failed without required actions")
    server.expect(
        ("DELETE", ONE, busy),
        ("POST", EVENTS, ACCEPTED),
        ("DELETE", ONE, ok({"id": "sess_1", "deleted": True})),
    )
    assert sessions.delete_conversation("sess_1") is True
    assert server.seen[1].body == {"events": [{"type": "agent.session.input.cancel"}]}
    assert len(slept) == 1


def test_an_agent_whose_creation_got_no_answer_is_found_by_its_stamp(server, sessions, tmp_path):
    from agentfn.definition.agent import Agent

    mine = {"id": "agent_9", "name": "demo", "metadata": STAMP.metadata()}
    server.expect(("POST", "/agents", LOST), ("GET", "/agents", page([])), ("GET", "/agents", page([mine])))
    ref = sessions.create_agent(Agent("demo", "m", None), STAMP)
    assert ref == AgentRef("demo", "agent_9", "agent_9")

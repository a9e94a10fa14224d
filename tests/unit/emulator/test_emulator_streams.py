"""Streamed and background responses (foundry.md §4.6, §4.7)."""

from __future__ import annotations

import threading

import pytest

from tests.unit.emulator.in_process import call_ids, output, said

CALL = {"call": {"get_horoscope": {"sign": "Aquarius"}}}
REFERENCE = {"agent_reference": {"type": "agent_reference", "name": "bot"}}


def open_stream(service, **body):
    _, headers, chunks = service.open(
        "POST", "/api/projects/p/openai/v1/responses", {**REFERENCE, "input": "x", "stream": True, **body}
    )
    assert headers["content-type"] == "text/event-stream; charset=utf-8"
    assert headers["x-agentfn-model"] == "scenario"
    return chunks


def kinds(events):
    """Return the events' types, each run of deltas as one."""
    types = [event["type"].removeprefix("response.") for event in events]
    return [kind for index, kind in enumerate(types) if not (kind.endswith(".delta") and kind == types[index - 1])]


def test_the_events_of_a_function_call(play):
    events = play(CALL).ask("x", stream=True).events
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert kinds(events) == [
        "created",
        "in_progress",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    assert events[0]["response"]["status"] == "in_progress"
    added, done = (next(e for e in events if e["type"] == f"response.output_item.{k}") for k in ("added", "done"))
    assert (added["item"]["arguments"], added["item"]["status"]) == ("", "in_progress")
    deltas = [event["delta"] for event in events if event["type"].endswith("arguments.delta")]
    assert len(deltas) > 1
    assert "".join(deltas) == done["item"]["arguments"] == '{"sign": "Aquarius"}'
    assert events[-1]["response"]["output"] == [done["item"]]
    assert events[-1]["response"]["usage"]["total_tokens"] > 0


def test_the_events_of_a_text(play):
    events = play({"say": "A text that is longer than one delta."}).ask("x", stream=True).events
    assert kinds(events) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    deltas = [event["delta"] for event in events if event["type"].endswith("text.delta")]
    assert "".join(deltas) == "A text that is longer than one delta."


@pytest.mark.parametrize(
    ("step", "last"),
    [({"fail": {"message": "boom"}}, "response.failed"), ({"incomplete": "max_output_tokens"}, "response.incomplete")],
)
def test_the_last_event_says_how_it_ended(play, step, last):
    assert play(step).ask("x", stream=True).events[-1]["type"] == last


def test_a_stream_is_opened_at_once_and_stored_only_when_the_model_is_done(play):
    service = play({"say": "slow", "delay": "2500ms"}, {"say": "next"})
    conversation = service.conversation()
    chunks = open_stream(service, conversation=conversation)
    assert next(chunks) == b": open\n\n"
    assert next(chunks).startswith(b"event: response.created\n")
    assert next(chunks).startswith(b"event: response.in_progress\n")
    assert service.clock.slept == []
    assert next(chunks) == b": keep-alive\n\n"
    assert service.items(conversation) == []
    assert service.ask("y", conversation=conversation).error["code"] == "conversation_locked"
    rest = b"".join(chunks)
    assert b"response.completed" in rest
    assert service.clock.slept == [1.0, 1.0, 0.5]
    assert len(service.items(conversation)) == 2
    assert said(service.ask("y", conversation=conversation)) == "next"


def test_a_client_that_leaves_early_cancels_the_run(play):
    service = play({"say": "slow", "delay": "2s"})
    conversation = service.conversation()
    chunks = open_stream(service, conversation=conversation)
    for _ in range(4):
        next(chunks)
    chunks.close()
    chunks.close()
    assert list(chunks) == []
    assert service.items(conversation) == []
    assert said(service.ask("y", conversation=conversation)) == "slow"


def test_a_stream_may_be_closed_from_another_thread(play):
    service = play({"say": "slow", "delay": "2s"})
    chunks = open_stream(service)
    next(chunks)
    closer = threading.Thread(target=chunks.close)
    closer.start()
    closer.join()
    assert b"response.completed" not in b"".join(chunks)
    assert service.openai("GET", "responses").json["data"] == []


def test_the_next_request_may_come_with_the_last_event(play):
    service = play(CALL, {"say": "done"})
    conversation = service.conversation()
    chunks = open_stream(service, conversation=conversation)
    for chunk in chunks:
        if chunk.startswith(b"event: response.completed"):
            call_id = service.items(conversation)[-1]["call_id"]
            assert said(service.ask([output(call_id)], conversation=conversation)) == "done"


def test_an_error_before_the_stream_is_a_plain_error(play):
    service = play({"error": {"status": 503}})
    refused = service.ask("x", stream=True)
    assert (refused.status, refused.headers["content-type"]) == (503, "application/json; charset=utf-8")


def test_a_conversation_deleted_meanwhile_ends_the_stream_with_an_error(play):
    service = play({"say": "slow", "delay": "2s"})
    conversation = service.conversation()
    chunks = open_stream(service, conversation=conversation)
    next(chunks)
    service.openai("DELETE", f"conversations/{conversation}")
    assert b"event: error\n" in b"".join(chunks)
    assert service.openai("GET", "responses").json["data"] == []


# --- background ---


def look(service, identity, query=""):
    return service.openai("GET", f"responses/{identity}{query}")


def test_a_background_response_is_queued_and_done_when_its_time_has_come(play):
    service = play({**CALL, "delay": "5s"}, {"say": "done"})
    conversation = service.conversation()
    queued = service.ask("x", conversation=conversation, background=True).json
    assert (queued["status"], queued["output"], queued["background"]) == ("queued", [], True)
    assert "usage" not in queued
    assert service.clock.slept == []
    assert [item["type"] for item in service.items(conversation)] == ["message"]
    assert look(service, queued["id"]).json["status"] == "in_progress"
    locked = service.ask("y", conversation=conversation)
    assert locked.error["code"] == "conversation_locked"
    assert service.ask("y", previous_response_id=queued["id"]).status == 400
    assert (
        service.openai("DELETE", f"responses/{queued['id']}").error["message"] == "Cannot delete an in-flight response."
    )
    service.clock.now += 5
    done = look(service, queued["id"])
    assert (done.json["status"], len(call_ids(done))) == ("completed", 1)
    assert done.json["completed_at"] == queued["created_at"] + 5
    assert [item["type"] for item in service.items(conversation)] == ["message", "function_call"]
    assert said(service.ask([output(call_ids(done)[0])], conversation=conversation)) == "done"


def test_a_later_process_finishes_what_was_queued(play):
    queued = play({"say": "late", "delay": "5s"}).ask("x", background=True).json
    later = play()
    later.clock.now += 5
    assert said(look(later, queued["id"])) == "late"


def test_a_queued_response_is_finished_by_the_next_request_on_its_conversation(play):
    service = play({"say": "one", "delay": "5s"}, {"say": "two"})
    conversation = service.conversation()
    service.ask("x", conversation=conversation, background=True)
    service.clock.now += 5
    assert said(service.ask("y", conversation=conversation)) == "two"
    assert [item["role"] for item in service.items(conversation)] == ["user", "assistant", "user", "assistant"]


def test_cancelling(play):
    service = play({**CALL}, {"say": "x"})
    conversation = service.conversation()
    queued = service.ask("x", conversation=conversation, background=True).json["id"]
    for _ in range(2):
        cancelled = service.openai("POST", f"responses/{queued}/cancel")
        assert (cancelled.status, cancelled.json["status"], cancelled.json["output"]) == (200, "cancelled", [])
    assert look(service, queued).json["status"] == "cancelled"
    assert [item["type"] for item in service.items(conversation)] == ["message"]
    done = service.ask("y", background=True).json["id"]
    look(service, done)
    assert service.openai("POST", f"responses/{done}/cancel").error["message"] == "Cannot cancel a completed response."
    plain = service.ask("z").json["id"]
    assert (
        service.openai("POST", f"responses/{plain}/cancel").error["message"] == "Cannot cancel a synchronous response."
    )
    assert service.openai("POST", "responses/resp_nobody/cancel").status == 404


def test_a_background_stream_waits_and_can_be_read_again(play):
    service = play({"say": "some text to read", "delay": "1500ms"})
    events = service.ask("x", background=True, stream=True).events
    assert kinds(events)[-1] == "completed"
    assert service.clock.slept == [1.0, 0.5]
    identity = events[0]["response"]["id"]
    again = look(service, identity, "?stream=true").events
    assert again[-1] == events[-1]
    assert len(again) == len(events)
    assert look(service, identity, "?stream=true&starting_after=3").events == again[4:]
    assert look(service, identity, "?stream=true&starting_after=x").status == 400
    plain = service.ask("y", background=True).json["id"]
    assert look(service, plain, "?stream=true").status == 400


def test_a_cancelled_background_stream_ends_as_failed(play):
    service = play({"say": "x", "delay": "60s"})
    chunks = open_stream(service, background=True)
    for _ in range(3):
        next(chunks)
    identity = service.openai("GET", "responses").json["data"][0]["id"]
    service.openai("POST", f"responses/{identity}/cancel")
    last = b"".join(chunks)
    assert last.startswith(b"event: response.failed\n")
    assert b'"status": "cancelled"' in last

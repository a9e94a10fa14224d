"""Streamed turns: put together from events in any chunking; cut off, they are looked for and not asked for again."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from agentfn.errors import ServiceError
from tests.unit.backends.conftest import TOKEN, Answer, ok, page, refused, streamed
from tests.unit.backends.shapes import ITEMS, RESPONSES, call_item, response, said, start, submit

CREATED = {"type": "response.created", "response": response(status="in_progress")}
BEGUN = {"type": "response.output_item.added", "output_index": 0, "item": {**call_item(), "arguments": ""}}
DONE = {"type": "response.output_item.done", "output_index": 0, "item": call_item()}
EMPTY_END = {"type": "response.completed", "response": response()}
MESSAGE = said("Weather in Oslo?", role="user")


def sse(*events: Any, end: str = "\n") -> bytes:
    frames = [f"event: {event['type']}{end}data: {json.dumps(event, ensure_ascii=False)}{end}{end}" for event in events]
    return "".join(frames).encode()


def delta(text: str) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "output_index": 0, "delta": text, "obfuscation": "xyz"}


def test_text_is_handed_on_as_it_comes_and_unknown_events_are_passed_over(server, backend, listener):
    events = [CREATED, {"type": "response.of.tomorrow", "response": None}, delta("Sun"), delta("ny ✅"), {"type": 7}]
    end = {"type": "response.completed", "response": response(said("Sunny ✅"))}
    server.expect(("POST", RESPONSES, streamed(b": keep-alive\n\n" + sse(*events, end) + b"data: [DONE]\n\n")))
    step = backend.start(start(stream=True), listener)
    assert listener.pieces == ["Sun", "ny ✅"]
    assert (step.answer, step.usage.total_tokens) == ("Sunny ✅", 7)
    assert server.seen[0].body["stream"] is True


@pytest.mark.parametrize(
    "events",
    [
        (CREATED, BEGUN, DONE, EMPTY_END),
        (CREATED, BEGUN, {"type": "response.completed", "response": response(call_item())}),
        (
            CREATED,
            BEGUN,
            {
                "type": "response.function_call_arguments.done",
                "output_index": 0,
                "arguments": call_item()["arguments"],
            },
            EMPTY_END,
        ),
    ],
    ids=["items alone", "last event alone", "arguments alone"],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_call_is_found_wherever_the_service_puts_it(server, backend, listener, events, end):
    server.expect(("POST", RESPONSES, streamed(sse(*events, end=end))))
    (call,) = backend.start(start(stream=True), listener).calls
    assert call == ("call_A1", "get_weather", '{"city": "Oslo"}')


def test_arguments_that_never_end_are_no_arguments(server, backend, listener):
    server.expect(
        ("POST", RESPONSES, streamed(sse(CREATED, BEGUN, EMPTY_END))),
        ("GET", f"{RESPONSES}/resp_1", ok(response())),
    )
    with pytest.raises(ServiceError, match="the stream ended before the arguments of call_A1 were complete") as caught:
        backend.start(start(stream=True), listener)
    assert (caught.value.code, caught.value.hint) == ("stream_incomplete", "agentfn pending conv_1 asks for it again")
    assert "resp_1" in caught.value.message


def test_arguments_that_the_service_has_kept_whole_are_fetched(server, backend, listener):
    server.expect(
        ("POST", RESPONSES, streamed(sse(CREATED, BEGUN, EMPTY_END))),
        ("GET", f"{RESPONSES}/resp_1", ok(response(call_item()))),
    )
    assert backend.start(start(stream=True), listener).calls[0].arguments == '{"city": "Oslo"}'


@pytest.mark.parametrize("cut", [None, "before", "mid"])
def test_a_stream_that_breaks_off_is_looked_for_and_not_asked_for_again(server, backend, listener, cut):
    data = sse(CREATED, BEGUN) if cut is None else sse(CREATED, BEGUN, DONE, EMPTY_END)
    server.expect(
        ("POST", RESPONSES, streamed(data, cut=cut)),
        ("GET", ITEMS, page([MESSAGE, call_item()])),
        ("GET", f"{RESPONSES}/resp_1", ok(response(call_item()))),
    )
    assert backend.start(start(stream=True), listener).calls[0].id == "call_A1"


def test_a_throttle_before_the_stream_is_waited_out(server, backend, listener, slept):
    server.expect(
        ("POST", RESPONSES, refused(429, "429", retry_after="3")),
        ("POST", RESPONSES, streamed(sse(CREATED, DONE, EMPTY_END))),
    )
    backend.start(start(stream=True), listener)
    assert slept == [3]


def test_an_error_event_before_anything_began_is_a_refusal(server, backend, listener, slept):
    throttled = {"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": None}
    invalid = {
        "type": "error",
        "error": {"type": "invalid_request_error", "code": "bad", "message": f"no such {TOKEN}"},
    }
    server.expect(
        ("POST", RESPONSES, streamed(sse(throttled))),
        ("POST", RESPONSES, streamed(sse(invalid))),
    )
    with pytest.raises(ServiceError, match=r"no such \*\*\*") as caught:
        backend.submit(submit(stream=True), listener)
    assert (caught.value.code, caught.value.status) == ("bad", 400)
    assert slept == [0.5]


def test_an_error_event_in_the_middle_leaves_the_fate_open(server, backend, listener):
    error = {"type": "error", "code": "rate_limit_exceeded", "message": f"token {TOKEN}"}
    server.expect(
        ("POST", RESPONSES, streamed(sse(CREATED, error))),
        ("GET", ITEMS, page([MESSAGE])),
        ("POST", RESPONSES, streamed(sse(CREATED, error))),
        ("GET", ITEMS, page([MESSAGE, said("Sunny")])),
        ("GET", f"{RESPONSES}/resp_1", ok(response(said("Sunny")))),
    )
    assert backend.start(start(stream=True), listener).answer == "Sunny"
    assert server.seen[2].body["input"] == []
    assert "SECRET" not in "".join(listener.retries)


@pytest.mark.parametrize(
    ("kind", "body", "failure"),
    [
        (
            "response.failed",
            {"status": "failed", "error": {"code": "server_error", "message": "oh"}},
            "oh (server_error)",
        ),
        ("response.failed", {"status": "cancelled"}, "the response was cancelled"),
        ("response.incomplete", {"status": "incomplete"}, "the answer is incomplete: no reason given"),
    ],
)
def test_a_stream_may_end_in_failure(server, backend, listener, kind, body, failure):
    server.expect(("POST", RESPONSES, streamed(sse(CREATED, {"type": kind, "response": response(**body)}))))
    assert backend.start(start(stream=True), listener).failure == failure


def test_a_service_that_does_not_stream_is_understood(server, backend, listener):
    server.expect(("POST", RESPONSES, ok(response(said("Sunny")))))
    assert backend.start(start(stream=True), listener).answer == "Sunny"


def test_a_compressed_stream_is_understood(server, backend, listener):
    data = gzip.compress(sse(CREATED, DONE, EMPTY_END))
    headers = (("Content-Type", "text/event-stream"), ("Content-Encoding", "gzip"))
    server.expect(("POST", RESPONSES, Answer(200, data, headers)))
    assert backend.start(start(stream=True), listener).calls

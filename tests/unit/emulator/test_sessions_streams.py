"""Event streams of the Agents API: frames, the order of a turn, attaching, catching up, breaking (openai-agents.md §4)."""

from __future__ import annotations

import json
import threading
from typing import Any, NamedTuple

import pytest

from agentfn.emulator.app import ConnectionCut
from agentfn.emulator.sessions import live
from tests.unit.emulator.test_agents_api import ASK, HEADERS, SAY, TOOL, TWO, Api, message, result_of

SESSION = "agent.session."
CANCEL = {"type": "agent.session.input.cancel"}
#: openai-agents.md §4.4, 1 to 8: until a call waits.
ASKED = ["created", "turn.created", "turn.item.added", "in_progress", "turn.in_progress", "turn.item.added"]
ASKED += ["requires_action"]
#: 10 to 16: from a result that was taken; texts of up to sixteen characters come in one delta.
ANSWERED = ["turn.item.added", "turn.item.done", "turn.item.added", "turn.content_part.added"]
ANSWERED += ["turn.output_text.delta", "turn.output_text.done", "turn.content_part.done", "turn.item.done"]
ANSWERED += ["turn.completed", "idle"]


class Stream(NamedTuple):
    """A stream that is read step by step."""

    status: int
    headers: dict[str, str]
    body: Any

    def frames(self, wanted: str | None = None) -> list[bytes]:
        """Return the frames until an event of that type, or until nothing comes or the stream ends."""
        found: list[bytes] = []
        for frame in self.body:
            if frame == b":\n\n" and wanted is None:
                break
            if not frame.startswith(b":"):
                found.append(frame)
            if wanted is not None and frame.startswith(f"event: {SESSION}{wanted}\n".encode()):
                break
        return found

    def events(self, wanted: str | None = None) -> list[dict[str, Any]]:
        return [json.loads(frame.partition(b"\ndata: ")[2]) for frame in self.frames(wanted)]

    def kinds(self, wanted: str | None = None) -> list[str]:
        return kinds_of(self.events(wanted))

    def is_over(self) -> bool:
        return next(iter(self.body), None) is None


def kinds_of(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"].removeprefix(SESSION) for event in events]


@pytest.fixture
def api(make_service):
    return lambda *steps, **options: Api(make_service(*steps, **options))


@pytest.fixture
def opened(monkeypatch):
    """Open streams that soon say that nothing happens; they are closed when the test ends."""
    monkeypatch.setattr(live, "QUIET_SECONDS", 0.1)
    streams: list[Stream] = []

    def begin(here, method, path, body=None, **headers):
        streams.append(Stream(*here.service.open(method, f"/v1{path}", body, {**HEADERS, **headers})))
        return streams[-1]

    yield begin
    for stream in streams:
        stream.body.close()


@pytest.fixture
def creating(opened):
    """Open a session with its stream."""

    def begin(here, **more):
        body = {
            "environment": {"type": "none"},
            "agent": {"model": "m", "tools": [TOOL]},
            "input": "hi",
            "stream": True,
        }
        return opened(here, "POST", "/agents/sessions", {**body, **more})

    return begin


@pytest.fixture
def attached(opened):
    """Attach to a session."""

    def begin(here, session, query="", **headers):
        return opened(here, "GET", f"/agents/sessions/{session}/events{query}", **headers)

    return begin


# The order of a turn -------------------------------------------------------------------------------------------------


def test_a_turn_with_one_call_is_told_in_the_order_of_the_service(api, creating):
    here = api(ASK, {"say": "Sunny in Oslo."})
    stream = creating(here)
    assert (stream.status, stream.headers["content-type"]) == (201, "text/event-stream; charset=utf-8")
    before = stream.events()
    assert kinds_of(before) == ASKED
    session = before[0]["session"]["id"]
    here.answer(session)
    after = stream.events()
    assert kinds_of(after) == ANSWERED
    assert stream.is_over()  # at the first idle
    created, queued, said, _, running, asked, required = before
    given, done, begun, part, delta, text, whole, finished, completed, idle = after
    (action,) = required["session"]["required_actions"]
    assert [e["session"]["status"] for e in (created, required, idle)] == ["in_progress", "requires_action", "idle"]
    assert [e["turn"]["status"] for e in (queued, running, completed)] == ["queued", "in_progress", "completed"]
    assert (said["item"]["role"], said["item"]["phase"], said["output_index"]) == ("user", None, None)
    assert asked["item"] == {
        "type": "function_call",
        "id": action["call_id"],
        "turn_id": action["turn_id"],
        "call_id": action["call_id"],
        "name": "get_weather",
        "arguments": {"city": "Oslo"},
        "status": "in_progress",
    }
    assert (given["item"]["type"], given["output_index"], given["item"]["error"]) == (
        "function_call_output",
        None,
        None,
    )
    assert done["item"] == {**asked["item"], "status": "completed"}
    assert done["output_index"] == asked["output_index"] == 0
    assert (begun["item"]["status"], begun["item"]["content"], begun["output_index"]) == ("in_progress", [], 1)
    assert (part["part"]["text"], delta["delta"], text["text"]) == ("", "Sunny in Oslo.", "Sunny in Oslo.")
    assert whole["part"] == {"type": "output_text", "text": "Sunny in Oslo."}
    assert finished["item"] == here.items(session)[-1]
    assert (completed["usage"], completed["turn"]["usage"]) == (None, None)


def test_every_event_names_itself_and_where_it_belongs(api, creating):
    here = api({**ASK, "say": "Let me see."}, {"say": "x" * 40})
    stream = creating(here)
    frames = stream.frames()
    session = json.loads(frames[0].partition(b"\ndata: ")[2])["session"]["id"]
    here.answer(session)
    frames += stream.frames()
    seen = set()
    for frame in frames:
        lines = frame.decode().split("\n")
        assert len(lines) == 4  # event, data, and the blank line
        assert lines[2:] == ["", ""]
        event = json.loads(lines[1].removeprefix("data: "))
        assert lines[0] == f"event: {event['type']}"
        seen.add(event["event_id"])
        assert event["event_id"].startswith("evt_")
        assert (event["session"]["id"] if "session" in event else event["session_id"]) == session
        assert "session" in event or event["turn_id"].startswith("turn_")
    assert len(seen) == len(frames)


def test_a_word_before_the_call_is_a_commentary_and_the_answer_is_not(api, creating):
    here = api({**ASK, "say": "Let me see."}, {"say": "x" * 40})
    stream = creating(here)
    before = stream.events()
    here.answer(before[0]["session"]["id"])
    events = before + stream.events()
    done = [event for event in events if event["type"] == f"{SESSION}turn.item.done"]
    assert [(e["item"]["type"], e["item"].get("phase"), e["output_index"]) for e in done] == [
        ("message", "commentary", 0),
        ("function_call", None, 1),
        ("message", "final_answer", 2),
    ]
    last = done[-1]["item"]["id"]
    deltas = [e["delta"] for e in events if e["type"] == f"{SESSION}turn.output_text.delta" and e["item_id"] == last]
    assert len(deltas) > 1
    assert "".join(deltas) == "x" * 40


def test_two_calls_are_told_before_both_are_asked_for_and_each_is_done_with_its_result(api, creating):
    here = api(TWO, SAY)
    stream = creating(here)
    before = stream.events()
    assert kinds_of(before)[-3:] == ["turn.item.added", "turn.item.added", "requires_action"]
    first, second = before[-1]["session"]["required_actions"]
    session = before[0]["session"]["id"]
    here.send(session, result_of(second))
    partly = stream.events()
    assert kinds_of(partly) == ["turn.item.added", "turn.item.done"]
    assert (partly[1]["item"]["call_id"], partly[1]["output_index"]) == (second["call_id"], 1)
    here.send(session, result_of(first))
    rest = stream.kinds()
    assert rest[:2] == ["turn.item.added", "turn.item.done"]
    assert rest[-2:] == ["turn.completed", "idle"]


def test_an_identical_result_tells_nothing_new(api, creating):
    here = api(TWO, SAY)
    stream = creating(here)
    events = stream.events()
    session, (first, _) = events[0]["session"]["id"], events[-1]["session"]["required_actions"]
    for wanted in (["turn.item.added", "turn.item.done"], []):
        assert here.send(session, result_of(first)).status == 202
        assert stream.kinds() == wanted


def test_a_cancelled_turn_is_told_and_then_that_nothing_runs(api, creating):
    here = api(ASK)
    stream = creating(here)
    session = stream.events()[0]["session"]["id"]
    here.send(session, CANCEL)
    cancelled, idle = stream.events()
    assert kinds_of([cancelled, idle]) == ["turn.cancelled", "idle"]
    assert (cancelled["turn"]["status"], cancelled["usage"]) == ("cancelled", None)
    assert (idle["session"]["status"], idle["session"]["required_actions"]) == ("idle", [])
    assert stream.is_over()


def test_a_failed_turn_is_told_with_its_error(api, creating):
    stream = creating(api({"fail": {"code": "server_overloaded", "message": "busy"}}))
    *_, failed, idle = stream.events()
    assert kinds_of([failed, idle]) == ["turn.failed", "idle"]
    assert failed["turn"]["error"] == {"code": "server_overloaded", "message": "busy"}
    assert (idle["session"]["status"], idle["session"]["error"]) == ("idle", None)


def test_a_queued_message_begins_its_turn_without_an_idle_between(api, attached):
    here = api(ASK, {"say": "one"}, {"say": "two"})
    session = here.open()
    here.state(session)
    stream = attached(here, session)
    here.send(session, message("and?"))
    assert stream.kinds()[-1:] == ["turn.created"]
    here.answer(session)
    kinds = stream.kinds()
    ended, begun = kinds.index("turn.completed"), kinds.index("turn.in_progress")
    assert kinds[ended + 1 : begun + 1] == ["turn.item.added", "in_progress", "turn.in_progress"]
    assert kinds.count("idle") == 1
    assert kinds[-1] == "idle"


def test_the_call_is_seen_before_it_is_asked_for(api, clock, creating):
    here = api({**ASK, "accepts_after": "2s"}, SAY)
    stream = creating(here)
    assert stream.kinds("turn.in_progress")[-1] == "turn.in_progress"
    (added,) = stream.events("turn.item.added")
    assert here.send(added["session_id"], result_of(added["item"])).status == 400
    began = clock.now
    (required,) = stream.events("requires_action")
    assert clock.now == began + 2
    assert here.send(added["session_id"], result_of(required["session"]["required_actions"][0])).status == 202


def test_a_slow_model_is_waited_for_and_the_connection_is_kept_alive(api, clock):
    here = api({**SAY, "delay": "60s"})
    _, _, body = here.service.open("GET", f"/v1/agents/sessions/{here.open()}/events", None, HEADERS)
    began = clock.now
    gaps, last = [], began
    for frame in body:
        gaps.append(clock.now - last)
        last = clock.now
        if b"turn.completed" in frame:
            break
    body.close()
    assert clock.now == pytest.approx(began + 60)
    assert max(gaps) <= 15


# Attaching -----------------------------------------------------------------------------------------------------------


def test_an_attached_stream_stays_open_over_turns_until_the_session_is_deleted(api, attached):
    here = api({"say": "one"}, {"say": "two"})
    session = here.open()
    here.state(session)
    stream = attached(here, session, "?stream=true&include_obfuscation=false")
    assert stream.status == 200
    assert stream.kinds() == []  # what happened before is not told again
    for text in ("x", "y"):
        here.send(session, message(text))
        kinds = stream.kinds()
        assert kinds[:3] == ["turn.created", "turn.item.added", "in_progress"]
        assert kinds[-1] == "idle"
    assert here("DELETE", f"/agents/sessions/{session}").status == 200
    assert stream.is_over()


def test_nothing_is_told_again_to_who_names_the_last_event(api, attached):
    here = api(SAY)
    session = here.open()
    here.state(session)
    row = here.service.app.store.one("SELECT data FROM session_event ORDER BY sequence")
    assert attached(here, session, **{"last-event-id": json.loads(row[0])["event_id"]}).kinds() == []


def test_attaching_drives_a_session_that_nobody_touched(api, attached):
    here = api(ASK, SAY)
    session = here.open()
    assert attached(here, session).kinds() == ASKED[2:]


def test_who_attaches_in_a_turn_is_shown_its_finished_messages_and_no_calls(api, attached):
    here = api({"say": "before"}, {**ASK, "say": "Let me see."}, SAY)
    session = here.open()
    here.state(session)
    here.send(session, message("now"))
    (action,) = here.state(session)["required_actions"]
    stream = attached(here, session)
    events = stream.events()
    part = ["turn.content_part.added", "turn.output_text.done", "turn.content_part.done", "turn.item.done"]
    assert kinds_of(events) == ["turn.item.added", "turn.item.added", *part]
    assert events[0]["item"]["content"][0]["text"] == "now"
    assert [event["item_id"] for event in events if "item_id" in event] == [events[1]["item"]["id"]] * 3
    assert events[3]["text"] == "Let me see."
    assert len({event["event_id"] for event in events}) == len(events)
    here.send(session, result_of(action))
    assert stream.events()[1]["item"]["call_id"] == action["call_id"]  # done, though it was never shown as added


def test_every_stream_of_a_session_is_told_the_same(api, attached):
    here = api(ASK, SAY)
    session = here.open()
    here.state(session)
    here.send(session, CANCEL)
    streams = [attached(here, session) for _ in range(2)]
    here.send(session, message("again"))
    first, second = (stream.frames() for stream in streams)
    assert first
    assert first == second


def test_a_stream_without_a_session_is_a_404(api):
    refused = api()("GET", "/agents/sessions/sess_x/events")
    assert (refused.status, refused.headers["content-type"]) == (404, "application/json; charset=utf-8")


def test_a_closed_stream_ends_from_another_thread_and_cancels_nothing(api, attached):
    here = api(ASK, SAY)
    session = here.open()
    stream = attached(here, session)
    stream.frames("requires_action")
    ended = threading.Event()

    def read():
        for _ in stream.body:
            pass
        ended.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    stream.body.close()
    assert ended.wait(20)
    reader.join()
    assert here.state(session)["status"] == "requires_action"


# Breaking ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "seen"),
    [
        ({"say": "x" * 40, "cut": "mid"}, "turn.output_text.delta"),
        ({**ASK, "cut": "mid"}, "turn.item.added"),
        ({**ASK, "say": "x" * 40, "cut": "mid"}, "turn.output_text.delta"),
    ],
)
def test_a_stream_breaks_in_the_middle_and_the_turn_does_not(api, creating, attached, step, seen):
    here = api(step, SAY)
    stream = creating(here)
    frames: list[bytes] = []
    with pytest.raises(ConnectionCut):
        frames.extend(stream.body)
    assert f"event: {SESSION}{seen}\n".encode() in frames[-1]
    assert stream.is_over()
    session = json.loads(frames[1].partition(b"\ndata: ")[2])["session"]["id"]
    if "call" in step:
        assert here.answer(session).status == 202
    assert here.state(session)["status"] == "idle"
    assert attached(here, session).kinds() == []  # and the next one is whole

"""The same commands over each face of the embedded service: what waits, what is kept, what is told and removed."""

from __future__ import annotations

import json
import re
import shlex

import pytest

from agentfn.settings import PROTOCOLS

TOOLS = """
name: desk
model: m
tools:
  - name: check
    description: Checks a request.
    parameters: {type: object, properties: {}}
    handler: {output: checked}
  - name: decide
    description: A person decides on a request.
    parameters: {type: object, properties: {}}
    handler: manual
"""
BOTH = "- call: {check: {}, decide: {}}\n- say: 'It was {{output.decide}}, {{output.check}}.'\n- say: Bye.\n"


@pytest.fixture(params=PROTOCOLS)
def face(request: pytest.FixtureRequest) -> list[str]:
    return ["--protocol", request.param]


@pytest.fixture
def waiting(run, write, face):
    """Return the data of a chat in which one call is answered and one waits."""

    def begin():
        write("s.yaml", BOTH)
        return run("chat", write("a.yaml", TOOLS), "go", "--scenario", "s.yaml", "--json", *face, exit=8).data

    return begin


def test_a_finished_output_is_kept_while_another_call_waits(run, waiting):
    data = waiting()
    for _ in range(2):  # looking changes nothing
        states = {call["function"]: call["state"] for call in run("pending", "--json").data}
        assert states == {"check": "answered", "decide": "waiting"}
    first = run("pending", "--json").data[0]["asked_at"]
    assert run("pending", "--json").data[0]["asked_at"] == pytest.approx(
        first, abs=1.1
    )  # the service tells whole seconds
    assert run("respond", "--output", "approved").stdout == "It was approved, checked.\n"
    outputs = [e["text"] for e in run("log", data["conversation"], "--json").data["entries"] if e["kind"] == "output"]
    assert sorted(outputs) == ["approved", "checked"]


def test_an_answered_call_keeps_its_outcome(run, waiting):
    conversation = waiting()["conversation"]
    calls = {call["function"]: call["call"] for call in run("pending", "--json").data}
    again = run("respond", conversation, "--call", calls["check"], "--output", "no!", "--json", exit=1)
    assert again.json["errors"][0]["code"] == "call_answered"
    unknown = run("respond", conversation, "--call", "nope", "--output", "x", exit=1)
    assert calls["decide"] in unknown.stderr
    assert calls["check"] not in unknown.stderr


def test_a_message_while_a_call_waits_tells_the_turn_in_its_document(run, waiting):
    conversation = waiting()["conversation"]
    ran = run("chat", "a.yaml", "hello?", "-c", conversation, "--json", exit=8)
    assert ran.json["status"] == "pending"
    assert (ran.data["conversation"], ran.data["answer"]) == (conversation, None)
    assert [call["state"] for call in ran.data["calls"]] == ["answered", "waiting"]
    assert "respond" in ran.json["errors"][0]["hint"]


def test_the_closing_line_removes_what_was_kept(run, write, face):
    write("s.yaml", BOTH)
    ran = run("chat", write("a.yaml", TOOLS), "go", "--scenario", "s.yaml", *face, exit=8)
    command = re.search(r"to remove it: agentfn (.+)", ran.stderr)
    assert command is not None
    assert run(*shlex.split(command[1]), "--yes").stdout == "removed 2\n"
    assert run("list", "--remote", "--json", *face).data["agents"] == []


@pytest.mark.parametrize("selector", ["--conversation", "--agent", "--run"])
def test_a_name_that_is_not_there_is_told(run, face, selector):
    ran = run("cleanup", selector, "nope", "--yes", "--json", *face, exit=1)
    assert ran.json["errors"][0]["code"] == f"{selector.removeprefix('--')}_not_found"


def test_text_and_calls_are_told_as_they_come(run, write, face):
    write("s.yaml", BOTH.replace("decide: {}", ""))
    ran = run("chat", write("a.yaml", TOOLS), "go", "--scenario", "s.yaml", "--events", *face)
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    kinds = [event["type"] for event in events]
    told = [kind for index, kind in enumerate(kinds) if kind != "text.delta" or kinds[index - 1] != kind]
    assert [kind for kind in told if kind != "notice"] == [
        "turn.started",
        "call.requested",
        "call.started",
        "call.finished",
        "outputs.sent",
        "text.delta",
        "turn.finished",
    ]
    assert len({event["turn"] for event in events if "turn" in event}) == 1
    text = "".join(event["text"] for event in events if event["type"] == "text.delta")
    assert text == events[-1]["answer"]


def test_calls_of_an_answer_that_was_lost_are_void(run, write, face):
    write("s.yaml", "- call: {check: {}}\n  cut: mid\n- say: done\n")
    ran = run("chat", write("a.yaml", TOOLS), "go", "--scenario", "s.yaml", "--events", *face)
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    assert "request.retried" in [event["type"] for event in events]
    void = {call for event in events if event["type"] == "request.retried" for call in event.get("void", [])}
    asked = {event["call"] for event in events if event["type"] == "call.requested"}
    ran_for = {event["call"] for event in events if event["type"] == "call.finished"}
    assert ran_for == asked - void
    assert len(ran_for) == 1

"""Calls that wait: shown by `pending`, answered by `respond`, from another process."""

from __future__ import annotations

import json

import pytest

from tests.conftest import SAMPLES

TWO = """\
- call:
    - {name: get_weather, arguments: {city: Oslo}, id: call_A}
    - {name: get_weather, arguments: {city: Bergen}, id: call_B}
- say: "{{output.get_weather}}"
"""


@pytest.fixture
def waiting(run, agent):
    """A conversation in which one call waits; returns the data of its chat."""
    return run("chat", agent(), "Weather in Oslo?", "--json", exit=8).data


@pytest.fixture
def two_waiting(run, agent, write):
    scenario = write("two.yaml", TWO)
    return run("chat", agent(), "Weather in Oslo and Bergen?", "--scenario", scenario, "--json", exit=8).data


def test_a_call_without_handler_leaves_the_turn_pending(run, agent):
    ran = run("chat", agent(), "Weather in Oslo?", exit=8)
    assert ran.stdout == ""
    assert "agentfn respond conv_" in ran.stderr


def test_pending_lists_what_the_contract_promises(run, waiting):
    (call,) = run("pending", "--json").data
    assert set(call) >= {
        "conversation",
        "turn",
        "call",
        "function",
        "arguments",
        "state",
        "problem",
        "asked_at",
        "expires_at",
        "answer_with",
    }
    assert call["conversation"] == waiting["conversation"]
    assert call["turn"] == waiting["turn"]
    assert call["call"] == waiting["calls"][0]["id"]
    assert call["arguments"] == {"city": "Oslo"}
    assert call["state"] == "waiting"
    assert call["problem"] is None
    assert 590 <= call["expires_at"] - call["asked_at"] <= 610


def test_pending_exits_0_and_8_only_with_check(run, waiting):
    run("pending")
    run("pending", "--check", exit=8)
    run("respond", "--output", "rain")
    run("pending", "--check")
    assert run("pending", "--json").data == []


def test_pending_offline_asks_no_service(run, waiting):
    (run.home / "local.db").unlink()
    assert len(run("pending", "--offline", "--json").data) == 1
    assert run("pending", "--json").data == [], "the service no longer knows the conversation"


def test_respond_answers_the_one_call_that_waits(run, waiting):
    ran = run("respond", "--output", "rain")
    assert ran.stdout == "get_weather gave rain\n"


def test_the_command_that_pending_names_works(run, waiting):
    command = run("pending", "--json").data[0]["answer_with"].split()
    assert command[:2] == ["agentfn", "respond"]
    assert "TEXT" in run(*command[1:]).stdout


def test_an_error_is_told_to_the_agent(run, waiting):
    ran = run("respond", "--error", "no such city", "--json")
    assert "no such city" in ran.data["answer"]
    assert ran.data["calls"][0]["error"] == "no such city"


def test_output_is_sent_byte_for_byte(run, waiting, write):
    text = " two\r\nlines\t\u00e9\u2713 \n\n"
    ran = run("respond", "--output-file", write("out.txt", text), "--json")
    assert ran.data["calls"][0]["output"] == text
    log = run("log", ran.data["conversation"], "--json").data["entries"]
    assert [entry["text"] for entry in log if entry["kind"] == "output"] == [text]


def test_output_from_stdin(run, waiting):
    assert run("respond", "--output-file", "-", stdin="snow").stdout == "get_weather gave snow\n"


def test_output_that_is_no_text_is_refused_with_its_place_and_nothing_is_lost(run, waiting, write):
    ran = run("respond", "--output-file", write("bad", b"ok\ncaf\xe9"), exit=3)
    assert "bad:2:4: not-utf-8:" in ran.stderr
    assert len(run("pending", "--json").data) == 1


def test_an_empty_output_is_an_output(run, waiting):
    ran = run("respond", "--output", "", "--json")
    assert ran.data["calls"][0]["output"] == ""


def test_content_parts_are_sent_as_such(run, waiting, write):
    parts = [{"type": "input_text", "text": "rain"}]
    ran = run("respond", "--content", write("parts.json", json.dumps(parts)), "--json")
    assert ran.data["calls"][0]["output"] == parts


def test_wrong_content_names_the_part(run, waiting, write):
    bad = write("parts.json", json.dumps([{"type": "input_text"}]))
    assert "part 0: input_text needs text" in run("respond", "--content", bad, exit=3).stderr
    assert len(run("pending", "--json").data) == 1


def test_several_waiting_calls_must_be_named(run, two_waiting):
    ran = run("respond", "--output", "rain", "--json", exit=2)
    assert "call_A (get_weather), call_B (get_weather)" in ran.json["errors"][0]["message"]


def test_partial_answers_are_kept_until_the_set_is_complete(run, two_waiting):
    first = run("respond", "--call", "call_A", "--output", "rain", "--json", exit=8).data
    assert [(call["id"], call["state"]) for call in first["calls"]] == [("call_A", "answered"), ("call_B", "waiting")]
    states = {call["call"]: call["state"] for call in run("pending", "--json").data}
    assert states == {"call_A": "answered", "call_B": "waiting"}
    second = run("respond", "--call", "call_B", "--output", "snow", "--json").data
    assert second["answer"] == "snow"
    outputs = [e for e in run("log", second["conversation"], "--json").data["entries"] if e["kind"] == "output"]
    assert [(e["call_id"], e["text"]) for e in outputs] == [("call_A", "rain"), ("call_B", "snow")]


def test_outputs_file_answers_several(run, two_waiting, write):
    outputs = write("outputs.yaml", "call_A: rain\ncall_B: {output: {mm: 3}}\n")
    assert run("respond", "--outputs", outputs).stdout == '{"mm": 3}\n'


def test_outputs_file_by_function_needs_exactly_one_call(run, two_waiting, write):
    ran = run("respond", "--outputs", write("outputs.yaml", "get_weather: rain\n"), exit=3)
    assert "outputs.yaml:1:14: outputs: 2 calls of get_weather wait" in ran.stderr


def test_a_script_answers_any_call(run, two_waiting, write):
    write("answer.py", "import json, os, sys\nprint(os.environ['AGENTFN_CALL_ID'], json.load(sys.stdin)['city'])\n")
    ran = run("respond", "--script", "answer.py", "--json")
    assert [call["output"] for call in ran.data["calls"]] == ["call_A Oslo", "call_B Bergen"]


def test_run_uses_the_agents_handlers(run):
    asked = run("chat", SAMPLES / "horoscope" / "agent.yaml", "My horoscope? Aquarius", "--no-run", exit=8)
    assert "waits: get_horoscope" in asked.stderr
    assert "otter" in run("respond", "--run").stdout


def test_run_refuses_a_handler_that_no_longer_fits(run, agent):
    path = agent("{output: rain}")
    conversation = run("chat", path, "Weather in Oslo?", "--no-run", "--json", exit=8).data["conversation"]
    path.write_text(path.read_text().replace("city", "town"))
    ran = run("respond", conversation, "--run", exit=8)
    assert "get_weather changed or is gone" in ran.stderr


def test_respond_without_answers_and_terminal_is_a_usage_error(run, waiting):
    assert "no terminal" in run("respond", exit=2).stderr


def test_respond_asks_on_a_terminal(run, waiting):
    assert "get_weather gave fog" in run.on_terminal("respond", answers="fog\n")
    assert run("pending", "--json").data == []


def test_nothing_waits(run):
    assert run("respond", "--output", "x", "--json", exit=1).json["errors"][0]["code"] == "call_not_found"


def test_several_conversations_must_be_named(run, agent):
    first = run("chat", agent(), "Weather in Oslo?", "--json", exit=8).data["conversation"]
    second = run("chat", agent(), "Weather in Oslo?", "--json", exit=8).data["conversation"]
    ran = run("respond", "--output", "x", exit=2)
    assert first in ran.stderr
    assert second in ran.stderr
    run("respond", first, "--output", "x")


def test_a_new_message_while_a_call_waits_is_refused_before_it_is_sent(run, waiting, agent):
    ran = run("chat", "demo", "And in Bergen?", "-c", waiting["conversation"], "--json", exit=8)
    assert ran.json["status"] == "pending"
    assert waiting["calls"][0]["id"] in ran.json["errors"][0]["message"]
    texts = [e["text"] for e in run("log", waiting["conversation"], "--json").data["entries"] if e["kind"] == "user"]
    assert texts == ["Weather in Oslo?"]


def test_an_unknown_call_names_those_that_wait(run, waiting):
    ran = run("respond", "--call", "call_X", "--output", "x", exit=1)
    assert waiting["calls"][0]["id"] in ran.stderr


def test_a_late_output_is_told_as_expired_and_the_conversation_is_over(run, agent, write):
    scenario = write("late.yaml", "- call: {get_weather: {city: Oslo}}\n  advance: 11m\n")
    conversation = run("chat", agent(), "Oslo?", "--scenario", scenario, "--json", exit=8).data["conversation"]
    assert run("pending", "--json").data[0]["state"] == "expired"
    ran = run("respond", conversation, "--output", "rain", "--json", exit=1)
    assert ran.json["errors"][0]["code"] == "expired"
    assert "ten minutes" in ran.json["errors"][0]["message"]
    assert run("pending", "--json").data == []


def test_two_options_for_one_call_are_a_usage_error(run, waiting):
    assert "choose one" in run("respond", "--output", "a", "--error", "b", exit=2).stderr

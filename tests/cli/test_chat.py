"""`chat`: one message, or a conversation, from the agent file to the answer."""

from __future__ import annotations

import json
import signal
import sqlite3

from tests.conftest import SAMPLES, eventually

HOROSCOPE = SAMPLES / "horoscope" / "agent.yaml"
ASK = "What is my horoscope? I am an Aquarius."


def test_the_answer_alone_is_on_stdout(run):
    ran = run("chat", HOROSCOPE, ASK)
    assert ran.stdout.count("\n") == 1
    assert "baby otter" in ran.stdout
    assert '→ get_horoscope({"sign": "Aquarius"})' in ran.stderr
    assert "no language model" in ran.stderr
    assert "agentfn cleanup --run run_" in ran.stderr


def test_json_is_one_document_with_the_contracts_keys(run):
    ran = run("chat", HOROSCOPE, ASK, "--json")
    assert set(ran.json) == {"agentfn", "command", "status", "exit_code", "data", "errors"}
    assert ran.json["command"] == "chat"
    assert ran.json["status"] == "ok"
    assert set(ran.data) == {"agent", "conversation", "turn", "answer", "calls", "usage", "created", "run"}
    (call,) = ran.data["calls"]
    assert call["function"] == "get_horoscope"
    assert call["arguments"] == {"sign": "Aquarius"}
    assert json.loads(call["output"])["sign"] == "Aquarius"
    assert call["state"] == "accepted"
    assert call["seconds"] > 0
    assert {row["kind"] for row in ran.data["created"]} == {"agent", "conversation"}


def test_events_are_json_lines_in_order(run):
    ran = run("chat", HOROSCOPE, ASK, "--events")
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    types = [event["type"] for event in events if event["type"] != "text.delta"]
    assert types == [
        "turn.started",
        "call.requested",
        "call.started",
        "call.finished",
        "outputs.sent",
        "turn.finished",
    ]
    assert all(isinstance(event["at"], float) for event in events)
    text = "".join(event["text"] for event in events if event["type"] == "text.delta")
    assert text == events[-1]["answer"]


def test_a_message_can_come_from_stdin(run):
    assert "otter" in run("chat", HOROSCOPE, "-", stdin=ASK).stdout


def test_a_conversation_goes_on_and_keeps_its_agent(run):
    first = run("chat", HOROSCOPE, ASK, "--json").data
    second = run("chat", "horoscope-bot", "And the horoscope of a Taurus?", "-c", first["conversation"], "--json").data
    assert second["conversation"] == first["conversation"]
    assert second["agent"] == first["agent"] == "horoscope-bot:1"
    assert second["created"] == []
    assert "Taurus" in second["answer"]


def test_the_same_file_makes_no_second_version(run):
    run("chat", HOROSCOPE, ASK)
    assert run("chat", HOROSCOPE, ASK, "--json").data["agent"] == "horoscope-bot:1"


def test_rm_removes_what_this_command_created_and_nothing_else(run):
    run("create", HOROSCOPE)
    run("chat", HOROSCOPE, ASK, "--rm")
    listed = run("list", "--json").data
    assert [row["agent"] for row in listed["agents"]] == ["horoscope-bot:1"]
    assert listed["conversations"] == []


def test_rm_after_a_failing_turn_still_removes(run, write):
    scenario = write("s.yaml", "- fail: {code: server_error, message: out of luck}\n")
    ran = run("chat", HOROSCOPE, ASK, "--rm", "--scenario", scenario, exit=1)
    assert "out of luck" in ran.stderr
    assert run("list", "--json").data["agents"] == []


def test_an_agent_that_somebody_removed_is_made_again(run):
    run("chat", HOROSCOPE, ASK)
    with sqlite3.connect(run.home / "local.db") as service:
        service.execute("PRAGMA foreign_keys = ON")
        service.execute("DELETE FROM agent")
    service.close()
    assert "otter" in run("chat", HOROSCOPE, ASK).stdout


def test_an_unknown_agent_is_a_no(run):
    ran = run("chat", "nobody", "hello", "--json", exit=1)
    assert ran.json["errors"][0]["code"] == "agent_not_found"
    assert ran.json["errors"][0]["hint"]


def test_without_message_and_terminal_it_is_a_usage_error(run):
    ran = run("chat", HOROSCOPE, exit=2)
    assert "no terminal" in ran.stderr
    assert run("chat", HOROSCOPE, ASK, "--json", "--events", exit=2).json["status"] == "error"


def test_an_invalid_file_names_every_place(run, write):
    bad = write("bad.yaml", "name: my_agent\ntools:\n  - {name: 'a b', parameters: {type: object}}\n")
    ran = run("chat", bad, "hello", exit=3)
    assert f"{bad}:1:7: name:" in ran.stderr
    assert f"{bad}:3:12: function-name:" in ran.stderr


def test_a_repl_talks_until_the_end_of_input(run):
    shown = run.on_terminal("chat", HOROSCOPE, answers=f"{ASK}\nAnd the horoscope of a Taurus?\n/quit\n")
    assert "Aquarius" in shown
    assert "Taurus" in shown
    listed = run("list", "--json").data
    assert len(listed["conversations"]) == 1


def test_a_manual_call_is_asked_of_the_person_at_the_terminal(run, agent):
    shown = run.on_terminal("chat", agent(), "Weather in Oslo?", answers="rain\n")
    assert "get_weather" in shown
    assert "get_weather gave rain" in shown


def test_an_interrupted_chat_says_how_to_go_on_and_rm_still_removes(run, write, agent):
    slow = agent("{exec: [python3, slow.py]}")
    write("slow.py", "import time\nopen('started', 'w').close()\ntime.sleep(60)\n")
    process = run.start("chat", slow, "Weather in Oslo?", "--rm")
    eventually((run.folder / "started").exists)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130, stderr
    assert "interrupted" in stderr
    assert run("list", "--json").data == {
        "backend": "local",
        "endpoint": "local/foundry",
        "agents": [],
        "conversations": [],
    }

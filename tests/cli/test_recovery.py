"""After a stop at any moment the truth is found from journal and service, and nothing is sent or run twice."""

from __future__ import annotations

import sqlite3

import pytest

ONE = "- call: {get_weather: {city: Oslo}}\n- say: 'It will {{output}}.'\n"


@pytest.fixture
def journal(run):
    """Change the journal the way a killed process would have left it."""

    def change(*statements: str) -> None:
        with sqlite3.connect(run.home / "journal.db") as db:
            for statement in statements:
                db.execute(statement)
        db.close()

    return change


def said(run, conversation: str, kind: str) -> list[str]:
    return [e["text"] for e in run("log", conversation, "--json").data["entries"] if e["kind"] == kind]


def test_outputs_that_had_arrived_are_not_sent_again(run, agent, write, journal):
    """Killed after the outputs went out and were answered, before the answer was written down."""
    data = run("chat", agent("{output: rain}"), "Oslo?", "--scenario", write("s.yaml", ONE), "--json").data
    journal(
        "UPDATE turn SET state = 'open', asked_by = 'resp_x', asked_at = at, answer = NULL, ended_at = NULL",
        "UPDATE call SET state = 'sent', asked_by = 'resp_x'",
    )
    assert run("respond", data["conversation"]).stdout == "It will rain.\n"
    assert said(run, data["conversation"], "output") == ["rain"]
    assert run("pending", "--json").data == []


def test_outputs_that_had_not_arrived_are_sent(run, agent, write, journal):
    """Killed after the outputs were written down as sent, before the request left."""
    flags = ["--scenario", write("s.yaml", ONE), "--no-run", "--json"]
    data = run("chat", agent("{output: rain}"), "Oslo?", *flags, exit=8).data
    journal("UPDATE call SET state = 'sent', output = 'rain', started_at = 1.0, finished_at = 2.0")
    (call,) = run("pending", "--json").data
    assert call["state"] == "answered"
    assert call["answer_with"] == f"agentfn respond {data['conversation']}"
    assert run("respond").stdout == "It will rain.\n"
    assert said(run, data["conversation"], "output") == ["rain"]


def test_a_finished_output_is_sent_and_its_handler_does_not_run_again(run, agent, write, journal):
    write("tool.py", "open('RAN', 'w').close()\nprint('snow')")
    flags = ["--scenario", write("s.yaml", ONE), "--no-run", "--json"]
    run("chat", agent("{exec: [python3, tool.py]}"), "Oslo?", *flags, exit=8)
    journal("UPDATE call SET state = 'finished', output = 'rain', started_at = 1.0, finished_at = 2.0")
    assert run("respond", "--run").stdout == "It will rain.\n"
    assert not (run.folder / "RAN").exists()


def test_an_idempotent_call_in_doubt_runs_again_and_another_does_not(run, agent, write, journal):
    write("tool.py", "open('RAN', 'a').write('x')\nprint('snow')")
    flags = ["--scenario", write("s.yaml", ONE), "--no-run", "--json"]
    path = agent("{exec: [python3, tool.py]}")
    run("chat", path, "Oslo?", *flags, exit=8)
    journal("UPDATE call SET state = 'started', started_at = 1.0")
    assert run("pending", "--json").data[0]["state"] == "in_doubt"
    run("respond", "--run", exit=8)
    assert not (run.folder / "RAN").exists()
    path.write_text(path.read_text() + "    idempotent: true\n")
    assert run("respond", "--run").stdout == "It will snow.\n"
    assert (run.folder / "RAN").read_text() == "x"


def test_calls_that_were_asked_for_while_we_were_gone_are_found(run, agent, write, journal):
    """Killed after the message arrived, before the service's answer was written down."""
    data = run("chat", agent(), "Oslo?", "--scenario", write("s.yaml", ONE), "--json", exit=8).data
    journal("DELETE FROM call", "UPDATE turn SET state = 'intended', asked_by = NULL, asked_at = NULL")
    (call,) = run("pending", "--json").data
    assert call["call"] == data["calls"][0]["id"]
    assert run("respond", "--output", "hail").stdout == "It will hail.\n"
    assert said(run, data["conversation"], "user") == ["Oslo?"]


def test_an_answer_that_came_while_we_were_gone_is_found(run, agent, write, journal):
    data = run(
        "chat", agent("{output: rain}"), "Oslo?", "--scenario", write("s.yaml", ONE + "- say: hello\n"), "--json"
    ).data
    journal("DELETE FROM call", "UPDATE turn SET state = 'intended', asked_by = NULL, answer = NULL")
    assert run("pending", "--json").data == []
    run("chat", "demo", "hello", "-c", data["conversation"])


def test_a_message_that_never_arrived_is_not_taken_for_the_one_before(run, agent, write, journal):
    """The same words twice: the second never left, and the first one's answer is not its answer."""
    scenario = write("s.yaml", "- say: first\n- say: second\n")
    data = run("chat", agent(), "Oslo?", "--scenario", scenario, "--json").data
    journal(
        "INSERT INTO turn (id, backend, endpoint, conversation, message, state, run, at)"
        " SELECT 'turn_lost', backend, endpoint, conversation, message, 'intended', run, at + 1 FROM turn",
    )
    assert run("pending", "--json").data == []
    ran = run("chat", "demo", "Oslo?", "-c", data["conversation"], "--json")
    assert ran.data["answer"] == "second"
    assert said(run, data["conversation"], "user") == ["Oslo?", "Oslo?"]


def test_a_conversation_of_somebody_else_can_be_answered_from_here(run, serve, agent, write, tmp_path_factory):
    served = serve()
    flags = ["--backend", "foundry", "--endpoint", served.endpoint]
    data = run("chat", agent(), "Weather in Oslo?", *flags, "--json", exit=8).data
    (run.home / "journal.db").unlink()
    (call,) = run("pending", data["conversation"], *flags, "--json").data
    assert call["call"] == data["calls"][0]["id"]
    ran = run("respond", data["conversation"], "--output", "rain", *flags)
    assert "rain" in ran.stdout


def test_the_user_may_let_a_call_in_doubt_run_again(run, agent, write, journal):
    write("tool.py", "open('RAN', 'a').write('x')\nprint('snow')")
    flags = ["--scenario", write("s.yaml", ONE), "--no-run", "--json"]
    data = run("chat", agent("{exec: [python3, tool.py]}"), "Oslo?", *flags, exit=8).data
    journal("UPDATE call SET state = 'started', started_at = 1.0")
    run("respond", "--rerun", exit=2)
    assert run("respond", "--call", data["calls"][0]["id"], "--rerun").stdout == "It will snow.\n"
    assert (run.folder / "RAN").read_text() == "x"


def test_a_stuck_conversation_is_freed_by_an_honest_error(run, agent, write):
    scenario = write(
        "s.yaml", "- call: [{get_weather: {city: Oslo}}, {get_weather: {city: Bergen}}]\n- say: Sorry.\n- say: Hi.\n"
    )
    data = run("chat", agent(), "Oslo?", "--scenario", scenario, "--json", exit=8).data
    ran = run("respond", "--abandon", "--json")
    assert ran.data["answer"] == "Sorry."
    assert {call["error"] for call in ran.data["calls"]} == {"nobody can answer this call; it was abandoned"}
    assert run("chat", "demo", "Still there?", "-c", data["conversation"]).stdout == "Hi.\n"
    assert "leave the other options out" in run("respond", "--abandon", "--run", exit=2).stderr

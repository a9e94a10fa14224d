"""What a hurried or unlucky user does: too late, twice, with empty variables, while another process is at work."""

from __future__ import annotations

import json

import pytest

from tests.conftest import eventually

TWO = "- call: {get_weather: {city: Oslo}}\n- say: 'It is {{output}}.'\n- say: Bye.\n"
SLOW = "- call: {get_weather: {city: Oslo}}\n- say: done\n"


@pytest.fixture
def waiting(run, agent, write):
    """Leave a call waiting and return its conversation."""

    def begin(handler: str = "{output: rain}", scenario: str = TWO):
        ran = run(
            "chat", agent(handler), "Oslo?", "--scenario", write("s.yaml", scenario), "--no-run", "--json", exit=8
        )
        return ran.data["conversation"]

    return begin


def test_an_outcome_that_comes_too_late_is_told_and_not_dropped(run, waiting, write):
    """Another process holds the conversation and answers the call while we wait for it."""
    write(
        "slow.py",
        "import pathlib, time\npathlib.Path('UP').touch()\nwhile not pathlib.Path('GO').exists(): time.sleep(0.02)\nprint('rain')",
    )
    conversation = waiting("{exec: [python3, slow.py]}")
    call = run("pending", "--json").data[0]["call"]
    first = run.start("respond", conversation, "--run")
    eventually((run.folder / "UP").exists)
    second = run.start("respond", conversation, "--call", call, "--output", "MINE", "--json", "--wait", "30")
    (run.folder / "GO").touch()
    assert "It is rain." in first.communicate(timeout=30)[0]
    document = json.loads(second.communicate(timeout=30)[0])
    assert (second.returncode, document["errors"][0]["code"]) in ((1, "call_answered"), (1, "call_not_found"))


def test_a_conversation_that_somebody_is_at_work_in_is_left(run, waiting, write):
    write(
        "slow.py",
        "import pathlib, time\npathlib.Path('UP').touch()\nwhile not pathlib.Path('GO').exists(): time.sleep(0.02)\nprint('rain')",
    )
    conversation = waiting("{exec: [python3, slow.py]}")
    first = run.start("respond", conversation, "--run")
    eventually((run.folder / "UP").exists)
    left = run("cleanup", "--all", "--yes", "--json", exit=1).data["left"]
    assert {entry["kind"] for entry in left} == {"agent", "conversation"}
    (run.folder / "GO").touch()
    assert "It is rain." in first.communicate(timeout=30)[0]
    assert run("cleanup", "--all", "--yes").stdout == "removed 2\n"


def test_selectors_narrow_each_other(run, agent):
    run("create", agent())
    assert run("cleanup", "--agent", "demo", "--older-than", "1d", "--yes").stdout == "removed 0\n"
    run("cleanup", "--all", "--agent", "demo", "--yes", exit=2)
    assert run("cleanup", "--agent", "demo", "--yes").stdout == "removed 1\n"


def test_a_refused_chat_makes_nothing_and_changes_nothing(run, waiting, agent):
    conversation = waiting()
    other = agent(name="other", function="other_function")
    run("chat", other, "hello", "-c", conversation, exit=8)
    assert [entry["name"] for entry in run("list", "--json").data["agents"]] == ["demo"]
    assert run("respond", "--run").stdout == "It is rain.\n"


@pytest.mark.parametrize(
    "args",
    [
        ["show", ""],
        ["chat", "", "hi"],
        ["log", ""],
        ["pending", ""],
        ["cleanup", "--agent", "", "--yes"],
        ["show", "x:"],
    ],
)
def test_an_empty_name_is_a_usage_error(run, args):
    assert "empty" in run(*args, exit=2).stderr


def test_a_span_that_is_no_number_is_a_usage_error(run, waiting):
    run("respond", waiting(), "--output", "x", "--wait", "nan", exit=2)


def test_rerun_runs_that_call_alone(run, agent, write):
    write("note.py", "import os\nopen('RAN', 'a').write(os.environ['AGENTFN_CALL_ID'] + ' ')\nprint('rain')")
    both = "- call: [{get_weather: {city: Oslo}}, {get_weather: {city: Bergen}}]\n- say: done\n"
    flags = ["--scenario", write("s.yaml", both), "--no-run", "--json"]
    run("chat", agent("{exec: [python3, note.py]}"), "go", *flags, exit=8)
    first = run("pending", "--json").data[0]["call"]
    run("respond", "--call", first, "--rerun", exit=8)
    assert (run.folder / "RAN").read_text().split() == [first]


def test_a_call_is_found_by_its_id_alone(run, agent, write):
    flags = ["--scenario", write("s.yaml", TWO), "--no-run", "--json"]
    for _ in range(2):
        run("chat", agent(), "go", *flags, exit=8)
    run("respond", "--output", "x", exit=2)
    call = run("pending", "--json").data[1]["call"]
    assert run("respond", "--call", call, "--output", "snow").stdout == "It is snow.\n"


def test_a_pattern_that_takes_for_ever_is_given_up(run, write):
    text = """
name: a
model: m
tools:
  - name: f
    description: Takes a text.
    parameters: {type: object, properties: {x: {type: string, pattern: "^(a+)+$"}}}
    handler: {output: ok}
"""
    ran = run("call", write("a.yaml", text), "f", json.dumps({"x": "a" * 40 + "!"}), exit=1)
    assert "could not be checked" in ran.stderr + ran.stdout


def test_an_expired_call_leaves_a_way_out(run, agent, write):
    scenario = "- call: {get_weather: {city: Oslo}}\n  advance: 11m\n"
    ran = run("chat", agent(), "Oslo?", "--scenario", write("s.yaml", scenario), "--no-run", "--json", exit=8)
    conversation = ran.data["conversation"]
    (call,) = run("pending", "--json").data
    assert (call["state"], call["answer_with"]) == ("expired", "agentfn chat demo:1 MESSAGE")
    run("pending", "--check")
    run("respond", conversation, "--output", "x", exit=1)
    dead = run("chat", "demo.yaml", "again", "-c", conversation, "--json", exit=1)
    assert dead.json["errors"][0]["code"] == "conversation_dead"
    assert "agentfn chat demo:1" in dead.json["errors"][0]["hint"]


def test_a_python_function_that_ends_its_process_has_not_answered(run, agent, write):
    write("tool.py", "import os\ndef f(city):\n    os._exit(0)\n")
    ran = run("call", agent("{python: tool.py:f}"), "get_weather", '{"city": "x"}', exit=1)
    assert "ended the process before it returned" in ran.stderr + ran.stdout


def test_the_embedded_service_says_what_it_is_beside_a_document(run, agent):
    assert "no language model" in run("chat", agent("{output: x}"), "Oslo?", "--json").stderr
    run("chat", agent("{output: x}"), "Oslo?", "--endpoint", "http://127.0.0.1:1", exit=2)


def test_a_web_page_cannot_use_the_service(serve):
    import httpx

    served = serve()
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        assert httpx.post(f"{served.url}/_agentfn/reset", headers=headers).status_code == 403
    assert httpx.post(f"{served.url}/_agentfn/reset").status_code == 200

"""Handlers inside a turn: what fails is told to the agent, what hangs is ended, what is wrong never runs."""

from __future__ import annotations

import json
import time

import pytest

from tests.conftest import eventually


@pytest.fixture
def chat(run, agent, write):
    """Chat with one function answered by a Python program of this text; returns the only call."""

    def ask(program: str, *, handler: str = "{exec: [python3, tool.py]}", exit: int = 0, **options):  # noqa: A002
        write("tool.py", program)
        ran = run("chat", agent(handler), "Weather in Oslo?", "--json", exit=exit, **options)
        (call,) = ran.data["calls"]
        return call

    return ask


def test_a_failing_program_is_told_with_status_and_the_end_of_stderr(chat):
    call = chat("import sys\nprint('half')\nsys.exit('disk full')")
    assert call["error"] == "exit 1: disk full\npartial output: half"


def test_a_killed_program_is_told_by_its_signal(chat):
    assert "killed by signal 9 (SIGKILL)" in chat("import os\nos.kill(os.getpid(), 9)")["error"]


def test_a_program_that_hangs_is_ended_with_all_that_it_started(chat, run):
    program = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "open('child', 'w').write(str(child.pid))\n"
        "child.wait()\n"
    )
    before = time.monotonic()
    call = chat(program, handler="{exec: [python3, tool.py], timeout: 1s}")
    assert call["error"].startswith("no answer within 1 s")
    assert time.monotonic() - before < 15
    pid = int((run.folder / "child").read_text())
    eventually(lambda: not _alive(pid))


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_program_that_prints_nothing_gives_the_empty_output(chat):
    assert chat("pass")["output"] == ""


def test_a_megabyte_each_way_does_not_block(chat):
    call = chat("import sys\nsys.stderr.write('e' * 1_000_000)\nsys.stdout.write('o' * 1_000_000)")
    assert len(call["output"]) == 1_000_000


def test_stderr_of_a_success_is_not_part_of_the_output(chat):
    assert chat("import sys\nprint('warned', file=sys.stderr)\nprint('ok')")["output"] == "ok"


def test_a_program_has_no_terminal_and_its_stdin_ends(chat):
    program = "import json, sys\njson.load(sys.stdin)\nprint(repr(sys.stdin.read()))\ntry:\n    open('/dev/tty')\nexcept OSError:\n    print('no tty')"
    assert chat(program)["output"] == "''\nno tty"


def test_a_program_sees_what_it_needs_and_declares_and_no_more(chat):
    env = {"AGENT_TOKEN": "tok-SECRET-0123456789", "MY_SETTING": "forty-two", "OTHER": "hidden"}
    program = "import json, os\nprint(json.dumps(dict(os.environ)))"
    call = chat(program, handler="{exec: [python3, tool.py], env: [MY_SETTING]}", env=env)
    seen = json.loads(call["output"])
    assert "PATH" in seen
    assert {"AGENT_TOKEN", "OTHER"}.isdisjoint(seen)
    assert seen["MY_SETTING"] == "***", "a declared value is masked before it is stored or sent"
    assert seen["AGENTFN_FUNCTION"] == "get_weather"
    assert seen["AGENTFN_BACKEND"] == "local"
    assert seen["AGENTFN_CALL_ID"] == call["id"]


def test_arguments_are_never_words_of_a_command(run, write):
    write("tool.py", "import json, sys\nprint(sys.argv[1:], json.load(sys.stdin)['city'])")
    write(
        "a.yaml",
        "name: demo\nmodel: m\ntools:\n  - name: get_weather\n    description: Weather in a city.\n"
        "    parameters: {type: object, properties: {city: {type: string}}, required: [city]}\n"
        "    handler: {exec: [python3, tool.py]}\n"
        "local: [{call: {get_weather: {city: '$(touch PWNED); touch PWNED'}}}, {say: done}]\n",
    )
    call = run("chat", "a.yaml", "go", "--json").data["calls"][0]
    assert call["output"] == "[] $(touch PWNED); touch PWNED"
    assert not (run.folder / "PWNED").exists()


@pytest.mark.parametrize(
    ("handler", "reason"),
    [
        ("{exec: [./no_such_file]}", "there is no file"),
        ("{exec: [no-such-program-xyz]}", "not found on PATH"),
        ("{exec: [./plain.py]}", "not executable"),
        ("{exec: [./bad_shebang]}", "/opt/none/bin/sh"),
        ("{exec: [./no_shebang]}", "no program"),
        ("{exec: [./folder]}", "is a folder"),
        ("{python: 'gone.py:f'}", "there is no file"),
    ],
)
def test_a_handler_that_cannot_start_is_told_before_the_turn_does(run, agent, write, handler, reason):
    write("plain.py", "print(1)")
    write("bad_shebang", "#!/opt/none/bin/sh\n").chmod(0o755)
    write("no_shebang", "not a program").chmod(0o755)
    (run.folder / "folder").mkdir()
    ran = run("chat", agent(handler), "Weather in Oslo?", "--json", exit=3)
    assert reason in ran.json["errors"][0]["message"]
    assert run("list", "--json").data["conversations"] == []


def test_one_failing_handler_does_not_cost_its_siblings(run, write):
    write("weather.py", "import json, sys\nprint('sunny in ' + json.load(sys.stdin)['city'])")
    write("status.py", "import sys\nsys.exit('database unreachable')")
    write(
        "a.yaml",
        "name: demo\nmodel: m\ntools:\n"
        "  - {name: get_weather, description: Weather in a city., handler: {exec: [python3, weather.py]}, parameters: {type: object, properties: {city: {type: string}}}}\n"
        "  - {name: get_status, description: Status of the service., handler: {exec: [python3, status.py]}}\n"
        "local:\n"
        "  - call:\n"
        "      - {name: get_weather, arguments: {city: Oslo}, id: call_A}\n"
        "      - {name: get_status, id: call_B}\n"
        "      - {name: get_weather, arguments: {city: Bergen}, id: call_C}\n"
        "  - say: done\n",
    )
    ran = run("chat", "a.yaml", "go", "--json")
    told = {call["id"]: call.get("output", call.get("error")) for call in ran.data["calls"]}
    assert told == {
        "call_A": "sunny in Oslo",
        "call_B": "exit 1: database unreachable",
        "call_C": "sunny in Bergen",
    }
    outputs = [e for e in run("log", ran.data["conversation"], "--json").data["entries"] if e["kind"] == "output"]
    assert [e["call_id"] for e in outputs] == ["call_A", "call_B", "call_C"]


SCRIPTED = """\
name: demo
model: m
tools:
  - name: get_weather
    description: Weather in a city.
    parameters:
      type: object
      properties: {{city: {{type: string}}, unit: {{type: string, enum: [c, f]}}}}
      required: [city]
      additionalProperties: false
    handler: {{exec: [python3, tool.py]}}
local:
  - call: {call}
  - say: "{{{{output}}}}"
"""


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ('[{name: get_weather, raw: \'{"city": "Os\', id: call_A}]', "not valid JSON: string not closed"),
        ("[{name: get_weather, raw: '[1]', id: call_A}]", "must be a JSON object, got array"),
        ("{get_weather: {}}", "missing required property city"),
        ("{get_weather: {city: Oslo, unit: k}}", '/unit must be one of "c", "f"'),
        ("{get_weather: {town: Oslo}}", "unknown property town"),
        (
            "{multi_tool_use.parallel: {tool_uses: []}}",
            "unknown function multi_tool_use.parallel; available: get_weather",
        ),
        ("[{name: '', arguments: {}, id: call_A}]", "call_A has no function name"),
    ],
)
def test_invalid_calls_never_reach_a_handler_and_the_agent_is_told(run, write, call, told):
    write("tool.py", "open('RAN', 'w').close()")
    write("a.yaml", SCRIPTED.format(call=call))
    ran = run("chat", "a.yaml", "go", "--json")
    assert told in ran.data["calls"][0]["error"]
    assert told in ran.data["answer"].replace('\\"', '"')
    assert not (run.folder / "RAN").exists()
    again = run("chat", "a.yaml", "go", "--no-run", "--json", exit=8)
    assert told in again.data["calls"][0]["problem"]
    assert told in run("pending", "--json").data[0]["problem"]
    run("respond", "--output", "a person may answer it anyway")


def test_big_integers_reach_the_handler_to_the_digit(run, write):
    write("tool.py", "import sys\nsys.stdout.write(sys.stdin.read())")
    text = SCRIPTED.format(call="""[{name: get_weather, raw: '{"city": "x", "id": 7301244019558000123}'}]""")
    write("a.yaml", text.replace("additionalProperties: false", "additionalProperties: true"))
    assert "7301244019558000123" in run("chat", "a.yaml", "go").stdout


def test_the_same_call_for_ever_is_stopped(run, write):
    write("tool.py", "print('[]')")
    write("a.yaml", SCRIPTED.format(call="{get_weather: {city: Oslo}}\n    repeat: forever"))
    ran = run("chat", "a.yaml", "go", "--json", exit=1)
    assert ran.json["errors"][0]["code"] == "turn_limit"
    assert 'get_weather({"city": "Oslo"}) was asked for 10 times' in ran.json["errors"][0]["message"]
    assert len(run("pending", "--json").data) == 1


def test_two_calls_that_share_an_id_run_nothing(run, write):
    write("tool.py", "open('RAN', 'w').close()")
    call = "[{name: get_weather, arguments: {city: a}, id: call_0}, {name: delete, id: call_0}]\n    allow_duplicate_ids: true"
    write("a.yaml", SCRIPTED.format(call=call))
    ran = run("chat", "a.yaml", "go", "--json", exit=1)
    assert "call_id call_0 used by get_weather and delete" in ran.json["errors"][0]["message"]
    assert not (run.folder / "RAN").exists()
    write("b.yaml", SCRIPTED.format(call=call.replace("allow_duplicate_ids: true", "repeat: 1")))
    assert "call_id call_0 used by get_weather and delete" in run("chat", "b.yaml", "go", exit=3).stderr


def test_a_tool_that_asks_first_waits_where_nobody_can_be_asked(run, agent, write):
    write("tool.py", "open('RAN', 'w').close()")
    path = agent("{exec: [python3, tool.py]}")
    path.write_text(path.read_text() + "    ask: always\n")
    run("chat", path, "Weather in Oslo?", exit=8)
    assert not (run.folder / "RAN").exists()
    shown = run.on_terminal("chat", path, "Weather in Oslo?", answers="n too far away\n")
    assert "too far away" in shown
    assert not (run.folder / "RAN").exists()
    run.on_terminal("chat", path, "Weather in Oslo?", answers="y\n")
    assert (run.folder / "RAN").exists()


def test_control_text_of_a_function_is_never_executed(run, agent, write):
    write("tool.py", "print('\\x1b[31mred\\n##vso[task.complete]\\n::error::x\\u202e')")
    ran = run("chat", agent("{exec: [python3, tool.py]}"), "Weather in Oslo?")
    for text in (ran.stdout, ran.stderr):
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert not any(line.lstrip().startswith(("::error", "##vso[")) for line in text.splitlines())


def test_a_console_that_cannot_show_a_character_breaks_nothing(run, agent):
    env = {"PYTHONIOENCODING": "cp1252:strict", "PYTHONUTF8": "0"}
    ran = run("chat", agent("{output: '\u2713 \u6771\u4eac na\u00efve'}"), "Weather in Oslo?", env=env)
    assert "get_weather gave" in ran.stdout
    assert (
        run("chat", agent("{output: '\u6771'}"), "Weather in Oslo?", "--json", env=env).data["calls"][0]["output"]
        == "\u6771"
    )


@pytest.mark.parametrize(
    ("value", "sent"),
    [("0", "0"), ("false", "false"), ("0.0", "0.0"), ("[]", "[]"), ("{}", "{}"), ("''", ""), ("null", "null")],
)
def test_falsy_outputs_stay_themselves(run, agent, value, sent):
    ran = run("chat", agent(f"{{output: {value}}}"), "Weather in Oslo?", "--json")
    assert ran.data["calls"][0]["output"] == sent


def test_a_tool_asks_only_about_arguments_that_may_do_harm(run, agent, write):
    write("tool.py", "open('RAN', 'w').close()")
    path = agent("{exec: [python3, tool.py]}")
    harmless = "    ask: {unless: {properties: {city: {const: Oslo}}}}\n"
    path.write_text(path.read_text() + harmless)
    run("chat", path, "Weather in Bergen?", exit=8)
    assert not (run.folder / "RAN").exists()
    run("chat", path, "Weather in Oslo?")
    assert (run.folder / "RAN").exists()


def test_an_output_beyond_the_limit_is_not_sent_and_the_call_waits_for_a_shorter_one(run, write):
    write("tool.py", "import json, sys\nsys.stdout.write('\u00e9' * json.load(sys.stdin)['n'])")
    write(
        "a.yaml",
        "name: demo\nmodel: m\ntools:\n  - name: export\n    description: Export so many letters.\n"
        "    parameters: {type: object, properties: {n: {type: integer}}, required: [n]}\n"
        "    handler: {exec: [python3, tool.py]}\n"
        "local:\n  - call:\n      - {name: export, arguments: {n: 10485761}, id: call_A}\n"
        "      - {name: export, arguments: {n: 3}, id: call_B}\n  - say: done\n",
    )
    ran = run("chat", "a.yaml", "go", "--json", exit=8)
    assert "10,485,761 characters, the service takes 10,485,760" in ran.data["calls"][0]["problem"]
    assert [call["state"] for call in run("pending", "--json").data] == ["waiting", "answered"]
    after = run("respond", "--call", "call_A", "--output", "short", "--json").data
    assert after["answer"] == "done"
    assert [call["output"] for call in after["calls"]] == ["short", "\u00e9\u00e9\u00e9"]
    assert "problem" not in after["calls"][0]


def test_call_ids_longer_than_64_are_told_apart_and_kept(run, write):
    ids = ["mcpsrv__internal-tools__get_weather_exec-0f0e0d0c-1111-4222-8333-aaaaaaaaaaa" + end for end in "12"]
    write("tool.py", "import json, os, sys\nprint(os.environ['AGENTFN_CALL_ID'][-1], json.load(sys.stdin)['city'])")
    call = f"[{{name: get_weather, arguments: {{city: a}}, id: {ids[0]}}}, {{name: get_weather, arguments: {{city: b}}, id: {ids[1]}}}]"
    write("a.yaml", SCRIPTED.format(call=call))
    ran = run("chat", "a.yaml", "go", "--json")
    assert {call["id"]: call["output"] for call in ran.data["calls"]} == {ids[0]: "1 a", ids[1]: "2 b"}
    assert "is longer than 64" in run("chat", "a.yaml", "go").stderr

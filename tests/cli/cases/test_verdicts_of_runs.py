"""What `test` says of a run and with which exit code: failed is not could-not-run, and neither is ever passed."""

from __future__ import annotations

import pytest

from tests.cli.cases.conftest import CALL

GOOD = (
    f"  - {{name: good, input: Oslo?, local: {CALL}, expect: {{calls: [get_weather], answer: {{contains: rains}}}}}}\n"
)
BAD = f"  - {{name: bad, input: Oslo?, local: {CALL}, expect: {{calls: [{{name: get_weather, arguments: {{city: Bergen}}}}]}}}}\n"
DOWN = "  - {name: down, input: hi, local: [{error: {status: 400, code: bad_request}}], expect: {calls: []}}\n"
WRONG = "  - {name: wrong, input: hi, repeat: none}\n"


def verdicts(ran) -> dict[str, str]:
    return {case["name"]: case["verdict"] for case in ran.data["cases"]}


def test_one_passes_one_fails_and_report_and_exit_code_agree(check) -> None:
    ran = check(GOOD + BAD, "--json", exit=1)
    assert (ran.data["passed"], ran.data["failed"], ran.data["could_not_run"]) == (1, 1, 0)
    assert ran.json["status"] == "failed"
    assert verdicts(ran) == {"good": "passed", "bad": "failed"}


def test_a_failure_shows_the_nearest_call_what_differs_and_the_command_for_this_case(check, run) -> None:
    ran = check(BAD, exit=1)
    for told in (
        'expected  get_weather(city: "Bergen", …)',
        'nearest   get_weather(city: "Oslo")',
        '/city: expected "Bergen", got "Oslo"',
        "it said   It rains in Oslo.",
        "run it alone: agentfn test test_demo.yaml::bad",
        "transcript: ",
    ):
        assert told in ran.stdout
    assert "1 failed in" in run("test", "test_demo.yaml::bad", exit=1).stdout


@pytest.mark.parametrize(
    ("cases", "code"),
    [
        (GOOD, 0),
        (GOOD + WRONG, 3),
        (BAD + WRONG, 1),
        ("  - {name: a, input: hi, agent: nowhere.yaml}\n", 3),
        ("not a list\n", 3),
    ],
    ids=["all pass", "a wrong case", "failed and wrong", "no agent", "a wrong file"],
)
def test_exit_codes_of_a_file(check, cases, code) -> None:
    check(cases, exit=code)


def test_what_could_not_run_satisfies_no_negative_expectation(run, write, agent, serve) -> None:
    """Three services that give no verdict: one that is not there, one that refuses, one that is out of order."""
    agent("{output: rain}")
    case = "agent: demo.yaml\ncases: [{name: a, input: hi, expect: {calls: [], never: get_weather}}]\n"
    write("test_demo.yaml", case)
    nowhere = ["--backend", "responses", "--endpoint", "http://127.0.0.1:9/v1"]
    ran = run("test", "test_demo.yaml", *nowhere, "--json", exit=5)
    assert (verdicts(ran), ran.data["could_not_run"]) == ({"a": "could_not_run"}, 1)
    for status, code in ((401, 4), (500, 5), (400, 5)):
        scenario = write(
            "s.yaml", f"- error: {{status: {status}, code: trouble, headers: {{retry-after-ms: '1'}}}}\n" * 9
        )
        served = serve("--scenario", scenario)
        ran = run("test", "test_demo.yaml", "--backend", "foundry", "--json", env=served.env, exit=code)
        assert verdicts(ran) == {"a": "could_not_run"}


@pytest.mark.parametrize("flags", [["-k", "nothing"], ["--tag", "none"], ["--shard", "1/1000"]])
def test_nothing_selected_is_no_success(check, flags) -> None:
    ran = check(GOOD, *flags, exit=3)
    assert "no case was selected, of 1" in ran.stderr


def test_a_folder_without_test_files_is_no_success(run, tmp_path) -> None:
    (tmp_path / "empty").mkdir()
    run("test", "empty", exit=3)
    assert "there is no file or folder nowhere" in run("test", "nowhere", exit=2).stderr


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ("handlers: false", "the turn waits for outputs that nobody gave"),
        ("outputs: {get_weather: [{output: x, when: {city: Rome}}]}", "no output for a call of get_weather"),
    ],
    ids=["pending", "no output is meant for it"],
)
def test_a_turn_that_does_not_end_well_fails_its_case(check, keys, told) -> None:
    ran = check(f"  - {{name: a, input: hi, local: {CALL}, {keys}}}\n", exit=1)
    assert told in ran.stdout


def test_pending_calls_may_be_expected(check) -> None:
    check(f"  - {{name: a, input: hi, local: {CALL}, handlers: false, expect: {{pending: [get_weather]}}}}\n")
    ran = check(f"  - {{name: a, input: hi, local: {CALL}, expect: {{pending: true}}}}\n", exit=1)
    assert "no call waits at the end" in ran.stdout


def test_failed_and_pending_calls_count_as_asked_for(check) -> None:
    failing = "outputs: {get_weather: {error: no station}}"
    check(
        f"  - {{name: a, input: hi, local: {CALL}, {failing}, expect: {{calls: [{{name: get_weather, state: failed, error: no station}}]}}}}\n"
        f"  - {{name: b, input: hi, local: {CALL}, handlers: false, expect: {{pending: true, calls: [{{name: get_weather, state: pending}}]}}}}\n"
    )
    never = check(f"  - {{name: a, input: hi, local: {CALL}, {failing}, expect: {{never: get_weather}}}}\n", exit=1)
    assert "get_weather was asked for, and must never be" in never.stdout


def test_an_output_that_is_never_asked_for_fails_the_case_and_one_of_the_defaults_does_not(run, write, agent) -> None:
    agent("manual")
    case = "agent: demo.yaml\n{}cases: [{{name: a, input: hi, local: [{{say: hello}}], {}expect: {{calls: []}}}}]\n"
    write("test_demo.yaml", case.format("", "outputs: {get_weather: rain}, "))
    assert "was never asked for" in run("test", "test_demo.yaml", exit=1).stdout
    write("test_demo.yaml", case.format("defaults: {outputs: {get_weather: rain}}\n", ""))
    run("test", "test_demo.yaml")


def test_a_failed_turn_may_be_expected(check) -> None:
    fails = "[{fail: {code: server_error, message: out of order}}]"
    check(f"  - {{name: a, input: hi, local: {fails}, expect: {{failure: {{contains: out of order}}}}}}\n")
    assert "the turn failed: " in check(f"  - {{name: a, input: hi, local: {fails}}}\n", exit=1).stdout


def test_turns_go_on_in_one_conversation_with_expectations_of_each(check) -> None:
    check(
        """\
  - name: two turns
    turns:
      - {input: Oslo?, outputs: {get_weather: rain}, expect: {calls: [get_weather], answer: {contains: Oslo}}}
      - {input: Bergen?, outputs: {get_weather: [sun]}, expect: {calls: [{name: get_weather, output: sun}], steps: 2}}
    local:
      - {when: {message: Oslo}, call: {get_weather: {city: Oslo}}}
      - {when: {output: rain}, say: Rain in Oslo.}
      - {when: {message: Bergen}, call: {get_weather: {city: Bergen}}}
      - {when: {output: sun}, say: Sun in Bergen.}
    expect: {steps: 4, answer: {contains: Bergen}, order: exact, calls: [get_weather, get_weather]}
""",
        handler="manual",
    )


def test_repeats_stop_once_the_verdict_is_certain_and_tell_the_rate_and_what_varied(check) -> None:
    case = (
        "  - {{name: a, input: hi, repeat: {{times: 10, at_least: 8}}, local: [{{call: {{get_weather: {{city: {city}}}}}}}, {{say: ok}}],"
        " outputs: {{get_weather: rain}}, expect: {{calls: [{{name: get_weather, arguments: {{city: Oslo}}}}]}}}}\n"
    )
    good = check(case.format(city="Oslo"), "-j", "1", "--json").data["cases"][0]
    assert len(good["attempts"]) == 8
    assert (good["rate"]["passed"], good["rate"]["ran"]) == (8, 8)
    assert 0.6 < good["rate"]["low"] < good["rate"]["high"] == 1.0
    bad = check(case.format(city="Rome"), "-j", "1", "--json", exit=1).data["cases"][0]
    assert len(bad["attempts"]) == 3
    assert "0 of 3 passed" in bad["explanation"][0]


def test_a_call_that_varies_between_attempts_is_named(run, write, agent) -> None:
    """The handler decides what the agent asks for next, and counts attempts in a file."""
    program = "import sys, json\nfrom pathlib import Path\nn = len(list(Path('.').glob('seen*')))\nPath(f'seen{n}').touch()\nprint('even' if n % 2 == 0 else 'odd')"
    write("count.py", program)
    agent("{exec: [python3, count.py]}")
    write(
        "test_demo.yaml",
        """\
agent: demo.yaml
cases:
  - name: a
    input: hi
    repeat: {times: 4, at_least: 4}
    local:
      - {when: {message: hi}, call: {get_weather: {city: Oslo}}}
      - {when: {output: even}, say: even}
      - {when: {output: odd}, call: {get_weather: {city: Bergen}}}
    limits: {rounds: 2}
    expect: {calls: [{name: get_weather, times: 1}], answer: even}
""",
    )
    case = run("test", "test_demo.yaml", "-j", "1", "--json", exit=1).data["cases"][0]
    (told,) = case["rate"]["varied"]
    assert told.startswith("get_weather varied: ")
    assert "Bergen" in told


@pytest.mark.parametrize(
    "case",
    [
        "turns: [{input: hi, expect: {pending: true}}], expect: {answer: {contains: otter}}",
        "turns: [{input: hi, expect: {answer: {contains: otter}}}], expect: {pending: true}",
    ],
)
def test_an_answer_that_is_not_there_is_a_failure_also_where_a_pending_call_is_expected(check, case) -> None:
    ran = check(f"  - {{name: a, local: {CALL}, handlers: false, {case}}}\n", exit=1)
    assert "there is no answer" in ran.stdout


@pytest.mark.parametrize(
    "calls", ["{get_weather: {city: %s}}", "[{get_weather: {city: %s}}, {get_weather: {city: %s}}]"]
)
def test_a_pattern_that_takes_for_ever_on_what_the_agent_asks_for_ends(check, calls) -> None:
    """Outputs are chosen on a worker's thread, or on those that run the calls of one step side by side."""
    calls = calls.replace("%s", "a" * 40 + "!")
    outputs = "{get_weather: [{when: {city: {regex: '^(a+)+$'}}, output: x}]}"
    ran = check(f"  - {{name: a, input: hi, local: [{{call: {calls}}}, {{say: x}}], outputs: {outputs}}}\n", exit=1)
    assert "the case has no output for a call of get_weather" in ran.stdout


@pytest.mark.parametrize(
    "failure", ["{absent: true}", "{ignore: true}", "{one_of: [{absent: true}, {contains: quota}]}"]
)
def test_a_call_that_waits_is_a_failure_also_where_a_turn_may_fail(check, failure) -> None:
    ran = check(f"  - {{name: a, input: hi, local: {CALL}, handlers: false, expect: {{failure: {failure}}}}}\n", exit=1)
    assert "the turn waits for outputs that nobody gave" in ran.stdout


def test_a_turn_that_a_limit_ended_waits_for_nobody(check) -> None:
    local = "[{call: {get_weather: {city: Oslo}}, repeat: forever}]"
    case = f"  - {{name: a, input: hi, local: {local}, expect: {{%s}}}}\n"
    assert "turn limit 10 reached" in check(case % "pending: true", exit=1).stdout
    check(case % "failure: {contains: turn limit 10 reached}")


@pytest.mark.parametrize(
    ("local", "handler"),
    [(CALL, "{exec: [sleep, '60']}"), ("[{say: It rains in Oslo., delay: 1s}]", "manual")],
    ids=["a handler", "a service"],
)
def test_a_turn_that_takes_longer_than_it_may_fails_its_case(check, local, handler) -> None:
    case = f"  - {{name: a, input: hi, limits: {{seconds: 0.5}}, local: {local}}}\n"
    ran = check(case, "--json", handler=handler, exit=1)
    (failed,) = ran.data["cases"]
    assert "turn limit 0.5 s reached (time)" in failed["explanation"][0]
    assert failed["seconds"] < 30


def test_an_answer_that_may_be_anything_or_nothing_may_be_missing(check) -> None:
    check(
        f"  - {{name: a, input: hi, local: {CALL}, handlers: false, expect: {{pending: true, answer: {{ignore: true}}}}}}\n"
    )


def test_an_answer_that_looks_like_a_number_is_a_text_all_the_same(check) -> None:
    cases = "".join(
        f"  - {{name: case {number}, input: hi, local: [{{say: '42'}}], expect: {{answer: {answer}}}}}\n"
        for number, answer in enumerate(
            ["{type: string}", "{schema: {type: string, pattern: '^..$'}}", "{type: integer}", "42"]
        )
    )
    check(cases)


def test_a_case_that_waits_holds_up_no_other(check) -> None:
    """A service asks again under an id that was answered, which on sessions nothing can tell from the old call."""
    again = "{name: get_weather, id: call_0, arguments: {city: %s}}"
    stuck = f"[{{call: [{again % 'Oslo'}]}}, {{call: [{again % 'Rome'}]}}, {{say: done}}]"
    cases = f"  - {{name: stuck, input: hi, limits: {{seconds: 1}}, local: {stuck}}}\n{GOOD}"
    ran = check(cases, "--protocol", "openai", "--json", exit=1)
    assert verdicts(ran) == {"stuck": "failed", "good": "passed"}
    stuck_case, good = ran.data["cases"]
    assert good["seconds"] < stuck_case["seconds"] < 60


def test_every_case_of_a_matrix_runs_whatever_its_name_is(check) -> None:
    call = "call: {get_weather: {city: '{{x}}'}}"
    ran = check(
        f"  - {{name: val, matrix: {{x: [1, '1']}}, input: 'go {{{{x}}}}', local: [{{{call}}}, {{say: done}}],"
        " expect: {calls: [{name: get_weather, arguments: {city: {type: string}}}]}}\n",
        "--json",
        exit=1,
    )
    assert sorted(verdicts(ran).values()) == ["failed", "passed"]


def test_a_broken_case_is_chosen_by_its_tag(check) -> None:
    broken = "  - {name: broken, tags: [smoke], input: hi, expcet: {calls: []}}\n"
    check(broken + "  - {name: good, tags: [smoke], input: hi, local: [{say: ok}]}\n", "--tag", "smoke", exit=3)

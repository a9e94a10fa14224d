"""Record once, replay strictly: with the real handlers or with what they gave then."""

from __future__ import annotations

import pytest

from tests.cli.cases.conftest import CALL

CASE = f"  - {{name: a, input: Oslo?, local: {CALL}, expect: {{calls: [get_weather], answer: {{contains: rains}}}}}}\n"


def test_a_replay_needs_no_service_and_runs_the_real_handlers(check) -> None:
    check(CASE, "--record", "rec")
    told = check(CASE, "--replay", "rec", handler="{output: sun}", exit=1).stdout
    assert "what was sent is not what was recorded" in told
    assert 'expected "rain", got "sun"' in told
    check(CASE, "--replay", "rec", "--handlers", "recorded", handler="{output: sun}")


def test_what_a_case_gives_too_much_or_too_little_fails_a_replay_as_it_failed(check) -> None:
    twice = "[{call: {get_weather: {city: Oslo}}}, {call: {get_weather: {city: Rome}}}, {say: done}]"
    cases = (
        f"  - {{name: lacks, input: hi, outputs: {{get_weather: [rain]}}, local: {twice}}}\n"
        "  - {name: unused, input: hi, outputs: {get_weather: rain}, local: [{say: done}]}\n"
        f"  - {{name: good, input: hi, outputs: {{get_weather: [rain, sun]}}, local: {twice}}}\n"
    )
    runs = [["--record", "rec"], ["--replay", "rec"], ["--replay", "rec", "--handlers", "recorded"]]
    for flags in runs:
        data = check(cases, *flags, "--json", exit=1).data
        assert [case["verdict"] for case in data["cases"]] == ["failed", "failed", "passed"], flags


def test_another_message_is_a_failure_with_the_nearest_recorded_one(check) -> None:
    check(CASE, "--record", "rec")
    told = check(CASE.replace("Oslo?", "Oslo!"), "--replay", "rec", exit=1).stdout
    assert "the recording has no answer to this message" in told
    assert "Oslo?" in told


def test_other_instructions_make_a_recording_stale_and_a_missing_attempt_is_no_failure(check, agent, run) -> None:
    check(CASE, "--record", "rec")
    path = agent("{output: rain}")
    path.write_text(path.read_text().replace("You help.", "You do not help."))
    assert "stale" in run("test", "test_demo.yaml", "--replay", "rec", exit=3).stdout
    again = check(CASE.replace("input:", "repeat: 2, input:"), "--replay", "rec", exit=3)
    assert "attempt 2 was not recorded" in again.stdout


def test_calls_that_stayed_pending_stay_pending_with_recorded_handlers(check) -> None:
    case = f"  - {{name: a, input: hi, local: {CALL}, handlers: false, expect: {{pending: true}}}}\n"
    check(case, "--record", "rec")
    check(case, "--replay", "rec")
    check(case, "--replay", "rec", "--handlers", "recorded")


def test_two_test_files_of_one_name_have_recordings_of_their_own(run, write, agent) -> None:
    agent("{output: rain}")
    for folder in ("one", "two"):
        case = f"agent: ../demo.yaml\ncases: [{{name: a, input: from {folder}, local: [{{say: {folder}}}], expect: {{answer: {folder}}}}}]\n"
        write(f"{folder}/tests.yaml", case)
    run("test", ".", "--record", "rec")
    assert run("test", ".", "--replay", "rec", "--json").data["passed"] == 2


def test_a_secret_reaches_no_recording(check, tmp_path) -> None:
    secret = "agtok-0123456789"
    case = f"  - {{name: of {secret}, input: it is {secret}, local: [{{say: so {secret}}}]}}\n"
    told = check(case, "--record", "rec", env={"AGENT_TOKEN": secret}).stderr
    (path,) = (tmp_path / "rec").rglob("*.yaml")
    assert secret not in path.read_text() + path.name + told
    check(case, "--replay", "rec", env={"AGENT_TOKEN": secret})


def test_ids_are_numbered_without_garbling_what_was_said(check, tmp_path) -> None:
    """One id is a word, one is another's number; the handler sends its call's id back."""
    case = """\
  - name: a
    turns: [{input: call_2 had a day}, {input: again}]
    local:
      - {when: {message: day}, call: [{name: get_weather, arguments: {city: a day in Oslo}, id: a}]}
      - say: "{{output.get_weather}}"
      - {when: {message: again}, call: [{name: get_weather, arguments: {city: Rome}, id: call_2020}]}
      - say: "{{output.get_weather}}"
"""
    handler = "{exec: [sh, -c, 'echo \"a call $AGENTFN_CALL_ID\"']}"
    check(case, "--record", "rec", handler=handler)
    (path,) = (tmp_path / "rec").rglob("*.yaml")
    text = path.read_text()
    assert "a day in Oslo" in text
    assert "call_2020" not in text
    assert "call-2" in text
    check(case, "--replay", "rec", handler=handler)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("steps:\n", "steps: []\n        was:\n", "steps"),
        ("functions:\n", "functions: 5\n  was:\n", "functions"),
        ("function: get_weather", "function: [1]", "function"),
        ("case: a", "case: b", "it is a recording of 'b', not of 'a'"),
        ("agentfn: 1", "agentfn: 9", "it was recorded in the form 9"),
        ("agentfn: 1", "[", "test_demo"),
    ],
    ids=["no steps", "functions", "a call", "another case", "another form", "no YAML"],
)
def test_a_damaged_recording_is_told_at_its_place(check, tmp_path, old, new, told) -> None:
    check(CASE, "--record", "rec")
    (path,) = (tmp_path / "rec").rglob("*.yaml")
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    ran = check(CASE, "--replay", "rec", exit=3)
    assert told in ran.stdout
    check(CASE, "--replay", "rec", "--handlers", "recorded", exit=3)

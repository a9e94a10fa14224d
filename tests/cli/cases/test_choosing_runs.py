"""Which cases of a run are run, when it stops early, and what it leaves on the service."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

GOOD = "  - {name: good, input: hi, local: [{say: hello}]}\n"
BAD = "  - {name: bad, input: hi, local: [{say: hello}], expect: {answer: bye}}\n"
LATER = "  - {name: later, input: hi, local: [{say: hello}]}\n"
BROKEN = "  - {name: broken, input: hi, repeat: none}\n"
DOWN = "  - {name: down, input: hi, local: [{error: {status: 400, code: bad_request}}]}\n"


def verdicts(ran) -> dict[str, str]:
    return {case["name"]: case["verdict"] for case in ran.data["cases"]}


@pytest.fixture
def again(check):
    """Run the cases that failed the last time, of cases that may have been mended since."""

    def go(cases: str, *flags: str, **options):
        return verdicts(check(cases, "--last-failed", "--json", *flags, **options))

    return go


def test_only_what_failed_or_could_not_run_the_last_time_is_run_again(check, again) -> None:
    check(GOOD + BAD + BROKEN + DOWN, exit=1)
    assert again(GOOD + BAD + BROKEN + DOWN, exit=1) == {
        "bad": "failed",
        "broken": "could_not_run",
        "down": "could_not_run",
    }


def test_what_passes_when_it_is_run_again_is_not_run_a_third_time(check, again) -> None:
    check(GOOD + BAD + BROKEN, exit=1)
    mended = BAD.replace("bye", "hello")
    assert again(GOOD + mended + BROKEN, exit=3) == {"bad": "passed", "broken": "could_not_run"}
    assert again(GOOD + mended + BROKEN, exit=3) == {"broken": "could_not_run"}
    assert again(GOOD + mended + BROKEN.replace("none", "1"), exit=0) == {"broken": "passed"}


def test_what_was_not_chosen_or_not_reached_stays_among_the_failed(check, again) -> None:
    check(GOOD + BAD + LATER.replace("[{say: hello}]", "[{say: hello}], expect: {answer: bye}"), exit=1)
    check(GOOD + BAD + LATER, "-k", "good")
    assert again(GOOD + BAD + LATER, "--fail-fast", "-j", "1", exit=1) == {"bad": "failed", "later": "not_run"}
    assert again(GOOD + BAD.replace("bye", "hello") + LATER) == {"bad": "passed", "later": "passed"}


def test_cases_of_one_name_in_two_files_are_told_apart(run, write, agent) -> None:
    agent()
    for folder, answer in (("one", "hello"), ("two", "bye")):
        write(
            f"{folder}/tests.yaml",
            f"agent: ../demo.yaml\ncases: [{{name: a, input: hi, local: [{{say: hello}}], expect: {{answer: {answer}}}}}]\n",
        )
    run("test", ".", exit=1)
    (case,) = run("test", ".", "--last-failed", "--json", exit=1).data["cases"]
    assert case["file"] == "two/tests.yaml"


def test_after_the_first_failure_nothing_more_begins_and_every_report_says_so(check, tmp_path) -> None:
    flags = ["--fail-fast", "-j", "1", "--junit", "out.xml", "--html", "out.html"]
    ran = check(GOOD + BAD + LATER, *flags, exit=1)
    assert "1 passed, 1 failed, 1 not run in" in ran.stdout
    junit = ET.parse(tmp_path / "out.xml").getroot()  # noqa: S314  # ours
    skipped = [case.get("name") for case in junit.iter("testcase") if case.find("skipped") is not None]
    assert skipped == ["later"]
    assert "not run" in (tmp_path / "out.html").read_text()
    data = check(GOOD + BAD + LATER, *flags, "--json", exit=1).data
    assert (data["passed"], data["failed"], data["could_not_run"], data["not_run"]) == (1, 1, 0, 1)
    assert data["cases"][2]["verdict"] == "not_run"
    assert data["cases"][2]["attempts"] == []


def test_what_could_not_run_stops_nothing(check) -> None:
    ran = check(BROKEN + DOWN + GOOD + BAD + LATER, "--fail-fast", "-j", "1", "--json", exit=1)
    assert verdicts(ran) == {
        "broken": "could_not_run",
        "down": "could_not_run",
        "good": "passed",
        "bad": "failed",
        "later": "not_run",
    }


def test_a_repeated_case_is_not_stopped_by_a_failed_attempt_that_it_may_have(check) -> None:
    """One attempt of two may fail, so the first that fails decides nothing."""
    step = "{when: {message: hi}, call: {get_weather: {city: Oslo}}}"
    program = "from pathlib import Path; p = Path('seen'); print('sun' if p.exists() else 'rain'); p.touch()"
    flaky = (
        f"  - {{name: flaky, input: hi, repeat: {{times: 2, at_least: 1}}, local: [{step}, {{say: '{{{{output}}}}'}}],"
        " expect: {answer: sun}}\n"
    )
    handler = f"{{exec: [python3, -c, {json.dumps(program)}]}}"
    ran = check(flaky + LATER, "--fail-fast", "-j", "1", "--json", handler=handler)
    assert verdicts(ran) == {"flaky": "passed", "later": "passed"}
    assert [attempt["passed"] for attempt in ran.data["cases"][0]["attempts"]] == [False, True]


def test_cases_are_chosen_by_file_and_name_each_once_in_the_order_given(check, run) -> None:
    check(GOOD + BAD + LATER, exit=1)
    chosen = ["test_demo.yaml::later", "test_demo.yaml::good", "test_demo.yaml::later"]
    assert list(verdicts(run("test", *chosen, "--json"))) == ["later", "good"]
    ran = run("test", "test_demo.yaml::nobody", "--json", exit=2)
    assert ran.json["errors"][0]["code"] == "case_not_found"
    assert ran.json["errors"][0]["hint"] == "it has: good, bad, later"


def test_a_case_of_a_matrix_is_chosen_by_the_name_and_the_command_that_the_report_gives(check, run) -> None:
    check(
        "  - {name: 'says {{word}}', matrix: {word: [hello, bye]}, input: hi, local: [{say: hello}],"
        " expect: {answer: '{{word}}'}}\n",
        exit=1,
    )
    (failed,) = run("test", "test_demo.yaml", "--last-failed", "--json", exit=1).data["cases"]
    assert verdicts(run("test", failed["id"], "--json", exit=1)) == {failed["name"]: "failed"}
    assert failed["command"] == f"agentfn test '{failed['id']}'"


def test_parts_make_the_whole_together_and_a_case_keeps_its_part_when_others_come(run, write, agent) -> None:
    agent()
    case = "  - {{name: case {}, input: hi, local: [{{say: hello}}]}}\n"

    def parts(cases: int) -> dict[str, int]:
        found: dict[str, int] = {}
        for file in ("test_one.yaml", "test_two.yaml"):
            write(file, "agent: demo.yaml\ncases:\n" + "".join(case.format(number) for number in range(cases)))
        for number in (1, 2, 3):
            ids = [case["id"] for case in run("test", ".", "--shard", f"{number}/3", "--json").data["cases"]]
            assert ids, "a part without cases would prove nothing"
            assert not found.keys() & set(ids), "no case belongs to two parts"
            found |= dict.fromkeys(ids, number)
        return found

    few, many = parts(6), parts(12)
    assert len(few) == 12
    assert len(many) == 24
    assert few.items() <= many.items()


@pytest.mark.parametrize("part", ["0/2", "3/2", "1", "a/b"])
def test_a_part_that_is_none_is_a_slip(check, part) -> None:
    assert f"--shard {part} is no part of a whole" in check(GOOD, "--shard", part, exit=2).stderr


@pytest.fixture
def made(run, serve, write, agent):
    """Return the flags of a service on which another agent was made by hand, and what there is of agents and conversations."""
    served = serve("--scenario", write("s.yaml", "- {say: hello, repeat: forever}\n"))
    run.env |= served.env
    flags = ["--backend", "foundry"]
    run("create", agent(name="by-hand"), *flags)

    def there(*more: str) -> tuple[list[str], int]:
        data = run("list", "--json", *flags, *more).data
        return sorted(row["agent"] for row in data["agents"]), len(data["conversations"])

    return flags, there


def test_what_a_run_made_on_a_service_is_removed_at_its_end(check, made) -> None:
    flags, there = made
    check(GOOD + LATER, *flags)
    assert there() == there("--remote") == (["by-hand:1"], 0)


def test_what_a_run_made_is_kept_until_its_clean_up_which_takes_nothing_else(check, run, made) -> None:
    flags, there = made
    told = [check(GOOD + LATER, "--keep", *flags).stderr.splitlines()[0] for _ in range(2)]
    first, second = (re.fullmatch(r"2 cases on foundry, run (run_\w+)", line)[1] for line in told)  # type: ignore[index]
    names = [f"demo-{name.removeprefix('run_')}:1" for name in (first, second)]
    assert there() == there("--remote") == (sorted(["by-hand:1", *names]), 4)
    removed = run("cleanup", "--run", first, "--yes", "--json", *flags).data["deleted"]
    assert sorted(row["kind"] for row in removed) == ["agent", "conversation", "conversation"]
    assert there() == there("--remote") == (sorted(["by-hand:1", names[1]]), 2)
    run("cleanup", "--run", second, "--yes", *flags)
    assert there() == there("--remote") == (["by-hand:1"], 0)


GOOD_FILE = "agent: demo.yaml\ncases:\n" + GOOD


def test_last_failed_runs_nothing_where_nothing_failed(run, write, agent) -> None:
    agent()
    write("test_demo.yaml", GOOD_FILE)
    assert "none that is left failed the last time" in run("test", ".", "--last-failed", exit=3).stderr
    run("test", ".")
    run("test", ".", "--last-failed", exit=3)


def test_a_file_that_could_not_be_read_failed_with_all_its_cases(run, write, agent) -> None:
    agent()
    write("test_demo.yaml", "cases: [")
    run("test", ".", exit=3)
    write("test_demo.yaml", GOOD_FILE)
    assert "1 passed" in run("test", ".", "--last-failed").stdout
    run("test", ".", "--last-failed", exit=3)


def test_a_matrix_that_was_wrong_failed_with_all_its_rows(check) -> None:
    case = "  - {name: m, matrix: {x: [1, 2]%s}, input: 'hi {{x}}', local: [{say: no}]}\n"
    check(case % ", unused: [3]", exit=3)
    ran = check(case % "", "--last-failed", "--json")
    assert list(verdicts(ran)) == ["m [1]", "m [2]"]


def test_a_file_that_is_named_twice_runs_once(run, write, agent) -> None:
    agent()
    path = write("test_demo.yaml", GOOD_FILE)
    ran = run("test", "test_demo.yaml", Path("../") / path.parent.name / "test_demo.yaml", path, ".", "--json")
    assert ran.data["passed"] == 1

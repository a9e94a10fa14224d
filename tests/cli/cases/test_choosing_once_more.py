"""What failed the last time, and each case once however it was named."""

from __future__ import annotations

from pathlib import Path

GOOD = "agent: demo.yaml\ncases:\n  - {name: a, input: hi, local: [{say: x}], expect: {answer: x}}\n"


def test_last_failed_runs_nothing_where_nothing_failed(run, write, agent) -> None:
    agent()
    write("test_demo.yaml", GOOD)
    assert "none that is left failed the last time" in run("test", ".", "--last-failed", exit=3).stderr
    run("test", ".")
    run("test", ".", "--last-failed", exit=3)


def test_a_file_that_could_not_be_read_failed_with_all_its_cases(run, write, agent) -> None:
    agent()
    write("test_demo.yaml", "cases: [")
    run("test", ".", exit=3)
    write("test_demo.yaml", GOOD)
    assert "1 passed" in run("test", ".", "--last-failed").stdout
    run("test", ".", "--last-failed", exit=3)


def test_a_file_that_is_named_twice_runs_once(run, write, agent) -> None:
    agent()
    path = write("test_demo.yaml", GOOD)
    ran = run("test", "test_demo.yaml", Path("../") / path.parent.name / "test_demo.yaml", path, ".", "--json")
    assert ran.data["passed"] == 1

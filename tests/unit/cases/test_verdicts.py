"""Verdicts of repeated cases, their rates, and the exit code of a run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentfn.cases.case import BrokenCase, Case, Repeat
from agentfn.cases.expect.failure import Failure
from agentfn.cases.happened import Attempt
from agentfn.cases.results import CaseResult, Judged, RunResult, certain_verdict, interval
from agentfn.errors import AgentfnError, Finding, InvalidFileError, NotAuthorisedError, ServiceError

PASS = Judged(Attempt(1, (), 0.0), ())
FAIL = Judged(Attempt(1, (), 0.0), (Failure("answer", "no"),))


def broke(error: AgentfnError) -> Judged:
    return Judged(Attempt(1, (), 0.0, error=error), ())


@pytest.fixture
def case(read) -> Case:
    (found,) = read("agent: agent.yaml\ncases: [{name: a, input: hi}]\n")
    assert isinstance(found, Case)
    return found


@pytest.mark.parametrize(
    ("times", "at_least", "attempts", "verdict"),
    [
        (1, 1, [PASS], "passed"),
        (1, 1, [FAIL], "failed"),
        (3, 2, [PASS], None),
        (3, 2, [PASS, PASS], "passed"),
        (3, 2, [FAIL, PASS], None),
        (3, 2, [FAIL, FAIL], "failed"),
        (3, 3, [FAIL], "failed"),
        (2, 1, [broke(ServiceError("x")), FAIL], None),
        (2, 1, [broke(ServiceError("x")), PASS], "passed"),
    ],
)
def test_a_verdict_is_certain_as_soon_as_nothing_can_change_it(case, times, at_least, attempts, verdict) -> None:
    assert certain_verdict(case._replace(repeat=Repeat(times, at_least)), attempts) == verdict


def test_an_attempt_that_could_not_run_neither_passed_nor_failed(case) -> None:
    case = case._replace(repeat=Repeat(2, 1))
    assert CaseResult(case, (broke(ServiceError("x")), FAIL)).verdict == "could_not_run"
    assert CaseResult(case, (broke(ServiceError("x")),)).verdict == "could_not_run"


@pytest.mark.parametrize(
    ("results", "code"),
    [
        (["pass"], 0),
        (["pass", "fail"], 1),
        ([ServiceError("x"), "fail"], 1),
        ([NotAuthorisedError("x"), ServiceError("x")], 4),
        ([ServiceError("x"), NotAuthorisedError("x")], 5),
        (["pass", InvalidFileError([Finding("f", 1, 1, "r", "wrong")])], 3),
    ],
)
def test_the_exit_code_of_a_run(case, results, code) -> None:
    made = {"pass": PASS, "fail": FAIL}
    found = tuple(CaseResult(case, (made[r] if isinstance(r, str) else broke(r),)) for r in results)
    assert RunResult("run_1", found, 0.0).exit_code == code


def test_a_broken_case_could_not_run(case) -> None:
    broken = BrokenCase(case.file, "b", 1, 1, InvalidFileError([Finding("f", 1, 1, "r", "wrong")]))
    assert RunResult("run_1", (CaseResult(broken), CaseResult(case, (PASS,))), 0.0).exit_code == 3


@given(st.integers(1, 200).flatmap(lambda runs: st.tuples(st.integers(0, runs), st.just(runs))))
def test_the_interval_holds_the_rate_and_stays_between_none_and_all(counts) -> None:
    passed, runs = counts
    low, high = interval(passed, runs)
    assert 0 <= low <= passed / runs + 1e-12
    assert passed / runs - 1e-12 <= high <= 1
    assert low < high


def test_the_interval_is_wilsons() -> None:
    assert interval(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert interval(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)

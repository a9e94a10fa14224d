"""What came of the cases: verdicts, rates, and the exit code of all."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Literal, NamedTuple

from agentfn.errors import AgentfnError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentfn.cases.case import BrokenCase, Case
    from agentfn.cases.expect.failure import Failure
    from agentfn.cases.happened import Attempt
    from agentfn.lifecycle.cleanup import Left

Verdict = Literal["passed", "failed", "could_not_run", "not_run"]

#: 95 % of a normal distribution lie within so many standard deviations.
_Z = 1.959964


class Judged(NamedTuple):
    """An attempt and in what it was not as expected."""

    attempt: Attempt
    failures: tuple[Failure, ...]

    @property
    def passed(self) -> bool:
        """Tell whether it ran and all was as expected."""
        return self.attempt.error is None and not self.failures


class CaseResult(NamedTuple):
    """What came of one case. `attempts` are in the order in which they ended."""

    case: Case | BrokenCase
    attempts: tuple[Judged, ...] = ()

    @property
    def error(self) -> AgentfnError | None:
        """Return the first cause why the case, or an attempt at it, could not run."""
        from agentfn.cases.case import BrokenCase

        if isinstance(self.case, BrokenCase):
            return self.case.error
        return next((judged.attempt.error for judged in self.attempts if judged.attempt.error is not None), None)

    @property
    def verdict(self) -> Verdict:
        """Return the verdict; an attempt that could not run neither passed nor failed."""
        from agentfn.cases.case import BrokenCase

        if isinstance(self.case, BrokenCase):
            return "could_not_run"
        certain = certain_verdict(self.case, self.attempts)
        if certain is not None:
            return certain
        return "could_not_run" if self.error is not None else "not_run"

    @property
    def seconds(self) -> float:
        """Return how long its attempts took, one after another."""
        return sum(judged.attempt.seconds for judged in self.attempts)

    @property
    def has_transcript(self) -> bool:
        """Tell whether anything was said in it."""
        return any(judged.attempt.turns for judged in self.attempts)

    @property
    def failed_attempt(self) -> Judged | None:
        """Return the first attempt that failed."""
        return next((judged for judged in self.attempts if judged.failures and judged.attempt.error is None), None)


def certain_verdict(case: Case, attempts: Sequence[Judged]) -> Verdict | None:
    """Return the verdict where further attempts cannot change it, else None."""
    passed = sum(judged.passed for judged in attempts)
    failed = sum(bool(judged.failures) and judged.attempt.error is None for judged in attempts)
    if passed >= case.repeat.at_least:
        return "passed"
    return "failed" if failed > case.repeat.times - case.repeat.at_least else None


class RunResult(NamedTuple):
    """A whole run. `left` is what could not be removed from the service."""

    run: str
    results: tuple[CaseResult, ...]
    seconds: float
    left: tuple[Left, ...] = ()
    interrupted: bool = False

    def count(self, verdict: Verdict) -> int:
        """Return how many cases have that verdict."""
        return sum(result.verdict == verdict for result in self.results)

    @property
    def exit_code(self) -> ExitCode:
        """Return 1 where a case failed, else the code of the first cause why one could not run, else 0."""
        if any(result.verdict == "failed" for result in self.results):
            return ExitCode.NEGATIVE
        for result in self.results:
            if result.verdict == "could_not_run" and result.error is not None:
                code = result.error.exit_code
                possible = (ExitCode.INVALID_FILE, ExitCode.NOT_AUTHORISED, ExitCode.SERVICE)
                # What is a slip on a command line is one in a file here.
                return code if code in possible else ExitCode.INVALID_FILE
        return ExitCode.OK


def interval(passed: int, runs: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of a rate (Wilson's, which holds for few runs and at 0 and 1 too)."""
    if not runs:
        return 0.0, 1.0
    rate, square = passed / runs, _Z * _Z
    middle = (rate + square / (2 * runs)) / (1 + square / runs)
    half = _Z / (1 + square / runs) * math.sqrt(rate * (1 - rate) / runs + square / (4 * runs * runs))
    return max(0.0, middle - half), min(1.0, middle + half)


def varied(attempts: Sequence[Judged]) -> list[str]:
    """Say which calls were not the same in all attempts that ran, and how often each form of them was seen."""
    ran = [judged.attempt for judged in attempts if judged.attempt.error is None]
    if len(ran) < 2:  # noqa: PLR2004  # one alone varies from nothing
        return []
    names = list(dict.fromkeys(call.function for attempt in ran for call in attempt.calls))
    told = []
    for name in names:
        forms = Counter(
            ", ".join(str(call) for call in attempt.calls if call.function == name) or "not asked for"
            for attempt in ran
        )
        if len(forms) > 1:
            told.append(f"{name} varied: " + "; ".join(f"{count} times {form}" for form, count in forms.most_common(4)))
    return told

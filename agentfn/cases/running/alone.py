"""One case on the thread that asks for it, attempt after attempt, where somebody else spreads cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentfn.cases.results import CaseResult, Judged, certain_verdict
from agentfn.cases.running.judging import judged

if TYPE_CHECKING:
    from agentfn.cases.case import Case
    from agentfn.cases.running.attempt import Runner
    from agentfn.cases.running.place import Ground


def run_alone(case: Case, runner: Runner, ground: Ground) -> CaseResult:
    """Run a case as often as its verdict needs."""
    attempts: list[Judged] = []
    while len(attempts) < case.repeat.times and certain_verdict(case, attempts) is None:
        attempt = runner.run(case, len(attempts) + 1, ground)
        attempts.append(judged(case, attempt, runner.surroundings.masker))
    return CaseResult(case, tuple(attempts))

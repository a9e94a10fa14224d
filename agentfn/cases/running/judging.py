"""Compares an attempt as it was, and tells of it without secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentfn.cases.expect.judge import judge
from agentfn.cases.report.masked import masked_attempt
from agentfn.cases.results import Judged

if TYPE_CHECKING:
    from agentfn.cases.case import Case
    from agentfn.cases.happened import Attempt
    from agentfn.masking import Masker


def judged(case: Case, attempt: Attempt, masker: Masker) -> Judged:
    """Return an attempt with what was not as expected in it; one that could not run is not judged.

    What failures show of it is cut short, and a part of a secret is not recognised any more, so they are made of the
    masked attempt. Where only the secret itself was wrong, that one fits, and the failures as they are have to do.
    """
    failures = [] if attempt.error is not None else judge(case, attempt)
    hidden = masked_attempt(attempt, masker)
    if failures and masker.secrets:
        failures = judge(case, hidden) or failures
    return Judged(hidden, tuple(failures))

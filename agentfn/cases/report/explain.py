"""Explains what came of a case in words that a person can act on; every report uses them."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, NamedTuple

from agentfn.cases.case import BrokenCase
from agentfn.cases.results import interval, varied
from agentfn.errors import InvalidFileError
from agentfn.visible import short, short_error, visible

if TYPE_CHECKING:
    from agentfn.cases.happened import Attempt
    from agentfn.cases.results import CaseResult

_WIDTH = 400
_OUTPUT_WIDTH = 160
TITLES = {"passed": "passed", "failed": "FAILED", "could_not_run": "COULD NOT RUN", "not_run": "not run"}


class Context(NamedTuple):
    """What every report knows of a run: the flags that its commands need, and where transcripts are."""

    run: str
    backend: str
    endpoint: str
    flags: str = ""
    page: str | None = None


def command(result: CaseResult, context: Context) -> str:
    """Return the command that runs just this case."""
    return f"agentfn test {shlex.quote(result.case.id)}{context.flags}"


def anchor(number: int) -> str:
    """Return the name of a case's place on the HTML page; cases count from 1."""
    return f"case-{number}"


def rate(result: CaseResult) -> str:
    """Return how often a repeated case passed, with the confidence interval; empty for one that ran once."""
    case = result.case
    ran = [judged for judged in result.attempts if judged.attempt.error is None]
    if isinstance(case, BrokenCase) or case.repeat.times == 1 or not ran:
        return ""
    passed = sum(judged.passed for judged in ran)
    low, high = interval(passed, len(ran))
    wanted = f"at least {case.repeat.at_least} of {case.repeat.times} wanted"
    return f"{passed} of {len(ran)} passed ({low:.0%} to {high:.0%} with 95 % confidence), {wanted}"


def explain(result: CaseResult, context: Context, number: int) -> list[str]:
    """Return why a case failed or could not run, line by line, safe to show; empty where it passed."""
    lines: list[str] = []
    if result.verdict in ("passed", "not_run"):
        return lines
    lines += [rate(result)] if rate(result) else []
    judged = result.failed_attempt if result.verdict == "failed" else None
    if judged is not None:
        if len(result.attempts) > 1:
            lines.append(f"attempt {judged.attempt.number}:")
        for failure in judged.failures:
            lines += failure.lines()
        lines += said_instead(judged.attempt)
    elif result.error is not None:
        error = result.error
        found = [str(finding) for finding in error.findings] if isinstance(error, InvalidFileError) else [error.message]
        lines += found
        lines += [f"  try: {error.hint}"] if error.hint else []
    lines += varied(result.attempts)
    lines.append(f"run it alone: {command(result, context)}")
    if context.page is not None and result.has_transcript:
        lines.append(f"transcript: {context.page}#{anchor(number)}")
    return [visible(line) for line in lines]


def said_instead(attempt: Attempt) -> list[str]:
    """Return what the agent said at the end, and the calls it asked for."""
    if not attempt.turns:
        return []
    last = attempt.turns[-1]
    lines = [f"  call      {call}: {_came(call.state, call.output, call.error)}" for call in attempt.calls]
    if last.answer is not None:
        lines.append(f"  it said   {short(last.answer, _WIDTH)}")
    return lines


def _came(state: str, output: str | None, error: str | None) -> str:
    if error is not None:
        return f"{state}, {short_error(error, _OUTPUT_WIDTH)}"
    return state if output is None else f"{state}, {short(output, _OUTPUT_WIDTH)}"


def headline(result: CaseResult) -> str:
    """Return a case's verdict, place and name on one line."""
    name = result.case.name or "(the whole file)"
    title = TITLES[result.verdict]
    return visible(f"{title}  {result.case.location}  {name}", multiline=False)


def summary(counts: dict[str, int], seconds: float) -> str:
    """Return the counts on one line."""
    parts = [f"{counts['passed']} passed"]
    parts += [f"{counts['failed']} failed"] if counts["failed"] else []
    parts += [f"{counts['could_not_run']} could not run"] if counts["could_not_run"] else []
    parts += [f"{counts['not_run']} not run"] if counts["not_run"] else []
    return f"{', '.join(parts)} in {seconds:.1f} s"

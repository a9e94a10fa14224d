"""The report as one document: the `data` of ``test --json``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentfn.cases.case import BrokenCase
from agentfn.cases.report.explain import Context, anchor, command, explain
from agentfn.cases.results import interval, varied
from agentfn.turn.state import usage_report

if TYPE_CHECKING:
    from agentfn.cases.happened import HappenedCall, HappenedTurn
    from agentfn.cases.results import CaseResult, Judged, RunResult, Verdict
    from agentfn.model import Json

COUNTS: tuple[Verdict, ...] = ("passed", "failed", "could_not_run", "not_run")


def counts(result: RunResult) -> dict[str, int]:
    """Return how many cases have each verdict."""
    return {verdict: result.count(verdict) for verdict in COUNTS}


def as_data(result: RunResult, context: Context) -> dict[str, Json]:
    """Return the whole run; times are in seconds."""
    return {
        "run": result.run,
        "backend": context.backend,
        "endpoint": context.endpoint,
        **counts(result),
        "seconds": round(result.seconds, 3),
        "cases": [case_data(case, context, number) for number, case in enumerate(result.results, 1)],
        "left": [{"kind": i.resource.kind, "name": i.resource.label, "why": i.why} for i in result.left],
        "page": context.page,
    }


def case_data(result: CaseResult, context: Context, number: int) -> dict[str, Json]:
    """Return one case: its verdict, why, and every attempt with all its turns."""
    case, error = result.case, result.error
    found: dict[str, Json] = {
        "id": case.id,
        "name": case.name,
        "file": str(case.file),
        "line": case.line,
        "column": case.column,
        "tags": list(case.tags or ()),
        "verdict": result.verdict,
        "seconds": round(result.seconds, 3),
        "explanation": explain(result, context, number),
        "command": command(result, context),
        "transcript": f"{context.page}#{anchor(number)}" if context.page and result.has_transcript else None,
        "error": None if error is None else {"code": error.code, "message": error.message, "hint": error.hint},
        "attempts": [_attempt(judged) for judged in result.attempts],
    }
    if not isinstance(case, BrokenCase) and case.repeat.times > 1:
        ran = [judged for judged in result.attempts if judged.attempt.error is None]
        passed = sum(judged.passed for judged in ran)
        low, high = interval(passed, len(ran))
        found["rate"] = {
            "passed": passed,
            "ran": len(ran),
            "times": case.repeat.times,
            "at_least": case.repeat.at_least,
            "low": round(low, 4),
            "high": round(high, 4),
            "varied": varied(result.attempts),
        }
    return found


def _attempt(judged: Judged) -> dict[str, Json]:
    attempt = judged.attempt
    return {
        "number": attempt.number,
        "passed": judged.passed,
        "seconds": round(attempt.seconds, 3),
        "conversation": attempt.conversation or None,
        "failures": [failure.as_json() for failure in judged.failures],
        "error": attempt.error.message if attempt.error is not None else None,
        "turns": [_turn(turn) for turn in attempt.turns],
    }


def _turn(turn: HappenedTurn) -> dict[str, Json]:
    return {
        "message": turn.message,
        "state": turn.state,
        "answer": turn.answer,
        "failure": turn.failure,
        "steps": turn.steps,
        "seconds": round(turn.seconds, 3),
        "usage": usage_report(turn.usage) if turn.usage is not None else None,
        "calls": [_call(call) for call in turn.calls],
    }


def _call(call: HappenedCall) -> dict[str, Json]:
    return {
        "id": call.id,
        "function": call.function,
        "arguments": call.value,
        "step": call.step,
        "state": call.state,
        "output": call.output,
        "error": call.error,
        "problem": call.problem,
        "seconds": None if call.seconds is None else round(call.seconds, 3),
    }

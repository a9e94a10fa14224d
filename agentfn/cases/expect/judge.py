"""Says in what an attempt differs from what its case expects; an attempt that could not run is not judged here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentfn.cases.expect.calls import call_failures
from agentfn.cases.expect.expectations import Expectations
from agentfn.cases.expect.failure import Failure
from agentfn.cases.expect.matchers import MISSING, shown
from agentfn.visible import short

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agentfn.cases.case import Case
    from agentfn.cases.happened import Attempt, HappenedCall, HappenedTurn

_WIDTH = 400


def judge(case: Case, attempt: Attempt) -> list[Failure]:
    """Return everything in which an attempt is not as expected; empty where it passed."""
    found: list[Failure] = []
    if attempt.refused is not None:
        return [attempt.refused]
    told: list[Failure] = []
    for spec, turn in zip(case.turns, attempt.turns, strict=False):
        meant = [spec.expect, case.expect] if turn is attempt.turns[-1] else [spec.expect]
        told = list(
            _unfinished(
                turn,
                may_fail=any(expect.failure is not None for expect in meant),
                may_wait=any(expect.pending is not False for expect in meant),
            )
        )
        found += [*told, *_of_turns(spec.expect, [turn], explained=bool(told))]
    if attempt.turns:
        found += _of_turns(case.expect, attempt.turns, explained=bool(told))
    left = len(case.turns) - len(attempt.turns)
    if left and not found:
        found.append(Failure("turns", f"{left} of {len(case.turns)} turns were not begun"))
    found += [
        Failure("outputs", f"the case has no output for a call of {name} that was asked for", line=case.line)
        for name in attempt.unanswered
    ]
    if not found:
        found += [
            Failure("outputs", f"an output was given for {name}, which was never asked for", line=case.line)
            for name in attempt.unused
        ]
    return found


def _unfinished(turn: HappenedTurn, *, may_fail: bool, may_wait: bool) -> Iterator[Failure]:
    """Say why a turn is a failure that has no answer, or took too long for one, where that was not expected of it."""
    if turn.limit is not None:
        if not may_fail:
            yield Failure("limits", turn.limit, expected="an answer")
    elif turn.state == "failed":
        if not may_fail and not may_wait:
            yield Failure("failure", f"the turn failed: {turn.failure}", expected="an answer")
    elif turn.state == "pending" and not may_wait and not (may_fail and turn.failure is not None):
        waiting = ", ".join(
            f"{call} {f'({call.problem})' if call.problem else ''}".strip() for call in _waiting([turn])
        )
        told = turn.failure or "the turn waits for outputs that nobody gave"
        yield Failure("pending", told, expected="an answer", actual=f"waiting: {waiting}" if waiting else "")


def _of_turns(expect: Expectations, turns: Sequence[HappenedTurn], *, explained: bool) -> Iterator[Failure]:
    """Compare turns; `explained` says that it was told already why the last of them has no answer."""
    calls = [call for turn in turns for call in turn.calls]
    yield from call_failures(expect, calls)
    last = turns[-1]
    if expect.pending is not False:
        yield from _pending(expect, turns)
    if expect.answer is not None and (last.answer is not None or not explained):
        yield from _text(expect, last)
    if expect.failure is not None:
        differences = expect.failure.differences(MISSING if last.failure is None else last.failure)
        if differences:
            got = last.failure or f"the answer {shown(last.answer)}"
            told = "the turn did not fail as expected" if last.failure else "the turn did not fail"
            yield Failure("failure", told, str(expect.failure), got, differences=tuple(differences), line=expect.line)
    yield from _limits(expect, turns)


def _waiting(turns: Sequence[HappenedTurn]) -> list[HappenedCall]:
    return [call for turn in turns for call in turn.calls if call.state == "pending"]


def _pending(expect: Expectations, turns: Sequence[HappenedTurn]) -> Iterator[Failure]:
    waiting = _waiting(turns)
    if turns[-1].state != "pending":
        told = "no call waits at the end"
        yield Failure("pending", told, "a call that waits", _ending(turns[-1]), line=expect.line)
        return
    for failure in call_failures(Expectations(calls=expect.pending or ()), waiting):
        yield failure._replace(rule="pending", message=failure.message.replace("was not asked for", "does not wait"))


def _text(expect: Expectations, last: HappenedTurn) -> Iterator[Failure]:
    assert expect.answer is not None  # noqa: S101  # the caller asked
    if last.answer is None:
        if not expect.answer.differences(MISSING):
            return
        yield Failure("answer", "there is no answer", str(expect.answer), _ending(last), line=expect.line)
        return
    differences = expect.answer.differences(last.answer)
    if differences:
        yield Failure(
            "answer",
            "the answer is not as expected",
            expected=str(expect.answer),
            actual=short(last.answer, _WIDTH),
            differences=tuple(d for d in differences if d.path),
            line=expect.line,
        )


def _ending(turn: HappenedTurn) -> str:
    if turn.state == "ended":
        return f"the agent said: {short(turn.answer or '', _WIDTH)}"
    return turn.failure or turn.state


def _limits(expect: Expectations, turns: Sequence[HappenedTurn]) -> Iterator[Failure]:
    if expect.steps is not None:
        steps = sum(turn.steps for turn in turns)
        if not expect.steps.holds(steps):
            yield Failure("steps", f"it took {steps} steps", f"{expect.steps} steps", f"{steps}", line=expect.line)
    if expect.seconds is not None:
        seconds = sum(turn.seconds for turn in turns)
        if not expect.seconds.holds(seconds):
            told = f"it took {seconds:.2f} s"
            yield Failure("seconds", told, f"{expect.seconds} s", f"{seconds:.2f} s", line=expect.line)
    if expect.tokens is not None:
        if any(turn.usage is None for turn in turns):
            told = "the service told no token counts, so they cannot be compared"
            yield Failure("tokens", told, f"{expect.tokens} tokens", line=expect.line)
            return
        tokens = sum(turn.usage.total_tokens for turn in turns if turn.usage is not None)
        if not expect.tokens.holds(tokens):
            yield Failure(
                "tokens", f"it took {tokens} tokens", f"{expect.tokens} tokens", f"{tokens}", line=expect.line
            )

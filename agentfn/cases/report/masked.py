"""Takes every known secret out of a run's result before anything is reported of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentfn.cases.case import BrokenCase, Case
    from agentfn.cases.expect.failure import Failure
    from agentfn.cases.happened import Attempt, HappenedCall, HappenedTurn
    from agentfn.cases.results import CaseResult, Judged, RunResult
    from agentfn.errors import AgentfnError
    from agentfn.masking import Masker


def masked(result: RunResult, masker: Masker) -> RunResult:
    """Return the result without known secrets."""
    if not masker.secrets:
        return result
    return result._replace(results=tuple(masked_case(case, masker) for case in result.results))


def masked_case(result: CaseResult, masker: Masker) -> CaseResult:
    """Return one case's result without known secrets."""
    if not masker.secrets:
        return result
    hide = _Hide(masker)
    return result._replace(case=hide.case(result.case), attempts=tuple(hide.judged(one) for one in result.attempts))


def masked_attempt(attempt: Attempt, masker: Masker) -> Attempt:
    """Return what happened without known secrets."""
    return _Hide(masker).attempt(attempt) if masker.secrets else attempt


class _Hide:
    """Replaces the texts of results."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker

    def _text(self, text: str | None) -> str | None:
        return None if text is None else self._masker.mask(text)

    def case(self, case: Case | BrokenCase) -> Case | BrokenCase:
        from agentfn.cases.case import BrokenCase

        if isinstance(case, BrokenCase):
            return case._replace(**self._named(case), error=self._error(case.error))
        return case._replace(**self._named(case))

    def _named(self, case: Case | BrokenCase) -> dict[str, Any]:
        tags = None if case.tags is None else tuple(map(self._masker.mask, case.tags))
        return {"name": self._masker.mask(case.name), "tags": tags}

    def judged(self, judged: Judged) -> Judged:
        return judged._replace(
            attempt=self.attempt(judged.attempt),
            failures=tuple(self._failure(failure) for failure in judged.failures),
        )

    def attempt(self, attempt: Attempt) -> Attempt:
        return attempt._replace(
            turns=tuple(self._turn(turn) for turn in attempt.turns),
            error=None if attempt.error is None else self._error(attempt.error),
            refused=None if attempt.refused is None else self._failure(attempt.refused),
        )

    def _turn(self, turn: HappenedTurn) -> HappenedTurn:
        return turn._replace(
            message=self._masker.mask(turn.message),
            answer=self._text(turn.answer),
            failure=self._text(turn.failure),
            calls=tuple(self._call(call) for call in turn.calls),
            events=tuple(event._replace(data=self._masker.mask_json(event.data)) for event in turn.events),
        )

    def _call(self, call: HappenedCall) -> HappenedCall:
        return call._replace(
            arguments=self._masker.mask(call.arguments),
            output=self._text(call.output),
            error=self._text(call.error),
            problem=self._text(call.problem),
        )

    def _failure(self, failure: Failure) -> Failure:
        mask = self._masker.mask
        return failure._replace(
            message=mask(failure.message),
            expected=mask(failure.expected),
            actual=mask(failure.actual),
            nearest=mask(failure.nearest),
            differences=tuple(type(d)(*(mask(part) for part in d)) for d in failure.differences),
        )

    def _error(self, error: AgentfnError) -> AgentfnError:
        return error.rewritten(self._masker.mask)

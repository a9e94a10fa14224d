"""Outcomes that come from outside: picks the call that is meant, and reads ``--outputs`` and ``--content``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from agentfn.errors import Finding, InvalidFileError, NegativeError, UsageError
from agentfn.handlers.outputs import BadOutput, content_parts, to_text
from agentfn.model import Json, Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from agentfn.journal.calls import CallRow

_KEYS = ("output", "error", "content")


def pick_call(rows: Sequence[CallRow], call: str | None) -> CallRow:
    """Return the waiting call that is meant: the named one, or the only one.

    Raises UsageError where several wait and none is named, NegativeError where it is not there.
    """
    open_rows = [row for row in rows if is_open(row)]
    if call is not None:
        row = next((row for row in rows if row.id == call), None)
        if row is None:
            raise NegativeError(
                f"no call {call} waits; waiting: {_names(open_rows) or 'none'}",
                code="call_not_found",
                hint="agentfn pending",
            )
        if not is_open(row):
            raise NegativeError(
                f"call {call} ({row.function}) has its outcome already, and keeps it",
                code="call_answered",
                hint="agentfn respond, without an output, sends what is there",
            )
        return row
    if not open_rows:
        raise NegativeError("no call waits for an output", code="call_not_found", hint="agentfn pending")
    if len(open_rows) > 1:
        raise UsageError(
            f"{len(open_rows)} calls wait: {_names(open_rows)}",
            code="ambiguous_call",
            hint=f"name one: --call {open_rows[0].id}",
        )
    return open_rows[0]


def is_open(row: CallRow) -> bool:
    """Tell whether a call can be given an outcome: it has none, or one that the service would refuse."""
    return row.outcome is None or row.problem is not None


def abandoned(rows: Sequence[CallRow]) -> dict[str, Outcome]:
    """Return an honest error for each call that has no outcome, so that the conversation can go on."""
    return {
        row.id: Outcome(error="nobody can answer this call; it was abandoned") for row in rows if row.outcome is None
    }


def _names(rows: Sequence[CallRow]) -> str:
    return ", ".join(f"{row.id} ({row.function})" for row in rows)


def read_content(path: Path) -> Outcome:
    """Return the outcome that a file with an array of content parts gives."""
    from agentfn.document.read import read_document

    document = read_document(path)
    try:
        return Outcome(content=content_parts(document.value))
    except BadOutput as exc:
        raise InvalidFileError([document.finding((), "content", str(exc))]) from exc


def read_outputs(path: Path, rows: Sequence[CallRow]) -> dict[str, Outcome]:
    """Return the outcomes that a file gives, by call id.

    It maps a call id, or a function with exactly one waiting call, to a text or to one of output, error and content.
    """
    from agentfn.document.read import read_document

    document = read_document(path)
    if not isinstance(document.value, dict):
        raise InvalidFileError([document.finding((), "outputs", "expected a mapping of calls to outputs")])
    outcomes: dict[str, Outcome] = {}
    findings: list[Finding] = []
    for key, value in document.value.items():
        try:
            row = _row(str(key), rows)
            if row.id in outcomes:
                raise BadOutput(f"call {row.id} is answered twice")  # collected with the others
            outcomes[row.id] = _outcome(value)
        except BadOutput as exc:
            findings.append(document.finding((key,), "outputs", str(exc)))
    if findings:
        raise InvalidFileError(findings)
    return outcomes


def _row(key: str, rows: Sequence[CallRow]) -> CallRow:
    rows = [row for row in rows if is_open(row)]
    by_id = next((row for row in rows if row.id == key), None)
    if by_id is not None:
        return by_id
    by_function = [row for row in rows if row.function == key]
    if len(by_function) == 1:
        return by_function[0]
    if by_function:
        raise BadOutput(f"{len(by_function)} calls of {key} wait; name them by id: {_names(by_function)}")
    raise BadOutput(f"no waiting call has the id or the function {key}; waiting: {_names(rows) or 'none'}")


def _outcome(value: Json) -> Outcome:
    if isinstance(value, str):
        return Outcome(output=value)
    if not isinstance(value, Mapping) or len(value) != 1 or next(iter(value)) not in _KEYS:
        raise BadOutput("expected a text, or a mapping with exactly one of output, error and content")
    ((kind, given),) = value.items()
    if kind == "output":
        return Outcome(output=to_text(given))
    if kind == "content":
        return Outcome(content=content_parts(given))
    if not isinstance(given, str):
        raise BadOutput("error must be a text")
    return Outcome(error=given)


def masked(outcome: Outcome, mask: Callable[[Json], Json]) -> Outcome:
    """Return the outcome with known secrets masked; what is journaled and sent never holds one."""
    return Outcome(mask(outcome.output), mask(outcome.content), mask(outcome.error))

"""Keeps what a service answers while cases run against it."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any, cast

from agentfn.cases.recording.tape import (
    RecordedStep,
    RecordedTurn,
    Recording,
    fingerprint,
    path_of,
    written,
)
from agentfn.model import Call, Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from agentfn.backends.protocol import Backend, Listener, Start, Submit
    from agentfn.cases.case import Case
    from agentfn.masking import Masker
    from agentfn.model import Json, Step


#: Characters of a call's id that is replaced, also within texts, where a handler may have put it.
_SHORTEST_ID = 8


class Recorder:
    """The recordings of one run. Safe to use from several threads."""

    def __init__(self, folder: Path, masker: Masker) -> None:
        self._folder = folder
        self._masker = masker
        self._found: dict[str, tuple[Case, str, dict[int, tuple[RecordedTurn, ...]]]] = {}
        self._lock = threading.Lock()

    def tape(self, backend: Backend) -> Tape:
        """Return a tape for one worker's backend."""
        return Tape(self, backend)

    def keep(self, case: Case, number: int, backend: str, turns: tuple[RecordedTurn, ...]) -> None:
        """Take a whole attempt."""
        with self._lock:
            self._found.setdefault(case.id, (case, backend, {}))[2][number] = turns

    def write(self) -> list[Path]:
        """Write a file for each case that was recorded, in place of what it held; return the files."""
        paths = []
        for case, backend, attempts in self._found.values():
            path = path_of(self._folder, case, self._masker)
            path.parent.mkdir(parents=True, exist_ok=True)
            text = self._masker.mask(written(Recording(case.name, backend, fingerprint(case.agent), attempts)))
            # Beside it first: a run that is stopped here leaves the old recording whole.
            beside = path.with_name(path.name + ".new")
            beside.write_text(text, "utf-8", errors="backslashreplace")
            beside.replace(path)
            paths.append(path)
        return paths

    def mask(self, value: Json) -> Json:
        """Return a value without known secrets."""
        return self._masker.mask_json(value)


class Tape:
    """Records one worker's attempts, one after another. `backend` is to be used in place of the real one."""

    def __init__(self, recorder: Recorder, backend: Backend) -> None:
        self._recorder = recorder
        self._name = backend.name
        self._attempt: _Attempt | None = None
        self._current: tuple[Case, int] | None = None
        self.backend = cast("Backend", _Recording(backend, self))

    def begin(self, case: Case, number: int) -> None:
        """Begin an attempt."""
        self._current = (case, number)
        self._attempt = _Attempt(self._recorder)

    def end(self) -> None:
        """End the attempt; one in which a request failed is not kept, since there is nothing to play."""
        if self._current is not None and self._attempt is not None and self._attempt.is_whole:
            case, number = self._current
            self._recorder.keep(case, number, self._name, self._attempt.turns())
        self._attempt = None

    def asked(self, request: Start | Submit) -> None:
        """Take a request that goes out; until its answer came the attempt is not whole."""
        if self._attempt is not None:
            self._attempt.asked(request)

    def answered(self, step: Step) -> None:
        """Take the answer."""
        if self._attempt is not None:
            self._attempt.answered(step)


class _Attempt:
    """What was recorded of one attempt so far, with numbers in place of the service's ids."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._turns: list[tuple[str, list[RecordedStep]]] = []
        self._sent: dict[str, Outcome] | None = None
        self._ids: dict[str, str] = {}

    @property
    def is_whole(self) -> bool:
        return bool(self._turns) and self._sent is None

    def turns(self) -> tuple[RecordedTurn, ...]:
        return tuple(RecordedTurn(message, tuple(steps)) for message, steps in self._turns)

    def asked(self, request: Start | Submit) -> None:
        outcomes = getattr(request, "outcomes", None)
        if outcomes is None:
            # The test file's own words: an id in them is no id of this conversation.
            self._turns.append((self._recorder.mask(request.message), []))  # type: ignore[union-attr]  # a Start
            self._sent = {}
            return
        self._sent = {self._id(call.id): Outcome(*self._plain(list(outcome))) for call, outcome in outcomes}

    def answered(self, step: Step) -> None:
        calls = tuple(Call(self._id(call.id), call.function, self._plain(call.arguments)) for call in step.calls)
        answer, failure = self._plain(step.answer), self._plain(step.failure)
        self._turns[-1][1].append(RecordedStep(self._sent or {}, calls, answer, failure, step.usage))
        if not step.actions:  # what else the service waits for cannot be played, so the attempt is never whole
            self._sent = None

    def _id(self, call: str) -> str:
        """Return a number in the id's place; a short id is nobody's random one, and stays where it is free."""
        if call not in self._ids:
            is_free = len(call) < _SHORTEST_ID and call not in self._ids.values()
            self._ids[call] = call if is_free else f"call-{len(self._ids) + 1}"
        return self._ids[call]

    def _plain(self, value: Json) -> Json:
        """Return a value without secrets and without the service's own call ids."""
        value = self._recorder.mask(value)
        return _replaced(value, self._ids)


def _replaced(value: Json, ids: dict[str, str]) -> Json:
    """Replace ids where they stand alone in a text, all at once; a short one may be any word, and stays."""
    if isinstance(value, str):
        known = "|".join(re.escape(old) for old in ids if len(old) >= _SHORTEST_ID)
        return re.sub(rf"(?<![\w-])(?:{known})(?![\w-])", lambda found: ids[found[0]], value) if known else value
    if isinstance(value, list):
        return [_replaced(item, ids) for item in value]
    if isinstance(value, dict):
        return {key: _replaced(item, ids) for key, item in value.items()}
    return value


class _Recording:
    """A backend whose turns are recorded; everything else is the real one's."""

    def __init__(self, backend: Backend, tape: Tape) -> None:
        self._backend = backend
        self._tape = tape

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def start(self, request: Start, listener: Listener) -> Step:
        """Send a message, and record it with its answer."""
        self._tape.asked(request)
        step = self._backend.start(request, listener)
        self._tape.answered(step)
        return step

    def submit(self, request: Submit, listener: Listener) -> Step:
        """Send outcomes, and record them with the answer."""
        self._tape.asked(request)
        step = self._backend.submit(request, listener)
        self._tape.answered(step)
        return step

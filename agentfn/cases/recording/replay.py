"""Plays recordings in place of a service: strictly, with the difference to what was recorded where something else is sent."""

from __future__ import annotations

import json
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, cast

from agentfn.backends.credentials import fixed
from agentfn.backends.protocol import Look, OutputLimit
from agentfn.cases.expect.failure import Failure
from agentfn.cases.expect.matchers import Difference, exactly, shown
from agentfn.cases.recording.tape import fingerprint, path_of, read_recording
from agentfn.cases.running.baton import Baton
from agentfn.cases.running.place import RefusedError
from agentfn.document.check import instance_problems
from agentfn.errors import Finding, InvalidFileError
from agentfn.handlers.protocol import Result
from agentfn.journal.store import Journal
from agentfn.lifecycle.runs import RunFolder
from agentfn.model import AgentRef, Outcome, Step
from agentfn.turn.state import arguments_value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from agentfn.backends.protocol import Backend, Listener, Start, Submit
    from agentfn.cases.case import Case
    from agentfn.cases.recording.tape import RecordedStep, RecordedTurn, Recording
    from agentfn.cases.running.baton import Hold
    from agentfn.cases.running.place import Ground, Surroundings
    from agentfn.definition.agent import Agent
    from agentfn.handlers.protocol import CallContext, Handler
    from agentfn.lifecycle.cleanup import Left
    from agentfn.model import Json
    from agentfn.turn.events import Event


class ReplayPlace:
    """Recordings in a folder answer; nothing is made anywhere, so nothing is to be cleared away but the run's folder."""

    def __init__(self, surroundings: Surroundings, folder: Path) -> None:
        self._surroundings = surroundings
        self._folder = folder
        self._own = RunFolder(surroundings.home, surroundings.run)
        self._baton = Baton()

    def open(self, worker: int) -> Ground:
        """Return a ground on which recordings answer."""
        home = self._own.path / str(worker)
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        return _ReplayGround(self._surroundings, self._folder, home, self._baton.hold())

    def finish(self, *, given_up: bool) -> list[Left]:
        """Throw the run's folder away."""
        del given_up
        self._own.discard()
        return []

    def handlers(self, case: Case, number: int) -> dict[str, Handler]:
        """Return handlers that give what was recorded, for every function of which a call was answered then."""
        path = path_of(self._folder, case, self._surroundings.masker)
        steps = [step for turn in _attempt(read_recording(path, case), number, path) for step in turn.steps]
        recorded = _RecordedHandler({call: outcome for step in steps for call, outcome in step.sent.items()})
        return {call.function: recorded for step in steps for call in step.calls if recorded.has(call.id)}


class _RecordedHandler:
    """Gives each call the outcome that it had when it was recorded."""

    def __init__(self, outcomes: Mapping[str, Outcome]) -> None:
        self._outcomes = outcomes

    def has(self, call: str) -> bool:
        return call in self._outcomes

    def problem(self) -> str | None:
        return None

    def run(self, arguments: Mapping[str, Json], context: CallContext) -> Result:
        del arguments
        told = "the recording ends before this call was answered"
        return Result(self._outcomes.get(context.call.id, Outcome(error=told)))


class _ReplayGround:
    """One worker's player."""

    def __init__(self, surroundings: Surroundings, folder: Path, home: Path, hold: Hold) -> None:
        self._player = _Player(surroundings, str(folder))
        self.backend = cast("Backend", self._player)
        self.journal = Journal(home, durable=False, clock=surroundings.clock)
        self._folder = folder
        self._masker = surroundings.masker
        self._hold = hold

    def begin(self, case: Case, number: int) -> None:
        self._hold.take()
        path = path_of(self._folder, case, self._masker)
        recording = read_recording(path, case)
        stale = list(_stale(recording, case.agent))
        if stale:
            findings = [Finding(str(path), 0, 0, "stale-recording", f"stale: {reason}") for reason in stale]
            raise InvalidFileError(findings, hint="record it again: agentfn test … --record DIR")
        self._player.load(recording, _attempt(recording, number, path))

    def agent(self, agent: Agent) -> AgentRef:
        return AgentRef(agent.name, "1")

    def heard(self, event: Event) -> None:
        self._hold.heard(event)

    def finished(self) -> None:
        self._player.require_over()

    def end(self, case: Case, number: int, conversation: str) -> None:
        del case, number, conversation
        self._hold.end()

    def close(self) -> None:
        self.journal.close()


def _stale(recording: Recording, agent: Agent) -> list[str]:
    """Return why the recorded answers are not this agent's any more: other instructions, calls that it cannot make."""
    now, found = fingerprint(agent), []
    if recording.agent.instructions != now.instructions:
        found.append("the agent's instructions changed since it was recorded")
    steps = [step for turns in recording.attempts.values() for turn in turns for step in turn.steps]
    for call in (call for step in steps for call in step.calls):
        tool, before = agent.function(call.function), recording.agent.functions.get(call.function)
        if tool is None and before is not None:
            found.append(f"the agent has no function {call.function} any more, and the recording asks for it")
        elif tool is not None and before != now.functions[call.function]:
            problems = instance_problems(arguments_value(call.arguments), tool.parameters or True)
            found += [f"{call.function} changed, and a recorded call breaks its schema: {p.message}" for p in problems]
    return list(dict.fromkeys(found))


def _attempt(recording: Recording, number: int, path: Path) -> tuple[RecordedTurn, ...]:
    """Return a recorded attempt; without it nothing is learned about the case, so it could not run."""
    if number not in recording.attempts:
        told = f"attempt {number} was not recorded; there are {len(recording.attempts)}"
        raise InvalidFileError([Finding(str(path), 0, 0, "recording", told)], hint="record it again: --record DIR")
    return recording.attempts[number]


class _Player:
    """A backend that gives recorded answers to exactly the recorded requests."""

    name = "replay"
    names_turns = False
    seconds_to_answer: int | None = None
    output_limit = OutputLimit(100_000_000, "bytes")
    list_lag = 0.0
    credential = fixed("replay", "none needed: recordings answer")

    def __init__(self, surroundings: Surroundings, endpoint: str) -> None:
        self.endpoint = endpoint
        self._clock = surroundings.clock
        self._masker = surroundings.masker
        self._recording: Recording | None = None
        self._turns: tuple[RecordedTurn, ...] = ()
        self._turn = self._step = self._count = 0

    def load(self, recording: Recording, turns: tuple[RecordedTurn, ...]) -> None:
        self._recording = recording
        self._turns = turns
        self._turn = self._step = 0

    def start(self, request: Start, listener: Listener) -> Step:
        if request.conversation is None:
            self._count += 1
            listener.conversation_opened(f"conv_{id(self)}_{self._count}")
        message = self._masker.mask(request.message)
        if self._turn >= len(self._turns) or self._turns[self._turn].message != message:
            raise RefusedError(self._unexpected_message(message))
        self._turn += 1
        self._step = 0
        return self._given(self._turns[self._turn - 1].steps[0])

    def submit(self, request: Submit, listener: Listener) -> Step:
        del listener
        self._step += 1
        turn = self._turns[self._turn - 1]
        if self._step >= len(turn.steps):
            told = "outputs were sent, and the recording ends before them"
            raise RefusedError(Failure("recording", told, "nothing more", _told(request)))
        step = turn.steps[self._step]
        self._require_same(step, request)
        return self._given(step)

    def _given(self, step: RecordedStep) -> Step:
        now = self._clock()
        self._count += 1
        return Step(f"resp_{self._count}", now, now, step.calls, step.answer, step.failure, step.usage)

    def _require_same(self, step: RecordedStep, request: Submit) -> None:
        differences: list[Difference] = []
        for call, outcome in request.outcomes:
            recorded = step.sent.get(call.id)
            place = f"{call.function}[{call.id}]"
            if recorded is None:
                differences.append(Difference(place, "no output", _text(outcome)))
                continue
            found = exactly(_value(recorded)).differences(_value(outcome))
            differences += [d._replace(path=place + d.path) for d in found]
        if differences:
            told = "what was sent is not what was recorded"
            expected = ", ".join(f"{call}: {_text(outcome)}" for call, outcome in step.sent.items())
            raise RefusedError(Failure("recording", told, expected, _told(request), differences=tuple(differences)))

    def _unexpected_message(self, message: str) -> Failure:
        """Say what was sent, and which recorded message came nearest."""
        assert self._recording is not None  # noqa: S101  # loaded before a turn starts
        known = [turn.message for turns in self._recording.attempts.values() for turn in turns]
        nearest = max(known, key=lambda text: SequenceMatcher(None, text, message).ratio(), default="")
        if self._turn < len(self._turns):
            expected = shown(self._turns[self._turn].message)
        else:
            expected = "nothing more: the recording ends here"
        told = "the recording has no answer to this message"
        return Failure("recording", told, expected, shown(message), nearest=shown(nearest) if known else "")

    def require_over(self) -> None:
        turn = self._turns[self._turn - 1]
        left = len(self._turns) - self._turn
        if left or self._step < len(turn.steps) - 1:
            told = "the recording goes on, and nothing more was sent"
            expected = shown(self._turns[self._turn].message) if left else "outputs"
            raise RefusedError(Failure("recording", told, expected, "the end"))

    def look(self, conversation: str, message: str | None = None, earlier_same: int = 0) -> Look:
        del conversation, message, earlier_same
        return Look(exists=True)

    def close(self) -> None:
        """Hold nothing."""

    def __getattr__(self, name: str) -> Any:
        msg = f"a recording has no {name}"
        raise AttributeError(msg)


def _value(outcome: Outcome) -> Json:
    """Return an outcome as what is compared: JSON where a text is JSON, so that its spacing does not matter."""
    if outcome.error is not None:
        return {"error": outcome.error}
    if outcome.content is not None:
        return outcome.content
    try:
        return json.loads(outcome.output or "")
    except (ValueError, RecursionError):
        return outcome.output


def _text(outcome: Outcome) -> str:
    return shown(_value(outcome))


def _told(request: Submit) -> str:
    return ", ".join(f"{call.id}: {_text(outcome)}" for call, outcome in request.outcomes)

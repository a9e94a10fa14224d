"""What a place for attempts offers, and what all places have in common."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, NamedTuple, Protocol

from agentfn.backends import BackendOptions
from agentfn.definition.digest import digest
from agentfn.errors import AgentfnError, NegativeError, ServiceError
from agentfn.journal.ledger import Ledger
from agentfn.lifecycle.ensure import create

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from agentfn.backends.protocol import Backend
    from agentfn.cases.case import Case
    from agentfn.cases.expect.failure import Failure
    from agentfn.cases.recording.record import Recorder, Tape
    from agentfn.definition.agent import Agent
    from agentfn.journal.store import Journal
    from agentfn.lifecycle.cleanup import Left
    from agentfn.masking import Masker
    from agentfn.model import AgentRef
    from agentfn.turn.events import Event

#: foundry.md §2.7.
LONGEST_NAME = 63


class Surroundings(NamedTuple):
    """What a run of cases is given by whoever starts it.

    `keep` leaves what was made on the service; `recorder` keeps what it answers.
    """

    run: str
    backend: str
    endpoint: str
    home: Path
    env: Mapping[str, str]
    masker: Masker
    clock: Callable[[], float]
    log: Callable[[str], None] | None = None
    keep: bool = False
    recorder: Recorder | None = None

    def options(self, home: Path) -> BackendOptions:
        """Return what a backend of this run is given."""
        return BackendOptions(home=home, log=self.log, clock=self.clock)


class RefusedError(AgentfnError):
    """A recording has no answer to what was sent: no failure that a case may expect. `failure` says it."""

    default_code = "recording"

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Ground(Protocol):
    """What one worker runs its attempts on, one after another; made and used on the worker's thread."""

    backend: Backend
    journal: Journal

    def begin(self, case: Case, number: int) -> None:
        """Make ready for an attempt."""

    def agent(self, agent: Agent) -> AgentRef:
        """Return this run's own agent of that definition, made where it is not there yet."""

    def heard(self, event: Event) -> None:
        """Take an event of the attempt, on its thread."""

    def finished(self) -> None:
        """Take note that every turn ended well; raise RefusedError where more was to come."""

    def end(self, case: Case, number: int, conversation: str) -> None:
        """Take note that an attempt is over; its conversation is not needed any more."""

    def close(self) -> None:
        """Let go of everything."""


class Place(Protocol):
    """Opens grounds, and clears away at the end what was made."""

    def open(self, worker: int) -> Ground:
        """Return a ground for a worker, on its thread."""

    def finish(self, *, given_up: bool) -> list[Left]:
        """Remove what the run made; return what is left, and why. `given_up` says that attempts may still be under way."""


def own_name(agent: Agent, run: str) -> Agent:
    """Return the definition under a name of this run's own, which no other run can meet."""
    suffix = "-" + run.removeprefix("run_")
    kept = re.sub(r"-+$", "", agent.name[: LONGEST_NAME - len(suffix)])
    return agent._replace(name=kept + suffix)


class Made:
    """The agents that a ground or a run has made, by the digest of their definition."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._run = surroundings.run
        self._refs: dict[str, AgentRef | AgentfnError] = {}
        self._lock = threading.Lock()

    def agent(self, backend: Backend, journal: Journal, agent: Agent) -> AgentRef:
        """Return the agent; one that could not be made is not tried again, and fails every case alike."""
        key = digest(agent)
        with self._lock:
            if key not in self._refs:
                self._refs[key] = self._create(backend, journal, agent)
            found = self._refs[key]
        if isinstance(found, AgentfnError):
            raise found
        return found

    def _create(self, backend: Backend, journal: Journal, agent: Agent) -> AgentRef | AgentfnError:
        ledger = Ledger(journal, backend.name, backend.endpoint)
        try:
            return create(backend, ledger, own_name(agent, self._run), self._run)
        except NegativeError as exc:
            # Nothing was learned about the agent, so this is no "no".
            return ServiceError(exc.message, code=exc.code, hint=exc.hint)
        except AgentfnError as exc:
            return exc


def recorded(backend: Backend, recorder: Recorder | None) -> tuple[Backend, Tape | None]:
    """Return the backend, with a tape that keeps what it answers where there is a recorder."""
    if recorder is None:
        return backend, None
    tape = recorder.tape(backend)
    return tape.backend, tape

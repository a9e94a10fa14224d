"""The embedded service as a place for attempts: one for each worker, thrown away at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentfn.cases.running.baton import Baton
from agentfn.cases.running.place import Made, recorded
from agentfn.journal.store import Journal
from agentfn.lifecycle.runs import RunFolder, left_runs, remove_left_run

if TYPE_CHECKING:
    from pathlib import Path

    from agentfn.cases.case import Case
    from agentfn.cases.running.baton import Hold
    from agentfn.cases.running.place import Ground, Surroundings
    from agentfn.definition.agent import Agent
    from agentfn.emulator.app import Application
    from agentfn.lifecycle.cleanup import Left
    from agentfn.model import AgentRef
    from agentfn.turn.events import Event


class LocalPlace:
    """The embedded service in process: each worker has a store and a journal of its own, in the run's folder.

    A case may move the service's clock, so no two cases that run at the same time may share one.
    """

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        for stopped in left_runs(surroundings.home):
            remove_left_run(surroundings.home, stopped)
        self._folder = RunFolder(surroundings.home, surroundings.run)
        self._baton = Baton()

    def open(self, worker: int) -> Ground:
        """Return a ground with an embedded service of its own."""
        return _LocalGround(self._surroundings, self._folder.path / str(worker), self._baton.hold())

    def finish(self, *, given_up: bool) -> list[Left]:
        """Throw the run's folder away."""
        del given_up
        self._folder.discard()
        return []


class _LocalGround:
    """One worker's embedded service."""

    def __init__(self, surroundings: Surroundings, home: Path, hold: Hold) -> None:
        from agentfn.backends.local import STATE_FILE, backend_over
        from agentfn.emulator.app import Application

        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._made = Made(surroundings)
        self._hold = hold
        self._app: Application = Application(
            home / STATE_FILE, durable=False, clock=surroundings.clock, sleep=hold.sleep
        )
        self._app.idle = hold.sleep
        self.journal = Journal(home, durable=False, clock=surroundings.clock)
        options = surroundings.options(home)._replace(sleep=hold.sleep)
        inner = backend_over(self._app, surroundings.endpoint, options)
        self.backend, self._tape = recorded(inner, surroundings.recorder)

    def begin(self, case: Case, number: int) -> None:
        """Let the case's scenario play, on a clock that nobody moved."""
        self._hold.take()
        if self._tape is not None:
            self._tape.begin(case, number)
        self._app.scenario = case.scenario
        self._app.store.reset_clock()

    def agent(self, agent: Agent) -> AgentRef:
        """Return the agent, made at its first use on this ground."""
        return self._made.agent(self.backend, self.journal, agent)

    def end(self, case: Case, number: int, conversation: str) -> None:
        """Leave the conversation: all goes with the folder."""
        del case, number, conversation
        if self._tape is not None:
            self._tape.end()
        self._hold.end()

    def heard(self, event: Event) -> None:
        """Let others compute while handlers run."""
        self._hold.heard(event)

    def finished(self) -> None:
        """Need nothing."""

    def close(self) -> None:
        """Close service and journal."""
        self.backend.close()
        self.journal.close()

"""Where attempts take place: an embedded service for each worker that is thrown away, or a real one with clean-up."""

from __future__ import annotations

import re
import threading
import time
from typing import TYPE_CHECKING, NamedTuple, Protocol

from agentfn.backends import BackendOptions, open_backend
from agentfn.definition.digest import digest
from agentfn.errors import AgentfnError, NegativeError, ServiceError
from agentfn.journal.ledger import Ledger
from agentfn.journal.store import Journal
from agentfn.lifecycle.cleanup import remove, remove_own_run
from agentfn.lifecycle.ensure import create
from agentfn.lifecycle.runs import RunFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from agentfn.backends.protocol import Backend
    from agentfn.cases.case import Case
    from agentfn.definition.agent import Agent
    from agentfn.emulator.app import Application
    from agentfn.lifecycle.cleanup import Left
    from agentfn.masking import Masker
    from agentfn.model import AgentRef
    from agentfn.turn.events import Event

#: foundry.md §2.7.
LONGEST_NAME = 63


class Surroundings(NamedTuple):
    """What a run of cases is given by whoever starts it. `keep` leaves what was made on the service."""

    run: str
    backend: str
    endpoint: str
    home: Path
    env: Mapping[str, str]
    masker: Masker
    clock: Callable[[], float]
    log: Callable[[str], None] | None = None
    keep: bool = False

    def options(self, home: Path) -> BackendOptions:
        """Return what a backend of this run is given."""
        return BackendOptions(home=home, log=self.log, clock=self.clock)


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

    def end(self, case: Case, number: int, conversation: str) -> None:
        """Take note that an attempt is over; its conversation is not needed any more."""

    def close(self) -> None:
        """Let go of everything."""


class Place(Protocol):
    """Opens grounds, and clears away at the end what was made."""

    def open(self, worker: int) -> Ground:
        """Return a ground for a worker, on its thread."""

    def finish(self) -> list[Left]:
        """Remove what the run made; return what is left, and why."""


def own_name(agent: Agent, run: str) -> Agent:
    """Return the definition under a name of this run's own, which no other run can meet."""
    suffix = "-" + run.removeprefix("run_")
    kept = re.sub(r"-+$", "", agent.name[: LONGEST_NAME - len(suffix)])
    return agent._replace(name=kept + suffix)


class _Made:
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


class Baton:
    """Lets one attempt compute at a time, the others wait for a delay or a handler.

    Service, client and journal all compute in this one process: side by side they would mostly fight for Python's own
    lock, which takes longer than one after another. Each worker has its own `Hold`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def hold(self) -> Hold:
        """Return a worker's hold, not held yet."""
        return Hold(self._lock)


class Hold:
    """One worker's hold of the baton; used on its thread alone."""

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock
        self._is_held = False
        self._handlers = 0

    def take(self) -> None:
        """Wait for the baton."""
        if not self._is_held:
            self._lock.acquire()
            self._is_held = True

    def give(self) -> None:
        """Let another worker have it."""
        if self._is_held:
            self._is_held = False
            self._lock.release()

    def sleep(self, seconds: float) -> None:
        """Wait for a time without it."""
        if seconds > 0:
            self.give()
            time.sleep(seconds)
            self.take()

    def heard(self, event: Event) -> None:
        """Do without it while handlers run."""
        if event.type == "call.started":
            self._handlers += 1
            self.give()
        elif event.type == "call.finished" and self._handlers:
            self._handlers -= 1
            if not self._handlers:
                self.take()

    def end(self) -> None:
        """Let go, however the attempt ended."""
        self._handlers = 0
        self.give()


class LocalPlace:
    """The embedded service in process: each worker has a store and a journal of its own, in the run's folder.

    A case may move the service's clock, so no two cases that run at the same time may share one.
    """

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._folder = RunFolder(surroundings.home, surroundings.run)
        self._baton = Baton()

    def open(self, worker: int) -> Ground:
        """Return a ground with an embedded service of its own."""
        return _LocalGround(self._surroundings, self._folder.path / str(worker), self._baton.hold())

    def finish(self) -> list[Left]:
        """Throw the run's folder away."""
        self._folder.discard()
        return []


class _LocalGround:
    """One worker's embedded service."""

    def __init__(self, surroundings: Surroundings, home: Path, hold: Hold) -> None:
        from agentfn.backends.local import STATE_FILE, backend_over
        from agentfn.emulator.app import Application

        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._made = _Made(surroundings)
        self._hold = hold
        self._app: Application = Application(
            home / STATE_FILE, durable=False, clock=surroundings.clock, sleep=hold.sleep
        )
        self.journal = Journal(home, durable=False, clock=surroundings.clock)
        self.backend = backend_over(self._app, surroundings.endpoint, surroundings.options(home))

    def begin(self, case: Case, number: int) -> None:
        """Let the case's scenario play, on a clock that nobody moved."""
        del number
        self._hold.take()
        self._app.scenario = case.scenario
        self._app.store.reset_clock()

    def agent(self, agent: Agent) -> AgentRef:
        """Return the agent, made at its first use on this ground."""
        return self._made.agent(self.backend, self.journal, agent)

    def end(self, case: Case, number: int, conversation: str) -> None:
        """Leave the conversation: all goes with the folder."""
        del case, number, conversation
        self._hold.end()

    def heard(self, event: Event) -> None:
        """Let others compute while handlers run."""
        self._hold.heard(event)

    def close(self) -> None:
        """Close service and journal."""
        self.backend.close()
        self.journal.close()


class RemotePlace:
    """A real service. What is made is in the ledger before it is there, so a later clean-up finds it after a crash."""

    #: Threads that remove conversations while others still run; removing must not hold up what is measured.
    CLEANERS = 4

    def __init__(self, surroundings: Surroundings) -> None:
        import queue

        self._surroundings = surroundings
        self._made = _Made(surroundings)
        self._done: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._cleaners: list[threading.Thread] = []

    def open(self, worker: int) -> Ground:
        """Return a ground with a connection and a view of the journal of its own."""
        del worker
        return _RemoteGround(self._surroundings, self._made, self._over)

    def _over(self, conversation: str) -> None:
        if self._surroundings.keep or not conversation:
            return
        if len(self._cleaners) < self.CLEANERS:
            cleaner = threading.Thread(target=self._clean, name="cleaner", daemon=True)
            self._cleaners.append(cleaner)
            cleaner.start()
        self._done.put(conversation)

    def _clean(self) -> None:
        """Remove conversations as they come; what fails here is tried again at the end, and told then."""
        journal, backend = _opened(self._surroundings)
        ledger = Ledger(journal, backend.name, backend.endpoint)
        try:
            while (conversation := self._done.get()) is not None:
                row = ledger.conversation(conversation)
                if row is not None:
                    remove(backend, ledger, [row])
        except AgentfnError:
            return
        finally:
            backend.close()
            journal.close()

    def finish(self) -> list[Left]:
        """Remove what this run made and nobody else uses."""
        for _ in self._cleaners:
            self._done.put(None)
        for cleaner in self._cleaners:
            cleaner.join()
        if self._surroundings.keep:
            return []
        journal, backend = _opened(self._surroundings)
        try:
            ledger = Ledger(journal, backend.name, backend.endpoint)
            return list(remove_own_run(backend, ledger, self._surroundings.run).left)
        finally:
            backend.close()
            journal.close()


def _opened(surroundings: Surroundings) -> tuple[Journal, Backend]:
    journal = Journal(surroundings.home, clock=surroundings.clock)
    options = surroundings.options(surroundings.home)
    return journal, open_backend(surroundings.backend, surroundings.endpoint, env=surroundings.env, options=options)


class _RemoteGround:
    """One worker's connection to a real service."""

    def __init__(self, surroundings: Surroundings, made: _Made, over: Callable[[str], None]) -> None:
        self.journal, self.backend = _opened(surroundings)
        self._made = made
        self._over = over

    def begin(self, case: Case, number: int) -> None:
        """Need nothing: each attempt opens a conversation of its own."""

    def agent(self, agent: Agent) -> AgentRef:
        """Return the run's agent, made once for all workers."""
        return self._made.agent(self.backend, self.journal, agent)

    def end(self, case: Case, number: int, conversation: str) -> None:
        """Hand the conversation over to be removed."""
        del case, number
        self._over(conversation)

    def heard(self, event: Event) -> None:
        """Need nothing: what takes long is the service."""

    def close(self) -> None:
        """Close connection and journal."""
        self.backend.close()
        self.journal.close()

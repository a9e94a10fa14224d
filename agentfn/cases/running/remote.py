"""A real service as a place for attempts: what is made there is in the ledger first, and removed at the end."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING

from agentfn.backends import open_backend
from agentfn.cases.running.place import Made, recorded
from agentfn.errors import AgentfnError
from agentfn.journal.ledger import Ledger
from agentfn.journal.store import Journal
from agentfn.lifecycle.cleanup import remove, remove_own_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentfn.backends.protocol import Backend
    from agentfn.cases.case import Case
    from agentfn.cases.running.place import Ground, Surroundings
    from agentfn.definition.agent import Agent
    from agentfn.lifecycle.cleanup import Left
    from agentfn.model import AgentRef
    from agentfn.turn.events import Event


class RemotePlace:
    """A real service. What is made is in the ledger before it is there, so a later clean-up finds it after a crash."""

    #: Threads that remove conversations while others still run; removing must not hold up what is measured.
    CLEANERS = 4

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._made = Made(surroundings)
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

    def finish(self, *, given_up: bool) -> list[Left]:
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
            return list(remove_own_run(backend, ledger, self._surroundings.run, given_up=given_up).left)
        finally:
            backend.close()
            journal.close()


def _opened(surroundings: Surroundings) -> tuple[Journal, Backend]:
    journal = Journal(surroundings.home, clock=surroundings.clock)
    options = surroundings.options(surroundings.home)
    return journal, open_backend(surroundings.backend, surroundings.endpoint, env=surroundings.env, options=options)


class _RemoteGround:
    """One worker's connection to a real service."""

    def __init__(self, surroundings: Surroundings, made: Made, over: Callable[[str], None]) -> None:
        self.journal, inner = _opened(surroundings)
        self.backend, self._tape = recorded(inner, surroundings.recorder)
        self._made = made
        self._over = over

    def begin(self, case: Case, number: int) -> None:
        """Need nothing of the service: each attempt opens a conversation of its own."""
        if self._tape is not None:
            self._tape.begin(case, number)

    def agent(self, agent: Agent) -> AgentRef:
        """Return the run's agent, made once for all workers."""
        return self._made.agent(self.backend, self.journal, agent)

    def end(self, case: Case, number: int, conversation: str) -> None:
        """Hand the conversation over to be removed."""
        del case, number
        if self._tape is not None:
            self._tape.end()
        self._over(conversation)

    def heard(self, event: Event) -> None:
        """Need nothing: what takes long is the service."""

    def finished(self) -> None:
        """Need nothing."""

    def close(self) -> None:
        """Close connection and journal."""
        self.backend.close()
        self.journal.close()

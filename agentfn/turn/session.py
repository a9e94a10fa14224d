"""What a turn needs, gathered in one place: a service, the journal, a conversation, and who answers its calls."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from agentfn.journal.turns import Conversation
from agentfn.turn.approvals import Rules
from agentfn.turn.events import Emit, Event

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agentfn.backends.protocol import Backend
    from agentfn.definition.agent import Agent
    from agentfn.handlers.protocol import Handler
    from agentfn.handlers.verify import Verifier
    from agentfn.journal.store import Journal
    from agentfn.model import AgentRef, Call, Outcome
    from agentfn.turn.approvals import Verdict


class Answerer(Protocol):
    """A person, or the absence of one."""

    def answer(self, call: Call, problem: str | None) -> Outcome | None:
        """Ask for a call's outcome; None leaves the call pending. `problem` says what is wrong with its arguments."""

    def approve(self, call: Call, runs: str, problem: str | None) -> Verdict | None:
        """Ask whether a call may run; None leaves it pending.

        `runs` says what exactly would; `problem` what is wrong with arguments that were given in place of the model's.
        """


class Nobody:
    """The answerer where no person is there to ask: every call that needs one stays pending."""

    def answer(self, call: Call, problem: str | None) -> Outcome | None:  # noqa: ARG002  # the protocol's shape
        """Leave the call pending."""
        return None

    def approve(self, call: Call, runs: str, problem: str | None) -> Verdict | None:  # noqa: ARG002  # likewise
        """Leave the call pending."""
        return None


class Policy(NamedTuple):
    """What a turn may do by itself.

    `run` lets handlers run. `tell_problems` sends the agent what is wrong with a call's arguments instead of leaving
    the call to a person. A turn is stopped when calls were answered in `rounds` steps, when one and the same call was
    asked for `identical` times (the user is warned at `repeats`), after `calls` calls, and after `seconds` of our working
    on it. `only` is the one call whose handler may run, where it is set.
    """

    run: bool = True
    tell_problems: bool = True
    rounds: int = 25
    repeats: int = 3
    identical: int = 10
    calls: int = 250
    seconds: float = 3600.0
    only: str | None = None


@dataclass(kw_only=True)
class Session:
    """One conversation, ready for turns.

    `agent` is None where only the service knows the agent's functions. `handlers` maps a function to its handler;
    `default_handler` answers functions that are not in it. `unfit` are functions whose definition changed since the
    conversation began: their calls are not checked against it, and only a person answers them. `verifiers` tell of calls
    in doubt whether they ran, `rules` which calls may run where nobody is there to ask. `stream` asks for text as
    it comes.
    """

    backend: Backend
    journal: Journal
    conversation: Conversation
    agent: Agent | None
    run: str
    emit: Emit
    handlers: Mapping[str, Handler] = field(default_factory=dict)
    default_handler: Handler | None = None
    verifiers: Mapping[str, Verifier] = field(default_factory=dict)
    rules: Rules = field(default_factory=Rules)
    unfit: frozenset[str] = frozenset()
    answerer: Answerer = field(default_factory=Nobody)
    policy: Policy = field(default_factory=Policy)
    stream: bool = False
    wait: float = 10.0
    clock: Callable[[], float] = time.time

    def tell(self, event: str, /, **data: object) -> None:
        """Emit an event about this conversation."""
        where = {"conversation": self.conversation.id} if self.conversation.id else {}
        self.emit(Event(event, self.clock(), {**where, **data}))


def functions_digest(agent: Agent | None) -> dict[str, str]:
    """Return each function's name with a digest of its parameters, to see later which handlers still fit."""
    if agent is None:
        return {}
    return {
        tool.name: hashlib.sha256(json.dumps(tool.parameters, sort_keys=True).encode()).hexdigest()[:16]
        for tool in agent.functions
    }


def new_conversation(
    backend: Backend, agent: Agent | None, ref: AgentRef, digest: str | None, run: str
) -> Conversation:
    """Return a conversation that the service has not opened yet (its id is empty)."""
    path = str(agent.path.resolve()) if agent is not None and agent.path is not None else None
    functions = functions_digest(agent)
    where = (backend.name, backend.endpoint, "")
    return Conversation(*where, ref.name, ref.version, path, digest, functions, run, 0.0)

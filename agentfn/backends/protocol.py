"""What the rest of agentfn asks of a service, whichever it is.

Two styles of service become one here. Where each model step is a request (Foundry, Responses), the waiting calls are
found in the response and all outputs of one response go back together. Where the server holds the turn open (OpenAI
sessions), outputs go one by one and the session says what still waits. Both look the same from above: `start` a turn,
get a `Step`; `submit` all outcomes of that step, get the next `Step`; `look` when in doubt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agentfn.definition.agent import Agent
    from agentfn.model import (
        AgentRef,
        Call,
        Entry,
        Json,
        Outcome,
        RemoteAgent,
        RemoteConversation,
        Stamp,
        Step,
    )


class OutputLimit(NamedTuple):
    """The longest output that the service takes; `unit` is ``characters`` or ``bytes``."""

    size: int
    unit: str


class Listener(Protocol):
    """What a backend reports while a request runs; every method may be called from the requesting thread only."""

    def conversation_opened(self, conversation: str) -> None:
        """Take the id of a new conversation, the moment the service gave it and before a message is sent on it."""

    def text(self, delta: str) -> None:
        """Take a piece of the agent's answer as it streams."""

    def retrying(self, reason: str, seconds: float) -> None:
        """Learn that a request will be sent again after so many seconds."""


class Start(NamedTuple):
    """A user message that begins a turn. `turn` is our own id of it, journaled before anything is sent.

    `conversation` None opens a new one, marked with `stamp`. `earlier_same` is how often exactly this message was
    already sent on this conversation, by which a lost reply is told from a message that never arrived.
    """

    agent: AgentRef
    message: str
    turn: str
    conversation: str | None
    stamp: Stamp
    earlier_same: int = 0
    stream: bool = False


class Submit(NamedTuple):
    """All outcomes of one step, in the order in which the calls were asked for.

    `asked_by` is the id of the step that asked (`Step.id`). `maybe_sent` says that a process before us may have sent them
    already, so that the service is asked first.
    """

    agent: AgentRef
    conversation: str
    turn: str
    asked_by: str
    outcomes: tuple[tuple[Call, Outcome], ...]
    stream: bool = False
    maybe_sent: bool = False


class Look(NamedTuple):
    """The truth about a conversation, read from the service.

    `waiting` are the calls without an output, `step` is the one that asked for them, or the last one where none wait
    (None where the conversation is empty). `answered` are the ids of calls that have an output. `exists` is False where
    the service no longer knows the conversation. `agent` is who the last step was answered by, where the service says.
    `arrived` is False where a message was asked about and is not there; `step` is then an earlier turn's.
    """

    exists: bool
    waiting: tuple[Call, ...] = ()
    answered: frozenset[str] = frozenset()
    step: Step | None = None
    agent: AgentRef | None = None
    arrived: bool = True


class Backend(Protocol):
    """One service at one endpoint. Errors raised: NotAuthorisedError, ServiceError, NegativeError (not found)."""

    name: str
    endpoint: str
    seconds_to_answer: int | None
    output_limit: OutputLimit

    def preview(self, agent: Agent, stamp: Stamp | None = None) -> dict[str, Json]:
        """Return the body that `create_agent` would send, and nothing else happens."""

    def create_agent(self, agent: Agent, stamp: Stamp) -> AgentRef:
        """Create the agent, or a further version of it; a lost reply is resolved by looking for the stamp."""

    def find_agent(self, name: str, version: str | None = None) -> RemoteAgent | None:
        """Return that version, the latest where None, or None where the service has no such agent."""

    def agents(self) -> Iterator[RemoteAgent]:
        """Yield the latest version of every agent, all pages."""

    def versions(self, name: str) -> Iterator[RemoteAgent]:
        """Yield every version of one agent, newest first, all pages; nothing where there is no such agent."""

    def delete_agent_version(self, ref: AgentRef) -> bool:
        """Delete one version; return False where it was already gone."""

    def delete_agent(self, name: str) -> bool:
        """Delete an agent with all its versions; return False where it was already gone."""

    def conversations(self) -> Iterator[RemoteConversation]:
        """Yield every conversation that the service lists, all pages."""

    def delete_conversation(self, conversation: str) -> bool:
        """Delete a conversation; return False where it was already gone."""

    def start(self, request: Start, listener: Listener) -> Step:
        """Send a message and return what the service answered."""

    def submit(self, request: Submit, listener: Listener) -> Step:
        """Send the outcomes of all calls of one step and return what the service answered.

        Never sends an output twice: after an ambiguous failure the conversation is read first.
        """

    def look(self, conversation: str, message: str | None = None, earlier_same: int = 0) -> Look:
        """Read the conversation's state from the service.

        `message` asks whether this message arrived, `earlier_same` being how often it had been sent before.
        """

    def transcript(self, conversation: str) -> list[Entry]:
        """Return the conversation's items, oldest first, all pages."""

    def close(self) -> None:
        """Let go of connections."""

    def probe(self) -> Mapping[str, Json]:
        """Ask the service for something cheap and return what it told of itself (for `doctor`)."""

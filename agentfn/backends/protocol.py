"""What the rest of agentfn asks of a service, whichever it is.

Two styles of service become one here. Where each model step is a request (Foundry, Responses), the waiting calls are
found in the response and all outputs of one response go back together. Where the server holds the turn open (OpenAI
sessions), outputs go one by one and the session says what still waits. Both look the same from above: `start` a turn,
get a `Step`; `submit` all outcomes of that step, get the next `Step`; `look` when in doubt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agentfn.backends.credentials import Credential
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

    def turn_opened(self, turn: str) -> None:
        """Take the service's own id of the turn, where it has one."""

    def call_asked(self, call: Call) -> None:
        """Take a call as it is asked for, before the step that asks for it has come to its end."""

    def text(self, delta: str) -> None:
        """Take a piece of the agent's answer as it streams."""

    def noticed(self, told: str) -> None:
        """Learn something about the service that was found out just now, in words for a person."""

    def retrying(self, reason: str, seconds: float) -> None:
        """Learn that a request will be sent again after so many seconds."""

    def waited(self) -> None:
        """Learn that nothing was heard for a while; raise PendingError to wait no longer."""


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

    `asked_by` is the id of the step that asked (`Step.id`). No outcomes at all means to wait for what the turn comes to,
    where the service holds it open. `maybe_sent` says that a process before us may have sent them
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
    `arrived` is False where a message was asked about and is not there; `step` is then an earlier turn's. `running` says
    that the service is still at it, and that a submission without outcomes waits for what comes.
    """

    exists: bool
    waiting: tuple[Call, ...] = ()
    answered: frozenset[str] = frozenset()
    step: Step | None = None
    agent: AgentRef | None = None
    arrived: bool = True
    running: bool = False


class Backend(Protocol):
    """One service at one endpoint. Errors raised: NotAuthorisedError, ServiceError, NegativeError (not found)."""

    name: str
    endpoint: str
    credential: Credential
    #: Whether the service has ids of its own for turns; they take the place of ours, and a step's id is its turn's.
    names_turns: bool
    #: Seconds from a step's creation within which its calls can be answered; None where the service has no limit.
    seconds_to_answer: int | None
    output_limit: OutputLimit
    #: Seconds after which something new is surely in the service's lists.
    list_lag: float

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

    def delete_agent(self, name: str, versions: Sequence[AgentRef]) -> bool:
        """Delete an agent of which these are all versions; return False where it was already gone."""

    def conversations(self) -> Iterator[RemoteConversation]:
        """Yield every conversation that the service lists, all pages."""

    def find_conversation(self, token: str) -> str | None:
        """Return the id of the conversation whose metadata carries this stamp; None where there is none to be found."""

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
        """Ask the service for something cheap; return which features of the protocol it has (for `doctor`)."""

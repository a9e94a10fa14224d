"""OpenAI's Agents API: saved agents, and sessions that hold the turn open (openai-agents.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentfn.backends.credentials import openai_credential
from agentfn.backends.http import Channel, Options, RefusedError, UnknownFateError, require_address
from agentfn.backends.protocol import Listener, Look, OutputLimit, Start, Submit
from agentfn.backends.service import Advice, Service, segment
from agentfn.backends.sessions import shapes
from agentfn.backends.sessions.reading import SESSIONS, Reading
from agentfn.backends.sessions.turn import SessionTurns
from agentfn.errors import NegativeError, ServiceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from agentfn.backends import BackendOptions
    from agentfn.definition.agent import Agent
    from agentfn.model import AgentRef, Entry, Json, RemoteAgent, RemoteConversation, Stamp, Step

AGENTS = "/agents"
#: Every route wants it, and looks at it before the key (openai-agents.md §1).
BETA = {"OpenAI-Beta": "agents=v1"}

ADVICE = Advice(
    sign_in="set OPENAI_API_KEY to a key of this service",
    permission="the key needs the scopes api.agents.read, api.agents.write and api.responses.write",
    endpoint="is this the Agents API's address, such as https://api.openai.com/v1? agentfn doctor",
)
#: How often a lost agent or session is looked for, and a session is asked whether it is idle.
_LOOKS = 3


def open_backend(endpoint: str, env: Mapping[str, str], options: BackendOptions) -> OpenAIBackend:
    """Return the client for one address of the API; raise UsageError where it is none."""
    credential = openai_credential(env, endpoint, loopback=require_address(endpoint))
    given = Options(sleep=options.sleep, clock=options.clock, log=options.log, headers=BETA)
    return OpenAIBackend(Channel(endpoint, credential, given), name="openai", endpoint=endpoint, clock=options.clock)


class OpenAIBackend:
    """The client; see `agentfn.backends.protocol.Backend` for what each method promises.

    A saved agent has no versions. Each definition becomes an agent of its own under the same name, whose id stands where
    other services have a version; sessions go on with the one they were begun with.
    """

    names_turns = True
    #: Nothing is documented about a waiting call's expiry (openai-agents.md §3, §10).
    seconds_to_answer: int | None = None
    #: A whole result must stay below 4 MiB, its own members counted (openai-agents.md §6).
    output_limit = OutputLimit(4_194_304 - 4096, "bytes")

    def __init__(
        self, channel: Channel, *, name: str, endpoint: str, clock: Callable[[], float], list_lag: float = 60.0
    ) -> None:
        self.name = name
        self.endpoint = endpoint
        self.credential = channel.credential
        #: New sessions and their metadata show late in lists; how late is a guess (openai-agents.md §1, §3).
        self.list_lag = list_lag
        self._channel = channel
        self._service = Service(channel, endpoint, ADVICE)
        self._turns = SessionTurns(self._service, clock)

    # Agents ----------------------------------------------------------------------------------------------------------

    def preview(self, agent: Agent, stamp: Stamp | None = None) -> dict[str, Json]:
        """Return the body that saves the agent."""
        return shapes.agent_body(agent, stamp)

    def create_agent(self, agent: Agent, stamp: Stamp) -> AgentRef:
        """Save the agent; where the reply is lost, look for the stamp before anything is sent again."""
        doing = f"creating agent {agent.name}"
        patience = self._channel.patience()
        body = shapes.agent_body(agent, stamp)
        while True:
            try:
                reply = self._service.send("POST", AGENTS, body=body, patience=patience)
                if isinstance(reply.body, dict) and reply.body.get("id"):
                    return shapes.remote_agent(reply.body).ref
                lost = UnknownFateError("the answer names no agent", reply)
            except RefusedError as exc:
                raise self._service.refusal(exc.reply, doing) from exc
            except UnknownFateError as exc:
                lost = exc
            for _ in range(_LOOKS):
                # Wait before looking: the service may still be at it, and its list lags behind (openai-agents.md §1).
                error = ServiceError(
                    f"{doing}: it is unknown whether it was carried out: {lost.told}",
                    code="unknown_fate",
                    hint="agentfn cleanup finds it by its stamp if it was",
                )
                patience.wait(lost.reason, lost.headers, error)
                found = next((a.ref for a in self.agents() if a.metadata.get("agentfn-id") == stamp.token), None)
                if found is not None:
                    return found

    def find_agent(self, name: str, version: str | None = None) -> RemoteAgent | None:
        """Return the agent of that id, else the newest of that name; the id may stand in place of the name."""
        identity = version or (name if name.startswith("agent_") else None)
        if identity is None:
            return next(self.versions(name), None)
        reply = self._service.get(f"{AGENTS}/{segment(identity)}", f"asking for agent {identity}")
        found = None if reply is None or not isinstance(reply.body, dict) else shapes.remote_agent(reply.body)
        return found if found is not None and name in (found.ref.name, identity) else None

    def agents(self) -> Iterator[RemoteAgent]:
        """Yield every saved agent, newest first."""
        for page in self._service.pages(AGENTS, "listing agents", order="desc"):
            yield from map(shapes.remote_agent, page.entries)

    def versions(self, name: str) -> Iterator[RemoteAgent]:
        """Yield the agents of one name, newest first."""
        return (agent for agent in self.agents() if agent.ref.name == name)

    def delete_agent_version(self, ref: AgentRef) -> bool:
        """Delete one saved agent; its sessions go on."""
        return self._service.delete(f"{AGENTS}/{segment(ref.version or '')}", f"agent {ref}")

    def delete_agent(self, name: str, versions: Sequence[AgentRef]) -> bool:
        """Delete the agents of that name that are given: there is no deletion by name."""
        del name
        gone = [self.delete_agent_version(ref) for ref in versions]
        return any(gone)

    # Conversations ---------------------------------------------------------------------------------------------------

    def conversations(self) -> Iterator[RemoteConversation]:
        """Yield every session."""
        for page in self._service.pages(SESSIONS, "listing sessions"):
            yield from map(shapes.remote_conversation, page.entries)

    def find_conversation(self, token: str) -> str | None:
        """Return the session that carries the stamp."""
        return Reading(self._service).stamped(token)

    def delete_conversation(self, conversation: str) -> bool:
        """Delete a session; one that still runs or waits is cancelled first (openai-agents.md §3)."""
        path, what = f"{SESSIONS}/{segment(conversation)}", f"session {conversation}"
        self._turns.forget(conversation)
        patience = self._channel.patience()
        while True:
            try:
                return self._service.delete(path, what)
            except NegativeError as exc:
                if exc.code != "conflict":
                    raise
                self._turns.cancel(conversation)
                # It becomes idle in a moment.
                patience.wait("the session is not idle yet", {}, exc)

    def transcript(self, conversation: str) -> list[Entry]:
        """Return a session's items, oldest first."""
        found = self._turns.items(conversation)
        if found is None:
            raise NegativeError(
                f"there is no session {conversation} at {self.endpoint}",
                code="conversation_not_found",
                hint="agentfn list shows the conversations there are",
            )
        return [shapes.entry(item) for item in found]

    # Turns -----------------------------------------------------------------------------------------------------------

    def start(self, request: Start, listener: Listener) -> Step:
        """Send a message; a new session is opened with it."""
        return self._turns.start(request, listener)

    def submit(self, request: Submit, listener: Listener) -> Step:
        """Send the outcomes one by one, and wait for what the agent makes of them."""
        return self._turns.submit(request, listener)

    def look(self, conversation: str, message: str | None = None, earlier_same: int = 0) -> Look:
        """Read how a session stands."""
        return self._turns.look(conversation, message, earlier_same)

    # Plumbing --------------------------------------------------------------------------------------------------------

    def probe(self) -> Mapping[str, Json]:
        """Ask for one agent, the cheapest question that needs the key and the beta."""
        reply = self._service.get(f"{AGENTS}?limit=1", "asking for agents")
        if reply is None or not isinstance(reply.body, dict) or "data" not in reply.body:
            raise ServiceError(
                f"{self.endpoint} does not answer as the Agents API does", code="bad_answer", hint=ADVICE.endpoint
            )
        return {"agents": "yes", "sessions": "yes", "turns": "held open by the service"}

    def close(self) -> None:
        """Close streams and connections."""
        self._turns.close()
        self._channel.close()

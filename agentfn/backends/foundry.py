"""Microsoft Foundry Agent Service: prompt agents, conversations, responses (foundry.md)."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agentfn.backends.credentials import foundry_credential
from agentfn.backends.foundry_agents import remote_agent, remote_conversation, version_body
from agentfn.backends.http import Channel, Options, RefusedError, UnknownFateError, require_address
from agentfn.backends.protocol import Listener, Look, OutputLimit, Start, Submit
from agentfn.backends.retry import MOST_RETRIES, Patience
from agentfn.backends.service import MOST_CONFLICTS, Advice, Service, is_passing_conflict, segment
from agentfn.backends.steps import items
from agentfn.backends.steps.turn import Plane, TurnClient
from agentfn.errors import AgentfnError, NegativeError, ServiceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agentfn.backends import BackendOptions
    from agentfn.definition.agent import Agent
    from agentfn.model import AgentRef, Entry, Json, RemoteAgent, RemoteConversation, Stamp, Step

AGENTS = "/agents"
CONVERSATIONS = "/openai/v1/conversations"
RESPONSES = "/openai/v1/responses"
_VERSION = "api-version=v1"

ADVICE = Advice(
    sign_in="az login, or a fresh AGENT_TOKEN for the audience https://ai.azure.com",
    permission='ask for the role "Foundry User" (or "Azure AI User") on the project',
    endpoint="is the endpoint that of a project? agentfn doctor",
)
#: foundry.md §1.1.
_PROJECT = re.compile(r"/api/projects/[^/]+/?")


def open_backend(endpoint: str, env: Mapping[str, str], options: BackendOptions) -> FoundryBackend:
    """Return the client for one project's endpoint; raise UsageError where it is not one."""
    loopback = require_address(endpoint)
    if not _PROJECT.fullmatch(urlsplit(endpoint).path):
        hint = "copy it from the project's overview: https://NAME.services.ai.azure.com/api/projects/PROJECT"
        raise UsageError(f"{endpoint} is not the endpoint of a project", hint=hint)
    credential = foundry_credential(env, loopback=loopback)
    channel = Channel(endpoint, credential, Options(sleep=options.sleep, clock=options.clock, log=options.log))
    return FoundryBackend(channel, name="foundry", endpoint=endpoint)


class _Project(Service):
    """A project's two planes: only that of agents has a version in its query, and ids of calls (foundry.md §1)."""

    def address(self, path: str) -> tuple[str, Mapping[str, str] | None]:
        if not path.startswith(AGENTS):
            return path, None
        # The SDK gives each call an id of its own (foundry.md §1.3); the version stands last in the query (§1.2).
        return f"{path}{'&' if '?' in path else '?'}{_VERSION}", {"x-ms-client-request-id": str(uuid.uuid4())}


def _reference(agent: AgentRef) -> dict[str, Json]:
    """Return how a request names the agent that answers (foundry.md §4.2)."""
    reference = {"type": "agent_reference", "name": agent.name}
    if agent.version is not None:
        reference["version"] = agent.version
    return {"agent_reference": reference}


class FoundryBackend:
    """The client; see `agentfn.backends.protocol.Backend` for what each method promises."""

    names_turns = False
    list_lag = 0.0
    #: Runs expire ten minutes after their creation, waiting included (foundry.md §8).
    seconds_to_answer: int | None = 600
    #: foundry.md §8: OpenAI's figure; Foundry documents none of its own.
    output_limit = OutputLimit(10_485_760, "characters")

    def __init__(self, channel: Channel, *, name: str, endpoint: str) -> None:
        self.name = name
        self.endpoint = endpoint
        self.credential = channel.credential
        self._channel = channel
        self._project = _Project(channel, endpoint, ADVICE)
        self._turns = TurnClient(self._project, Plane(RESPONSES, CONVERSATIONS, _reference, lists=True))

    # Agents ----------------------------------------------------------------------------------------------------------

    def preview(self, agent: Agent, stamp: Stamp | None = None) -> dict[str, Json]:
        """Return the body that creates a version."""
        return version_body(agent, stamp)

    def create_agent(self, agent: Agent, stamp: Stamp) -> AgentRef:
        """Create a version; where the reply is lost, look for the stamp before anything is sent again."""
        doing = f"creating agent {agent.name}"
        patience = self._channel.patience()
        body = version_body(agent, stamp)
        while True:
            try:
                return self._created(agent.name, body, patience)
            except UnknownFateError as exc:
                reason, headers, most = exc.reason, exc.headers, MOST_RETRIES
                error: AgentfnError = _lost(doing, exc)
            except RefusedError as exc:
                refused = self._project.refusal(exc.reply, doing)
                if not is_passing_conflict(exc.reply):
                    # A new project says "not found" and may have kept the version all the same (foundry.md §2.6).
                    found = self._stamped(agent.name, stamp) if exc.reply.status == 404 else None  # noqa: PLR2004
                    if found is None:
                        raise refused from exc
                    return found
                reason, headers, error, most = "another writer was faster", {}, refused, MOST_CONFLICTS
            # Wait before looking: the service may still be at it.
            patience.wait(reason, headers, error, most=most)
            found = self._stamped(agent.name, stamp)
            if found is not None:
                return found

    def _created(self, name: str, body: dict[str, Json], patience: Patience) -> AgentRef:
        reply = self._project.send("POST", f"{AGENTS}/{segment(name)}/versions", body=body, patience=patience)
        ref = remote_agent(reply.body).ref
        if not ref.name or not ref.version:
            raise UnknownFateError("the answer names no version")
        return ref

    def _stamped(self, name: str, stamp: Stamp) -> AgentRef | None:
        return next((v.ref for v in self.versions(name) if v.metadata.get("agentfn-id") == stamp.token), None)

    def find_agent(self, name: str, version: str | None = None) -> RemoteAgent | None:
        """Return a version, the latest where None."""
        path = f"{AGENTS}/{segment(name)}" + (f"/versions/{segment(version)}" if version else "")
        reply = self._project.get(path, f"asking for agent {name}")
        return None if reply is None else remote_agent(reply.body)

    def agents(self) -> Iterator[RemoteAgent]:
        """Yield the latest version of every agent."""
        for page in self._project.pages(AGENTS, "listing agents"):
            yield from map(remote_agent, page.entries)

    def versions(self, name: str) -> Iterator[RemoteAgent]:
        """Yield every version of an agent; nothing where there is no such agent."""
        for page in self._project.pages(f"{AGENTS}/{segment(name)}/versions", f"listing versions of {name}"):
            yield from map(remote_agent, page.entries)

    def delete_agent_version(self, ref: AgentRef) -> bool:
        """Delete one version."""
        path = f"{AGENTS}/{segment(ref.name)}/versions/{segment(ref.version or '')}"
        return self._project.delete(path, f"agent {ref}")

    def delete_agent(self, name: str, versions: Sequence[AgentRef]) -> bool:
        """Delete an agent with all its versions, in one request."""
        del versions
        return self._project.delete(f"{AGENTS}/{segment(name)}", f"agent {name}")

    # Conversations ---------------------------------------------------------------------------------------------------

    def conversations(self) -> Iterator[RemoteConversation]:
        """Yield every conversation (a list that only Foundry has, foundry.md §3)."""
        for page in self._project.pages(CONVERSATIONS, "listing conversations"):
            yield from map(remote_conversation, page.entries)

    def find_conversation(self, token: str) -> str | None:
        """Return the conversation that carries the stamp."""
        return next((c.id for c in self.conversations() if c.metadata.get("agentfn-id") == token), None)

    def delete_conversation(self, conversation: str) -> bool:
        """Delete a conversation."""
        return self._project.delete(f"{CONVERSATIONS}/{segment(conversation)}", f"conversation {conversation}")

    def transcript(self, conversation: str) -> list[Entry]:
        """Return a conversation's items, oldest first."""
        path = f"{CONVERSATIONS}/{segment(conversation)}/items"
        pages = list(self._project.pages(path, f"reading conversation {conversation}", order="asc"))
        if not pages:
            raise NegativeError(
                f"there is no conversation {conversation} at {self.endpoint}",
                code="conversation_not_found",
                hint="agentfn list shows the conversations there are",
            )
        return [items.entry(item) for page in pages for item in page.entries]

    # Turns -----------------------------------------------------------------------------------------------------------

    def start(self, request: Start, listener: Listener) -> Step:
        """Send a message; a new conversation is opened first."""
        return self._turns.start(request, listener)

    def submit(self, request: Submit, listener: Listener) -> Step:
        """Send the outcomes of all calls of a step in one request."""
        return self._turns.submit(request, listener)

    def look(self, conversation: str, message: str | None = None, earlier_same: int = 0) -> Look:
        """Read where a conversation stands, and whether a message is in it."""
        return self._turns.look(conversation, message, earlier_same)

    # Plumbing --------------------------------------------------------------------------------------------------------

    def probe(self) -> Mapping[str, Json]:
        """Ask for one agent, the cheapest question that needs the token and the project."""
        reply = self._project.get(f"{AGENTS}?limit=1", "asking for agents")
        if reply is None or not isinstance(reply.body, dict) or "data" not in reply.body:
            message = f"{self.endpoint} does not answer as a project does"
            raise ServiceError(message, code="bad_answer", hint="check the endpoint; it ends in /api/projects/NAME")
        return {"agents": "yes", "conversations": "yes"}

    def close(self) -> None:
        """Close the connections."""
        self._channel.close()


def _lost(doing: str, exc: UnknownFateError) -> ServiceError:
    return ServiceError(
        f"{doing}: it is unknown whether it was carried out: {exc.told}",
        code="unknown_fate",
        hint="agentfn cleanup finds it by its stamp if it was",
    )

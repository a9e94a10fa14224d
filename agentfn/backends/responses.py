"""Any server with the Responses API: OpenAI, Azure OpenAI, vLLM, llama.cpp, Ollama, LiteLLM, … (openai-agents.md §7).

Such a server keeps no agents, so agentfn does, and sends the agent with each request. Some keep conversations; where one
does not, a chain of responses stands for it (`steps.chain`). What a server can do is found out once and remembered.
"""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agentfn.backends.credentials import is_azure, openai_credential
from agentfn.backends.http import Channel, Options, RefusedError, require_address
from agentfn.backends.kept import Kept
from agentfn.backends.protocol import Listener, Look, OutputLimit, Start, Submit
from agentfn.backends.service import Advice, Service, segment
from agentfn.backends.steps import items
from agentfn.backends.steps.chain import ChainClient, is_chain
from agentfn.backends.steps.dialect import Dialect, has_route
from agentfn.backends.steps.members import agent_members
from agentfn.backends.steps.turn import Plane, TurnClient
from agentfn.errors import NegativeError
from agentfn.model import AgentRef, RemoteAgent, RemoteConversation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from agentfn.backends import BackendOptions
    from agentfn.definition.agent import Agent
    from agentfn.model import Entry, Json, Stamp, Step

RESPONSES, CONVERSATIONS = "/responses", "/conversations"

ADVICE = Advice(
    sign_in="set OPENAI_API_KEY (AZURE_OPENAI_API_KEY on Azure) to a key of this server",
    permission="the key may not do this here; ask whoever manages it",
    endpoint="is this the server's address with its /v1, such as http://127.0.0.1:8000/v1? agentfn doctor",
)


def open_backend(endpoint: str, env: Mapping[str, str], options: BackendOptions) -> ResponsesBackend:
    """Return the client for one server; raise UsageError where the endpoint is no address."""
    loopback = require_address(endpoint)
    if is_azure(endpoint) and urlsplit(endpoint).path in ("", "/"):
        # AZURE_OPENAI_ENDPOINT is given without the path.
        endpoint = f"{endpoint.rstrip('/')}/openai/v1"
    credential = openai_credential(env, endpoint, loopback=loopback)
    given = Options(sleep=options.sleep, clock=options.clock, log=options.log)
    return make(Channel(endpoint, credential, given), "responses", endpoint, options)


def make(channel: Channel, name: str, endpoint: str, options: BackendOptions) -> ResponsesBackend:
    """Return the client over a channel; its agents are kept in the state folder."""
    return ResponsesBackend(channel, Kept(options.home, endpoint), name=name, endpoint=endpoint, clock=options.clock)


class ResponsesBackend:
    """The client; see `agentfn.backends.protocol.Backend` for what each method promises."""

    names_turns = False
    list_lag = 0.0
    #: Plain servers know no expiry.
    seconds_to_answer: int | None = None
    #: OpenAI's figure for a text (foundry.md §8).
    output_limit = OutputLimit(10_485_760, "characters")

    def __init__(
        self,
        channel: Channel,
        kept: Kept,
        *,
        name: str,
        endpoint: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = name
        self.endpoint = endpoint
        self.credential = channel.credential
        self._channel = channel
        self._kept = kept
        self._clock = clock
        self._service = Service(channel, endpoint, ADVICE)
        self._dialect = Dialect(kept)
        self._turns = TurnClient(self._service, Plane(RESPONSES, CONVERSATIONS, self._agent_members, lists=False))
        self._chains = ChainClient(self._service, RESPONSES, self._agent_members, self._dialect, kept, clock)

    # Agents, kept here -----------------------------------------------------------------------------------------------

    def preview(self, agent: Agent, stamp: Stamp | None = None) -> dict[str, Json]:
        """Return what of the agent goes with each request."""
        return agent_members(agent, stamp)

    def create_agent(self, agent: Agent, stamp: Stamp) -> AgentRef:
        """Keep a version of the agent; numbers are not used again."""
        with self._kept.writing() as shelf:
            number = int(shelf.get("number", agent.name) or 0) + 1
            kept = {
                "name": agent.name,
                "version": str(number),
                "guid": uuid.uuid4().hex,
                "created_at": self._clock(),
                "metadata": agent.metadata | stamp.metadata(),
                "definition": agent_members(agent),
            }
            shelf.put("number", agent.name, number)
            shelf.put("agent", f"{agent.name}:{number}", kept)
        return _remote(kept).ref

    def find_agent(self, name: str, version: str | None = None) -> RemoteAgent | None:
        """Return a version, the latest where None."""
        return next((agent for agent in self.versions(name) if version in (None, agent.ref.version)), None)

    def agents(self) -> Iterator[RemoteAgent]:
        """Yield the latest version of every agent."""
        latest = {kept["name"]: kept for kept in self._kept.all("agent")}
        return map(_remote, latest.values())

    def versions(self, name: str) -> Iterator[RemoteAgent]:
        """Yield every version of an agent, newest first."""
        return (_remote(kept) for kept in reversed(self._kept.all("agent")) if kept["name"] == name)

    def delete_agent_version(self, ref: AgentRef) -> bool:
        """Forget one version."""
        return self._kept.remove("agent", str(ref))

    def delete_agent(self, name: str, versions: Sequence[AgentRef]) -> bool:
        """Forget these versions, which are all."""
        del name
        gone = [self.delete_agent_version(ref) for ref in versions]
        return any(gone)

    def _agent_members(self, ref: AgentRef) -> dict[str, Json]:
        """Return the members of a request that say who answers."""
        found = self.find_agent(ref.name, ref.version)
        if found is None:
            raise NegativeError(
                f"there is no agent {ref}: its definition is kept in agentfn's own state, and is not there",
                code="agent_not_found",
                hint="agentfn create FILE keeps it again",
            )
        return found.definition

    # Conversations ---------------------------------------------------------------------------------------------------

    def conversations(self) -> Iterator[RemoteConversation]:
        """Yield the chains kept here; a server's own conversations cannot be listed."""
        return self._chains.all()

    def find_conversation(self, token: str) -> str | None:
        """Return the chain that carries the stamp; a server's own conversation without a message is lost for good."""
        return next((c.id for c in self.conversations() if c.metadata.get("agentfn-id") == token), None)

    def delete_conversation(self, conversation: str) -> bool:
        """Delete a conversation, or a chain with the responses that the server stored of it."""
        if is_chain(conversation):
            return self._chains.delete(conversation)
        return self._service.delete(f"{CONVERSATIONS}/{segment(conversation)}", f"conversation {conversation}")

    def transcript(self, conversation: str) -> list[Entry]:
        """Return a conversation's items, oldest first."""
        if is_chain(conversation):
            found = self._chains.items(conversation)
        else:
            path = f"{CONVERSATIONS}/{segment(conversation)}/items"
            pages = list(self._service.pages(path, f"reading conversation {conversation}", order="asc"))
            found = [item for page in pages for item in page.entries] if pages else None
        if found is None:
            raise NegativeError(
                f"there is no conversation {conversation} at {self.endpoint}",
                code="conversation_not_found",
                hint="agentfn list shows the conversations there are",
            )
        return [items.entry(item) for item in found]

    # Turns -----------------------------------------------------------------------------------------------------------

    def start(self, request: Start, listener: Listener) -> Step:
        """Send a message, in a conversation where the server has them, else along a chain."""
        where = request.conversation
        if where is None and self._dialect.conversations is not False:
            try:
                where = self._turns.open(request.stamp, listener)
            except RefusedError as refused:
                if has_route(refused.reply):
                    raise self._service.refusal(refused.reply, "opening a conversation") from refused
                self._dialect.learn("conversations", known=False, listener=listener)
            else:
                self._dialect.learn("conversations", known=True, listener=listener)
                listener.conversation_opened(where)
        if where is None or is_chain(where):
            return self._chains.start(request, listener)
        return self._turns.start(request._replace(conversation=where), listener)

    def submit(self, request: Submit, listener: Listener) -> Step:
        """Send the outcomes of all calls of a step in one request."""
        client = self._chains if is_chain(request.conversation) else self._turns
        return client.submit(request, listener)

    def look(self, conversation: str, message: str | None = None, earlier_same: int = 0) -> Look:
        """Read where a conversation stands."""
        client = self._chains if is_chain(conversation) else self._turns
        return client.look(conversation, message, earlier_same)

    # Plumbing --------------------------------------------------------------------------------------------------------

    def probe(self) -> Mapping[str, Json]:
        """Ask which routes there are; nothing is made, and nothing is computed."""
        found: dict[str, Any] = {}
        for what, path in (("responses", RESPONSES), ("conversations", CONVERSATIONS)):
            try:
                self._service.send("GET", f"{path}/{what[:4]}_agentfn")
            except RefusedError as exc:
                if exc.reply.status in (401, 403):  # HTTP's own numbers
                    raise self._service.refusal(exc.reply, "asking for a response") from exc
                found[what] = "yes" if has_route(exc.reply) else "no"
            else:
                found[what] = "yes"
        told = {True: "yes", False: "no, the history is sent", None: "not tried yet"}
        return found | {"previous_response_id": told[self._dialect.previous]}

    def close(self) -> None:
        """Close the connections."""
        self._channel.close()


def _remote(kept: dict[str, Any]) -> RemoteAgent:
    ref = AgentRef(kept["name"], kept["version"], kept["guid"])
    return RemoteAgent(ref, kept["created_at"], kept["metadata"], kept["definition"])

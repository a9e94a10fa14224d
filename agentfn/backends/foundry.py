"""Microsoft Foundry Agent Service: prompt agents, conversations, responses (foundry.md)."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from agentfn.backends import foundry_items as items
from agentfn.backends.credentials import foundry_credential
from agentfn.backends.foundry_errors import translated
from agentfn.backends.foundry_turn import TurnClient
from agentfn.backends.http import Channel, Options, RefusedError, Reply, UnknownFateError, is_loopback
from agentfn.backends.protocol import Listener, Look, OutputLimit, Start, Submit
from agentfn.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agentfn.backends import BackendOptions
    from agentfn.definition.agent import Agent
    from agentfn.model import AgentRef, Entry, Json, RemoteAgent, RemoteConversation, Stamp, Step

#: foundry.md §1.2.
API_VERSION = "api-version=v1"
PAGE = 100
#: How often a conflict on creating a version is tried again: another writer was faster (foundry.md §2.6).
CONFLICT_TRIES = 3


def open_backend(endpoint: str, env: Mapping[str, str], options: BackendOptions) -> FoundryBackend:
    """Return the client for one project's endpoint."""
    credential = foundry_credential(env, loopback=is_loopback(urlsplit(endpoint).hostname))
    channel = Channel(endpoint, credential, Options(sleep=options.sleep, clock=options.clock, log=options.log))
    return FoundryBackend(channel, name="foundry", endpoint=endpoint)


class FoundryBackend:
    """The client; see `agentfn.backends.protocol.Backend` for what each method promises."""

    #: Runs expire ten minutes after their creation, waiting included (foundry.md §8).
    seconds_to_answer: int | None = 600
    #: foundry.md §8: OpenAI's figure; Foundry documents none of its own.
    output_limit = OutputLimit(10_485_760, "characters")

    def __init__(self, channel: Channel, *, name: str, endpoint: str) -> None:
        self.name = name
        self.endpoint = endpoint
        self._channel = channel
        self._turns = TurnClient(channel, endpoint)

    # Agents ----------------------------------------------------------------------------------------------------------

    def preview(self, agent: Agent, stamp: Stamp | None = None) -> dict[str, Json]:
        """Return the body that creates a version."""
        return items.version_body(agent, stamp)

    def create_agent(self, agent: Agent, stamp: Stamp) -> AgentRef:
        """Create a version; where the reply is lost, look for the stamp before anything is sent again."""
        patience = self._channel.patience(_quiet)
        body = items.version_body(agent, stamp)
        conflicts = 0
        while True:
            try:
                reply = self._agents("POST", f"{_segment(agent.name)}/versions", body=body, patience=patience)
            except UnknownFateError as exc:
                found = self._stamped_version(agent.name, stamp)
                if found is not None:
                    return found
                patience.wait(exc.reason, exc.headers, _lost("the agent", exc))
            except RefusedError as exc:
                conflicts += 1
                if exc.reply.status != 409 or conflicts > CONFLICT_TRIES:  # noqa: PLR2004  # HTTP's own number
                    raise translated(exc.reply, self.endpoint, f"creating agent {agent.name}") from exc
                patience.wait("another writer was faster", {}, exc)
            else:
                return items.remote_agent(reply.body).ref

    def _stamped_version(self, name: str, stamp: Stamp) -> AgentRef | None:
        versions = self.versions(name)
        return next((v.ref for v in versions if v.metadata.get("agentfn-id") == stamp.token), None)

    def find_agent(self, name: str, version: str | None = None) -> RemoteAgent | None:
        """Return a version, the latest where None."""
        path = f"{_segment(name)}/versions/{_segment(version)}" if version else _segment(name)
        try:
            body = self._agents("GET", path).body
        except RefusedError as exc:
            if exc.reply.status == 404:  # noqa: PLR2004  # HTTP's own number
                return None
            raise translated(exc.reply, self.endpoint, f"asking for agent {name}") from exc
        return items.remote_agent(body)

    def agents(self) -> Iterator[RemoteAgent]:
        """Yield the latest version of every agent."""
        return (items.remote_agent(entry) for entry in self._pages("/agents", API_VERSION))

    def versions(self, name: str) -> Iterator[RemoteAgent]:
        """Yield every version of an agent; nothing where there is no such agent."""
        try:
            for entry in self._pages(f"/agents/{_segment(name)}/versions", API_VERSION, raw=True):
                yield items.remote_agent(entry)
        except RefusedError as exc:
            if exc.reply.status != 404:  # noqa: PLR2004  # HTTP's own number
                raise translated(exc.reply, self.endpoint, f"listing versions of {name}") from exc

    def delete_agent_version(self, ref: AgentRef) -> bool:
        """Delete one version."""
        return self._delete(
            f"/agents/{_segment(ref.name)}/versions/{_segment(ref.version or '')}?{API_VERSION}",
            str(ref),
        )

    def delete_agent(self, name: str) -> bool:
        """Delete an agent with all its versions."""
        return self._delete(f"/agents/{_segment(name)}?{API_VERSION}", name)

    # Conversations ---------------------------------------------------------------------------------------------------

    def conversations(self) -> Iterator[RemoteConversation]:
        """Yield every conversation (a list that only Foundry has, foundry.md §3)."""
        return (items.remote_conversation(entry) for entry in self._pages("/openai/v1/conversations", ""))

    def delete_conversation(self, conversation: str) -> bool:
        """Delete a conversation."""
        return self._delete(f"/openai/v1/conversations/{_segment(conversation)}", conversation)

    def transcript(self, conversation: str) -> list[Entry]:
        """Return a conversation's items, oldest first."""
        entries = self._pages(f"/openai/v1/conversations/{_segment(conversation)}/items", "order=asc")
        return [items.entry(item) for item in entries]

    # Turns -----------------------------------------------------------------------------------------------------------

    def start(self, request: Start, listener: Listener) -> Step:
        """Send a message; a new conversation is opened first."""
        return self._turns.start(request, listener)

    def submit(self, request: Submit, listener: Listener) -> Step:
        """Send the outcomes of all calls of a step in one request."""
        return self._turns.submit(request, listener)

    def look(self, conversation: str) -> Look:
        """Read where a conversation stands."""
        return self._turns.look(conversation)

    # Plumbing --------------------------------------------------------------------------------------------------------

    def probe(self) -> Mapping[str, Json]:
        """Ask for one agent, the cheapest question that needs the token and the project."""
        try:
            reply = self._channel.send(
                "GET",
                f"/agents?limit=1&{API_VERSION}",
                patience=self._channel.patience(_quiet),
                safe=True,
            )
        except RefusedError as exc:
            raise translated(exc.reply, self.endpoint, "asking for agents") from exc
        return {"agents": isinstance(reply.body, dict) and "data" in reply.body}

    def close(self) -> None:
        """Close the connections."""
        self._channel.close()

    def _agents(self, method: str, path: str, **rest: Any) -> Reply:
        # The SDK gives each call on this plane an id of its own (foundry.md §1.3).
        headers = {"x-ms-client-request-id": str(uuid.uuid4())}
        rest.setdefault("patience", self._channel.patience(_quiet))
        return self._channel.send(
            method,
            f"/agents/{path}?{API_VERSION}",
            headers=headers,
            safe=method == "GET",
            **rest,
        )

    def _delete(self, path: str, what: str) -> bool:
        patience = self._channel.patience(_quiet)
        try:
            self._channel.send("DELETE", path, patience=patience, safe=True)
        except RefusedError as exc:
            if exc.reply.status == 404:  # noqa: PLR2004  # HTTP's own number; gone is what was wanted
                return False
            raise translated(exc.reply, self.endpoint, f"deleting {what}") from exc
        return True

    def _pages(self, path: str, query: str, *, raw: bool = False) -> Iterator[dict[str, Any]]:
        """Yield the entries of all pages. A page marker that comes twice would never end, so it is an error.

        Each page is asked for after the last entry seen, so entries that vanish meanwhile shift nothing.
        """
        after: str | None = None
        seen: set[str] = set()
        while True:
            parts = [query] if query else []
            parts = [f"limit={PAGE}", *([f"after={_segment(after)}"] if after else []), *parts]
            try:
                patience = self._channel.patience(_quiet)
                body = self._channel.send("GET", f"{path}?{'&'.join(parts)}", patience=patience, safe=True).body
            except RefusedError as exc:
                if raw:
                    raise
                raise translated(exc.reply, self.endpoint, "reading a list") from exc
            if not isinstance(body, dict) or not isinstance(body.get("data"), list):
                message = f"{self.endpoint}{path} answered with no list"
                raise ServiceError(message, code="bad_answer", hint="is the endpoint that of a project?")
            yield from (entry for entry in body["data"] if isinstance(entry, dict))
            after = body.get("last_id")
            if not body.get("has_more") or not after:
                return
            if after in seen:
                raise ServiceError(f"server repeated the page marker {after} of {path}", code="bad_answer")
            seen.add(after)


def _segment(text: str) -> str:
    return quote(text, safe="")


def _quiet(reason: str, seconds: float) -> None:
    """Hear of a retry and say nothing: only a turn has somebody who listens."""


def _lost(what: str, exc: UnknownFateError) -> ServiceError:
    return ServiceError(
        f"it is unknown whether {what} was created: {exc.reason}",
        code="unknown_fate",
        hint="agentfn cleanup finds it by its stamp if it was",
    )

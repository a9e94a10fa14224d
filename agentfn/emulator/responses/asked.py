"""A request for a response, checked and put beside its history."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from agentfn.emulator.http import ApiError, openai_error
from agentfn.emulator.models.prompt import prompt_of
from agentfn.emulator.responses.checks import agent_of, check_outputs, require_model
from agentfn.emulator.responses.ids import partition, partition_of
from agentfn.emulator.responses.items import normalise
from agentfn.emulator.responses.strict import require_schemas
from agentfn.emulator.responses.turn import RUNNING

if TYPE_CHECKING:
    from agentfn.emulator.foundry.agents import Agents, Version
    from agentfn.emulator.models.step import Prompt
    from agentfn.emulator.models.thread import State
    from agentfn.emulator.responses.conversations import Conversations
    from agentfn.emulator.responses.items import Item
    from agentfn.emulator.store import Store


class Asked(NamedTuple):
    """A checked request.

    `history` are the items before `given`, the request's own. `thread` is the key under which the scenario's position
    is kept, `state` the position itself. `plain` is the face without agents, which is not Foundry's.
    """

    body: dict[str, Any]
    agent: Version | None
    conversation: str | None
    previous: str | None
    partition: str
    history: list[Item]
    given: list[Item]
    thread: str
    state: State
    plain: bool = False

    @property
    def stored(self) -> bool:
        """Tell whether the response is kept."""
        return self.body.get("store") is not False

    @property
    def background(self) -> bool:
        """Tell whether the client does not wait for the answer."""
        return bool(self.body.get("background"))

    @property
    def streamed(self) -> bool:
        """Tell whether the answer is a stream of events; the body decides, never the Accept header."""
        return bool(self.body.get("stream"))

    @property
    def source(self) -> dict[str, Any]:
        """Return where model, tools and settings are: the agent's definition, or the request itself."""
        return self.agent.definition if self.agent else self.body

    @property
    def tools(self) -> list[dict[str, Any]]:
        """Return the tools that the model has."""
        tools: list[dict[str, Any]] = self.source.get("tools") or []
        return tools

    def prompt(self, number: int) -> Prompt:
        """Return what the model sees: the latest message of the user, and the outputs since."""
        return prompt_of([*self.history, *self.given], self.tools, self.source.get("tool_choice"), number)


class Asking:
    """Turns a request's body into an `Asked`."""

    def __init__(self, store: Store, agents: Agents | None, conversations: Conversations, *, loose: bool) -> None:
        self._store = store
        self._agents = agents
        self._conversations = conversations
        self._loose = loose

    def read(self, body: dict[str, Any], conversation: str | None) -> Asked:
        """Check a body whose types are right and whose conversation is held."""
        agent = None
        if self._agents is None:
            require_model(body)
        elif named := agent_of(body, loose=self._loose):
            agent = self._agents.require(*named)
        previous = body.get("previous_response_id")
        history: list[Item] = []
        state: State = {}
        if conversation is not None:
            history, key = self._conversations.items(conversation), partition_of(conversation)
        elif previous is not None:
            history, state = self._chain(previous)
            key = partition_of(previous)
        else:
            key = partition()
        given = normalise(body.get("input"), key)
        if not given and conversation is None and previous is None:
            raise ApiError(400, openai_error("Missing required parameter: 'input'.", param="input"))
        given = check_outputs(self._store, history, given)
        thread = conversation or (
            f"after:{previous}" if previous else self._first_thread(agent, body.get("input"), given)
        )
        kept = self._store.thread(thread)
        plain = self._agents is None
        asked = Asked(body, agent, conversation, previous, key, history, given, thread, kept or state, plain)
        require_schemas(asked.tools)
        if asked.background and not asked.stored:
            message = "background needs store to be true."
            raise ApiError(400, openai_error(message, param="background", code="unsupported_parameter"))
        return asked

    def _first_thread(self, agent: Version | None, sent: Any, given: list[Item]) -> str:
        """Return the key of a thread that nothing else names.

        A client that carries the items itself is known by the latest item that it got from here; a first request by what
        it says, so that sending it again after a fault goes on behind the fault.
        """
        for item in reversed(sent if isinstance(sent, list) else []):
            for name in ("id", "call_id"):
                key = f"item:{item.get(name)}"
                if isinstance(item.get(name), str) and self._store.thread(key):
                    return key
        texts = [{key: value for key, value in item.items() if key != "id"} for item in given]
        digest = hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()[:32]
        return f"new:{agent.id if agent else ''}:{digest}"

    def _chain(self, previous: str) -> tuple[list[Item], State]:
        """Return the items that lead up to a response and are its own, oldest first, and its scenario's position.

        A deleted response is no starting point, but the ones after it still stand on its items.
        """
        groups: list[list[Item]] = []
        state: State = {}
        identity: str | None = previous
        while identity is not None:
            row = self._store.one("SELECT previous, input, body, thread, status FROM response WHERE id = ?", identity)
            if row is None or (not groups and row[4] == "deleted"):
                message = f"Previous response with id '{identity}' not found."
                error = openai_error(message, param="previous_response_id", code="previous_response_not_found")
                raise ApiError(400, error)
            if not groups:
                if row[4] in RUNNING:
                    message = f"Previous response '{identity}' is still {row[4]}."
                    raise ApiError(400, openai_error(message, param="previous_response_id"))
                state = json.loads(row[3])
            groups.append([*json.loads(row[1]), *json.loads(row[2])["output"]])
            identity = row[0]
        return [item for group in reversed(groups) for item in group], state

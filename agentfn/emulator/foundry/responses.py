"""Foundry's responses: created, streamed, kept, listed, cancelled (foundry.md §4)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agentfn.emulator.foundry.errors import foundry_error, payload
from agentfn.emulator.foundry.ids import partition, partition_of
from agentfn.emulator.foundry.items import Item, load, normalise
from agentfn.emulator.foundry.paging import page
from agentfn.emulator.foundry.stream import EventStream, events_of
from agentfn.emulator.foundry.strict import require_strict
from agentfn.emulator.foundry.turn import Asked, ModelStep, first_thread, not_allowed, require_answered
from agentfn.emulator.http import Answer, ApiError, ConnectionCut, Request, openai_error
from agentfn.locks import FileLock

if TYPE_CHECKING:
    from agentfn.emulator.app import Application
    from agentfn.emulator.foundry.agents import Agents, Route, Version
    from agentfn.emulator.foundry.conversations import Conversations

_NOT_WITH_AGENT = (
    "model",
    "instructions",
    "tools",
    "tool_choice",
    "temperature",
    "top_p",
    "text",
    "reasoning",
)
#: How long a second request waits for the first one on a conversation, in seconds; then it is told to come back.
LOCK_SECONDS = 0.2


class Responses:
    """The routes under ``/responses``."""

    def __init__(self, app: Application, agents: Agents, conversations: Conversations) -> None:
        self._app = app
        self._store = app.store
        self._agents = agents
        self._conversations = conversations

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            ("POST", "responses", self.create),
            ("GET", "responses", self.list),
            ("GET", "responses/{}", self.get),
            ("DELETE", "responses/{}", self.delete),
            ("POST", "responses/{}/cancel", self.cancel),
            ("GET", "responses/{}/input_items", self.input_items),
        ]

    def create(self, request: Request) -> Answer:
        """Run one model step."""
        body = request.json()
        lock = self._lock(_conversation_of(body))
        try:
            asked = self._asked(body)
            if body.get("background"):
                return self._queue(asked)
            step = ModelStep(self._app, asked)
            headers = (("x-agentfn-model", "scenario" if self._app.scenario else "stand-in"),)
            if step.reply.delay and not body.get("stream"):
                self._app.sleep(step.reply.delay)
            step.faults()
            if body.get("stream"):
                held, lock = lock, None
                return Answer(stream=self._stream(step, held), headers=headers)
            answer = step.commit()
            if step.reply.cut == "after":
                raise ConnectionCut
            return Answer(answer, headers=headers, cut=step.reply.cut == "mid")
        finally:
            if lock is not None:
                lock.release()

    def _stream(self, step: ModelStep, lock: FileLock | None) -> EventStream:
        def work() -> list[dict[str, Any]]:
            if step.reply.delay:
                self._app.sleep(step.reply.delay)
            return events_of(step.commit())

        return EventStream(work, cut=step.reply.cut, done=lock.release if lock else lambda: None)

    def _queue(self, asked: Asked) -> Answer:
        """Keep a background response; whoever looks at it first runs its step, so that no thread has to live."""
        if not asked.stored:
            error = openai_error("background needs store to be true", param="background", code="unsupported_parameter")
            raise ApiError(400, error)
        step = ModelStep(self._app, asked)
        step.faults()
        answer = step.commit()
        if asked.body.get("stream"):
            return Answer(stream=EventStream(lambda: events_of(answer), cut=step.reply.cut))
        # The step is done, but the client is told what a real service would: that it is queued.
        queued = {**answer, "status": "queued", "output": [], "completed_at": None}
        queued.pop("usage", None)
        with self._store.writing() as db:
            db.execute("UPDATE response SET status = 'queued' WHERE id = ?", (answer["id"],))
        return Answer(queued)

    def _lock(self, conversation: str | None) -> FileLock | None:
        """Hold the conversation; two runs at once are told so (foundry.md §5.2)."""
        if conversation is None:
            return None
        self._conversations.require(conversation)
        lock = FileLock(self._store.path.with_name(self._store.path.name + ".locks") / conversation)
        if lock.acquire(LOCK_SECONDS):
            return lock
        message = "Another process is currently operating on this conversation. Please retry in a few seconds."
        raise ApiError(400, openai_error(message, param="conversation", code="conversation_locked"))

    def _asked(self, body: dict[str, Any]) -> Asked:
        agent = self._agent(body)
        conversation, previous = _conversation_of(body), body.get("previous_response_id")
        if conversation is not None and previous is not None:
            # The service's own words are not recorded (foundry.md §4.3).
            message = "conversation and previous_response_id exclude each other; send one of them."
            raise ApiError(400, openai_error(message, param="previous_response_id"))
        history: list[Item] = []
        parent: dict[str, Any] = {}
        if conversation is not None:
            history = self._conversations.items(conversation)
            key = partition_of(conversation)
        elif previous is not None:
            history, parent = self._chain(str(previous))
            key = partition_of(str(previous))
        else:
            key = partition()
        given = normalise(body.get("input"), key)
        require_answered(self._store, history, given)
        asked = Asked(
            body=body,
            agent=agent,
            conversation=conversation,
            previous=previous,
            partition=key,
            history=history,
            given=given,
            thread=conversation
            or (f"after:{previous}" if previous else first_thread(agent.id if agent else "", given)),
            parent=parent,
        )
        require_strict(asked.tools)
        return asked

    def _agent(self, body: dict[str, Any]) -> Version | None:
        if "agent" in body and not (self._app.loose and "agent_reference" not in body):
            message = "The 'agent' property is deprecated. Use 'agent_reference' instead."
            raise payload(message, param="agent")
        reference = body.get("agent_reference", body.get("agent"))
        if reference is None:
            if not body.get("model"):
                raise ApiError(400, openai_error("Missing required parameter: 'model'.", param="model"))
            return None
        if not isinstance(reference, dict) or reference.get("type") != "agent_reference":
            raise payload("agent_reference.type must be 'agent_reference'", param="agent_reference.type")
        extra = [field for field in _NOT_WITH_AGENT if body.get(field) is not None]
        if extra:
            raise not_allowed(extra)
        version = reference.get("version")
        return self._agents.require(str(reference.get("name")), None if version is None else str(version))

    def _chain(self, previous: str) -> tuple[list[Item], dict[str, Any]]:
        """Return the items that lead to a response, oldest first, and its scenario position."""
        items: list[list[Item]] = []
        state: dict[str, Any] | None = None
        identity: str | None = previous
        while identity is not None:
            row = self._store.one("SELECT previous, input, body, thread, status FROM response WHERE id = ?", identity)
            if row is None or row[4] == "deleted":
                message = f"Previous response with id '{identity}' not found."
                error = openai_error(message, param="previous_response_id", code="previous_response_not_found")
                raise ApiError(400, error)
            if state is None:
                state = json.loads(row[3])
            items.append([*load(row[1]), *json.loads(row[2])["output"]])
            identity = row[0]
        return [item for group in reversed(items) for item in group], state or {}

    def get(self, request: Request, identity: str) -> Answer:
        """Return a response; looking at a queued one finishes it."""
        row = self._store.one("SELECT status, body, background FROM response WHERE id = ?", identity)
        if row is None:
            raise _unknown(identity)
        if row[0] == "deleted":
            error = foundry_error("bad_request", f"Response with id '{identity}' not found/deleted.")
            raise ApiError(400, error)
        if row[0] == "queued":
            with self._store.writing() as db:
                db.execute("UPDATE response SET status = 'done' WHERE id = ? AND status = 'queued'", (identity,))
        body = json.loads(row[1])
        if request.query.get("stream") == "true":
            if not row[2]:
                message = "Only a background response can be streamed again."
                raise ApiError(400, openai_error(message, param="stream"))
            after = request.query.get("starting_after", "-1")
            events = [e for e in events_of(body) if e["sequence_number"] > int(after)]
            return Answer(stream=EventStream(lambda: events))
        return Answer(body)

    def list(self, request: Request) -> Answer:
        """List responses (Foundry only)."""
        name, version = request.query.get("agent_name"), request.query.get("agent_id")
        conversation = request.query.get("conversation_id")
        rows = self._store.rows(
            "SELECT body, agent, conversation FROM response WHERE status <> 'deleted' ORDER BY created_at, rowid",
        )
        bodies = [
            json.loads(body)
            for body, agent, where in rows
            if name in (None, (agent or "").split(":")[0])
            and version in (None, agent)
            and conversation in (None, where)
        ]
        return page(request, bodies, lambda body: str(body["id"]), lambda body: body)

    def delete(self, request: Request, identity: str) -> Answer:
        """Delete a response; asking for it afterwards says so."""
        del request
        with self._store.writing() as db:
            changed = db.execute(
                "UPDATE response SET status = 'deleted' WHERE id = ? AND status <> 'deleted'",
                (identity,),
            ).rowcount
        if not changed:
            raise _unknown(identity)
        return Answer({"id": identity, "object": "response", "deleted": True})

    def cancel(self, request: Request, identity: str) -> Answer:
        """Cancel a queued background response."""
        del request
        row = self._store.one("SELECT status, body, background FROM response WHERE id = ?", identity)
        if row is None or row[0] == "deleted":
            raise _unknown(identity)
        body = json.loads(row[1])
        if not row[2]:
            raise ApiError(400, openai_error("Cannot cancel a synchronous response."))
        if row[0] == "queued":
            body |= {"status": "cancelled", "output": [], "completed_at": None}
            body.pop("usage", None)
            with self._store.writing() as db:
                db.execute(
                    "UPDATE response SET status = 'cancelled', body = ? WHERE id = ?",
                    (json.dumps(body), identity),
                )
        elif row[0] != "cancelled":
            raise ApiError(400, openai_error(f"Cannot cancel a {body['status']} response."))
        return Answer(body)

    def input_items(self, request: Request, identity: str) -> Answer:
        """List the items that a response was given."""
        row = self._store.one("SELECT input FROM response WHERE id = ? AND status <> 'deleted'", identity)
        if row is None:
            raise _unknown(identity)
        return page(request, load(row[0]), lambda item: str(item["id"]), lambda item: item)


def _conversation_of(body: dict[str, Any]) -> str | None:
    given = body.get("conversation")
    if given is None or isinstance(given, str):
        return given
    if isinstance(given, dict) and isinstance(given.get("id"), str):
        return str(given["id"])
    raise payload("conversation must be an id or an object with one", param="conversation")


def _unknown(identity: str) -> ApiError:
    """Return the 404 of the model layer (foundry.md §4.7)."""
    return ApiError(404, openai_error(f"Response with id '{identity}' not found."))

"""Responses: created, streamed, kept, listed, cancelled (foundry.md §4; openai-agents.md §7)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agentfn.emulator.http import Answer, ApiError, ConnectionCut, Request, Route, openai_error
from agentfn.emulator.responses.asked import Asking
from agentfn.emulator.responses.checks import check_types, conversation_of
from agentfn.emulator.responses.errors import invalid
from agentfn.emulator.responses.paging import page
from agentfn.emulator.responses.stream import Event, EventStream, events_of
from agentfn.emulator.responses.turn import RUNNING, ModelStep, settle

if TYPE_CHECKING:
    from agentfn.emulator.app import Application
    from agentfn.emulator.foundry.agents import Agents
    from agentfn.emulator.responses.conversations import Conversations
    from agentfn.locks import FileLock

#: How long a second request waits for the first one on a conversation, in seconds; then it is told to come back.
LOCK_SECONDS = 0.2
#: How long a stream that has nothing to say stays silent at a time, in seconds.
SLICE_SECONDS = 1.0


class Responses:
    """The routes under ``/responses``; `agents` None is the face without agents."""

    def __init__(self, app: Application, agents: Agents | None, conversations: Conversations) -> None:
        self._app = app
        self._store = app.store
        self._conversations = conversations
        self._asking = Asking(app.store, agents, conversations, loose=app.loose)

    def routes(self) -> list[Route]:
        """Return the routes that every face has."""
        return [
            ("POST", "responses", self.create),
            ("GET", "responses/{}", self.get),
            ("DELETE", "responses/{}", self.delete),
            ("POST", "responses/{}/cancel", self.cancel),
            ("GET", "responses/{}/input_items", self.input_items),
        ]

    def create(self, request: Request) -> Answer:
        """Run one model step."""
        body = request.json()
        check_types(body)
        conversation = conversation_of(body)
        lock = self._lock(conversation)
        try:
            step = ModelStep(self._app, self._asking.read(body, conversation))
            if step.is_fault or step.reply.cut == "after":
                return self._break_off(step)
            if step.asked.background:
                return self._queue(step)
            if step.asked.streamed:
                held, lock = lock, None
                return Answer(stream=self._stream(step, held), headers=step.headers)
            self._app.sleep(step.reply.delay)
            return Answer(step.commit(), headers=step.headers, cut=step.reply.cut == "mid")
        finally:
            if lock is not None:
                lock.release()

    def _break_off(self, step: ModelStep) -> Answer:
        """Play a fault: before anything is stored, or after everything was; not a byte of an answer is sent."""
        self._app.sleep(step.reply.delay)
        if step.is_fault:
            raise step.fail()
        if step.asked.background:
            step.queue()
        else:
            step.commit()
        raise ConnectionCut

    def _stream(self, step: ModelStep, lock: FileLock | None) -> EventStream:
        """Return the events of a step that is committed while they are read; who leaves earlier cancels it."""
        left = [step.reply.delay]

        def release() -> None:
            self._store.release()
            if lock is not None:
                lock.release()

        def work() -> list[Event] | None:
            if left[0] > 0:
                now = min(SLICE_SECONDS, left[0])
                left[0] -= now
                self._app.sleep(now)
                return None if left[0] > 0 else work()
            try:
                return events_of(step.commit())[2:]
            finally:
                release()  # whoever reads the last event may ask again at once

        return EventStream(work, first=events_of(step.opened)[:2], cut=step.reply.cut == "mid", done=release)

    def _queue(self, step: ModelStep) -> Answer:
        body = step.queue()
        if step.asked.streamed:
            return Answer(stream=self._replay(body["id"], cut=step.reply.cut == "mid"), headers=step.headers)
        return Answer(body, headers=step.headers, cut=step.reply.cut == "mid")

    def _replay(self, identity: str, *, after: int = -1, cut: bool = False) -> EventStream:
        """Return a background response's events behind the one of that number, waiting for those to come."""

        def later(events: list[Event]) -> list[Event]:
            return [event for event in events if event["sequence_number"] > after]

        def work() -> list[Event] | None:
            try:
                settle(self._store, identity)
                status, body, due = self._row(identity, "status, body, due")
                if status in RUNNING:
                    self._app.sleep(max(0.0, min(SLICE_SECONDS, due - self._store.now())))
                    return None
                return later(events_of(json.loads(body))[2:])
            finally:
                self._store.release()

        (body,) = self._row(identity, "body")
        return EventStream(work, first=later(events_of(json.loads(body))[:2]), cut=cut, done=self._store.release)

    def _lock(self, conversation: str | None) -> FileLock | None:
        """Hold the conversation; two runs at once are told so (foundry.md §5.2)."""
        if conversation is None:
            return None
        self._conversations.require(conversation)
        lock = self._conversations.lock(conversation)
        if lock.acquire(LOCK_SECONDS):
            if not self._is_running(conversation):
                return lock
            lock.release()
        message = "Another process is currently operating on this conversation. Please retry in a few seconds."
        raise ApiError(400, openai_error(message, param="conversation", code="conversation_locked"))

    def _is_running(self, conversation: str) -> bool:
        """Tell whether a background response still has the conversation."""
        sql = f"SELECT id FROM response WHERE conversation = ? AND status IN {RUNNING}"
        for (identity,) in self._store.rows(sql, conversation):
            settle(self._store, identity)
        return self._store.one(sql, conversation) is not None

    def _row(self, identity: str, columns: str) -> tuple[Any, ...]:
        row = self._store.one(f"SELECT {columns} FROM response WHERE id = ? AND status <> 'deleted'", identity)
        if row is None:
            # Also after a deletion: recordings of both 400 and 404 exist (foundry.md §4.7); the newer one counts.
            raise ApiError(404, openai_error(f"Response with id '{identity}' not found."))
        return row

    def get(self, request: Request, identity: str) -> Answer:
        """Return a response, or its events again; looking at a queued one moves it on."""
        settle(self._store, identity)
        body, background, streamed = self._row(identity, "body, background, streamed")
        if request.query.get("stream") != "true":
            return Answer(json.loads(body))
        if not (background and streamed):
            message = "Only a response that was created with background, stream and store can be streamed again."
            raise ApiError(400, openai_error(message, param="stream"))
        after = request.query.get("starting_after", "-1")
        if not after.removeprefix("-").isdecimal():
            raise invalid(f"starting_after must be a number, got {after}", param="starting_after")
        return Answer(stream=self._replay(identity, after=int(after)))

    def index(self, request: Request) -> Answer:
        """List responses (Foundry only)."""
        name, version = request.query.get("agent_name"), request.query.get("agent_id")
        conversation = request.query.get("conversation_id")
        rows = self._store.rows(
            "SELECT body, agent, conversation FROM response WHERE status <> 'deleted' ORDER BY created_at, rowid"
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
        """Delete a response; what it said stays in its conversation, and under the responses after it."""
        del request
        settle(self._store, identity)
        with self._store.writing() as db:
            (status,) = self._row(identity, "status")
            if status in RUNNING:
                raise ApiError(400, openai_error("Cannot delete an in-flight response."))
            db.execute("UPDATE response SET status = 'deleted' WHERE id = ?", (identity,))
        return Answer({"id": identity, "object": "response", "deleted": True})

    def cancel(self, request: Request, identity: str) -> Answer:
        """Cancel a background response that nobody has seen finished; doing it twice is the same as once."""
        del request
        with self._store.writing() as db:
            text, background, status = self._row(identity, "body, background, status")
            body = json.loads(text)
            if not background:
                raise ApiError(400, openai_error("Cannot cancel a synchronous response."))
            if status in RUNNING:
                body |= {"status": "cancelled", "output": [], "completed_at": None}
                db.execute(
                    "UPDATE response SET status = 'cancelled', body = ?, due = NULL, final = NULL WHERE id = ?",
                    (json.dumps(body), identity),
                )
            elif status != "cancelled":
                raise ApiError(400, openai_error(f"Cannot cancel {_article(status)} response."))
        return Answer(body)

    def input_items(self, request: Request, identity: str) -> Answer:
        """List the items that a response was given."""
        (items,) = self._row(identity, "input")
        return page(request, json.loads(items), lambda item: str(item["id"]), lambda item: item)


def _article(status: str) -> str:
    return f"an {status}" if status[0] in "aeiou" else f"a {status}"

"""The turn where each model step is a request and the server keeps the conversation: no message or output goes out twice.

After a request whose fate is unknown the conversation is read before anything is sent: what was sent is there, then the
answer is taken from there or the model is asked to go on; it is not there, then the same bytes are sent again. From then
on every further wait ends with reading, since the lost request may still be at work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from agentfn.backends.http import RefusedError, UnknownFateError
from agentfn.backends.protocol import Listener, Look, Start, Submit
from agentfn.backends.service import Item, Page, Service, segment
from agentfn.backends.steps import history, items
from agentfn.backends.steps.asking import Asker, Asking
from agentfn.errors import NegativeError
from agentfn.model import AgentRef, Stamp, Step

if TYPE_CHECKING:
    from collections.abc import Callable

#: Our turn's id in the response's metadata. That responses take metadata next to an agent is what the specification
#: says (foundry.md §4.3), but no recording shows it: set this to False should a service refuse it.
TURN_IN_METADATA = True


class Plane(NamedTuple):
    """Where a service has its responses and conversations, and how a request names who answers.

    `agent` returns the members of a request's body that do. `lists` tells whether conversations can be listed, so that
    one whose creation was lost can be found.
    """

    responses: str
    conversations: str
    agent: Callable[[AgentRef], Item]
    lists: bool


class TurnClient:
    """Messages, outputs and the state of the conversations that a server keeps."""

    def __init__(self, service: Service, plane: Plane) -> None:
        self._service = service
        self._plane = plane
        self._asker = Asker(service, plane.responses)

    def start(self, request: Start, listener: Listener) -> Step:
        """Send a message; open a conversation for it first where there is none."""
        conversation = request.conversation
        if conversation is None:
            try:
                conversation = self.open(request.stamp, listener)
            except RefusedError as refused:
                raise self._service.refusal(refused.reply, "opening a conversation") from refused
            listener.conversation_opened(conversation)
        body = self._body(request.agent, conversation, request.turn, request.message, stream=request.stream)

        def arrived(found: list[Item]) -> bool:
            return history.times_said(found, request.message) > request.earlier_same

        return self._asker.ask(self._asking(body, conversation, arrived), listener)

    def submit(self, request: Submit, listener: Listener) -> Step:
        """Send all outcomes of one step."""
        given = [items.output_item(call, outcome) for call, outcome in request.outcomes]
        body = self._body(request.agent, request.conversation, request.turn, given, stream=request.stream)
        sent = tuple(call.id for call, _ in request.outcomes)

        def arrived(found: list[Item]) -> bool:
            return history.answered(found).issuperset(sent)

        asking = self._asking(body, request.conversation, arrived)._replace(sent=sent, asked_by=request.asked_by)
        return self._asker.ask(asking, listener, in_doubt=request.maybe_sent)

    def look(self, conversation: str, message: str | None = None, earlier_same: int = 0) -> Look:
        """Read which calls wait, the step they belong to, and whether a message arrived."""
        doing = f"reading conversation {conversation}"
        found: list[Item] = []
        page: Page | None = None
        for page in self._service.pages(self._items_path(conversation), doing, order="desc"):
            found = page.entries[::-1] + found
            # No call of an earlier turn can wait: it would have stopped this one (foundry.md §5.2).
            if message is None and any(history.is_user_message(item) for item in page.entries):
                break
        if page is None:
            return Look(exists=False)
        step = self._standing(found, page.now)
        agent = next((ref for item in reversed(found) if (ref := items.agent_of(item)) is not None), None)
        waiting = step.calls if step is not None else ()
        return Look(
            exists=True,
            waiting=waiting,
            answered=frozenset(history.answered(found)),
            step=step,
            agent=agent,
            arrived=message is None or history.times_said(found, message) > earlier_same,
        )

    # Opening a conversation ------------------------------------------------------------------------------------------

    def open(self, stamp: Stamp, listener: Listener) -> str:
        """Open a conversation and return its id; raise RefusedError where the service refuses."""
        patience = self._service.channel.patience(listener.retrying)
        path = self._plane.conversations
        while True:
            try:
                reply = self._service.send("POST", path, body={"metadata": stamp.metadata()}, patience=patience)
                if isinstance(reply.body, dict) and reply.body.get("id"):
                    return str(reply.body["id"])
                exc = UnknownFateError("the answer names no conversation")
            except UnknownFateError as unknown:
                exc = unknown
            # Wait before looking: the service may still be at it.
            patience.wait(exc.reason, exc.headers, self._asker.lost(exc.told))
            found = self._stamped(stamp)
            if found is not None:
                return found

    def _stamped(self, stamp: Stamp) -> str | None:
        """Return the conversation that carries the stamp; new ones come first, so one page is enough."""
        if not self._plane.lists:
            return None  # an empty conversation may stay behind, which nobody can find
        pages = self._service.pages(self._plane.conversations, "looking for the new conversation", order="desc")
        for entry in next(pages, Page([], 0.0)).entries:
            metadata = entry.get("metadata")
            if isinstance(metadata, dict) and metadata.get("agentfn-id") == stamp.token:
                return str(entry.get("id"))
        return None

    # Asking for a step -----------------------------------------------------------------------------------------------

    def _asking(self, body: Item, conversation: str, arrived: Callable[[list[Item]], bool]) -> Asking:
        def recover(listener: Listener) -> tuple[bool, Step | None]:
            doing = f"reading conversation {conversation}"
            path = self._items_path(conversation)
            pages = list(self._service.pages(path, doing, order="asc", told=listener.retrying))
            if not pages:
                raise NegativeError(f"conversation {conversation} is gone", code="conversation_not_found")
            found = [item for page in pages for item in page.entries]
            is_there = arrived(found)
            return is_there, self._standing(found, pages[-1].now) if is_there else None

        return Asking(body, recover, conversation)

    def _standing(self, found: list[Item], now: float) -> Step | None:
        """Return the step at the end of a conversation; None where the service has not said anything yet."""
        last = history.last_step(found)
        if last is None:
            return None
        response, response_now = self._asker.response(last.response) if last.response else ({}, now)
        created = items.created_at(response)
        return Step(
            id=last.response or last.item,
            created_at=(response_now or now) if created is None else created,
            service_now=response_now or now,
            calls=last.calls,
            answer=last.answer,
            failure=None if last.calls else self._asker.masked(items.failure_of(response)),
            usage=items.usage_of(response),
            actions=last.actions,
            version=last.version,
        )

    def _body(self, agent: AgentRef, conversation: str, turn: str, given: Any, *, stream: bool) -> Item:
        body: Item = {**self._plane.agent(agent), "conversation": conversation, "input": given}
        if TURN_IN_METADATA:
            body["metadata"] = {"agentfn-turn": turn}
        return body | ({"stream": True} if stream else {})

    def _items_path(self, conversation: str) -> str:
        return f"{self._plane.conversations}/{segment(conversation)}/items"

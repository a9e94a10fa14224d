"""Foundry's turn: each model step is a request, and no message or output goes out twice.

After a request whose fate is unknown the conversation is read before anything is sent: what was sent is there, then the
answer is taken from there or the model is asked to go on; it is not there, then the same bytes are sent again. From then
on every further wait ends with reading, since the lost request may still be at work.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from agentfn.backends import foundry_history as history
from agentfn.backends import foundry_items as items
from agentfn.backends.foundry_wire import CONVERSATIONS, RESPONSES, Item, Page, Project, segment
from agentfn.backends.http import (
    MOST_CONNECTS,
    NotSentError,
    RefusedError,
    Reply,
    UnknownFateError,
    is_locked,
    is_not_now,
    told_status,
)
from agentfn.backends.protocol import Listener, Look, Start, Submit
from agentfn.backends.retry import MOST_RETRIES, Patience
from agentfn.errors import AgentfnError, NegativeError, ServiceError
from agentfn.model import AgentRef, Stamp, Step

if TYPE_CHECKING:
    from collections.abc import Callable

#: Our turn's id in the response's metadata. That responses take metadata next to an agent is what the specification
#: says (foundry.md §4.3), but no recording shows it: set this to False should a service refuse it.
TURN_IN_METADATA = True


class _Asking(NamedTuple):
    """A request for a model step: its body, and how to tell from a conversation's items whether it arrived.

    `sent` are the calls whose outputs are in it, `asked_by` is the response that asked for them.
    """

    body: Item
    arrived: Callable[[list[Item]], bool]
    sent: tuple[str, ...] = ()
    asked_by: str = ""

    @property
    def conversation(self) -> str:
        return str(self.body["conversation"])


class TurnClient:
    """Messages, outputs and the state of conversations of one project."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def start(self, request: Start, listener: Listener) -> Step:
        """Send a message; open a conversation for it first where there is none."""
        conversation = request.conversation
        if conversation is None:
            conversation = self._open(request.stamp, listener)
            listener.conversation_opened(conversation)
        body = _body(request.agent, conversation, request.turn, request.message, stream=request.stream)

        def arrived(found: list[Item]) -> bool:
            return history.times_said(found, request.message) > request.earlier_same

        return self._ask(_Asking(body, arrived), listener)

    def submit(self, request: Submit, listener: Listener) -> Step:
        """Send all outcomes of one step."""
        given = [items.output_item(call, outcome) for call, outcome in request.outcomes]
        body = _body(request.agent, request.conversation, request.turn, given, stream=request.stream)
        sent = tuple(call.id for call, _ in request.outcomes)

        def arrived(found: list[Item]) -> bool:
            return history.answered(found).issuperset(sent)

        return self._ask(_Asking(body, arrived, sent, request.asked_by), listener, in_doubt=request.maybe_sent)

    def look(self, conversation: str, message: str | None = None, earlier_same: int = 0) -> Look:
        """Read which calls wait, the step they belong to, and whether a message arrived."""
        path = _items_path(conversation)
        doing = f"reading conversation {conversation}"
        found: list[Item] = []
        page: Page | None = None
        for page in self._project.pages(path, doing, order="desc"):
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

    def _open(self, stamp: Stamp, listener: Listener) -> str:
        patience = self._project.channel.patience(listener.retrying)
        while True:
            try:
                reply = self._project.send(
                    "POST", CONVERSATIONS, body={"metadata": stamp.metadata()}, patience=patience
                )
                if isinstance(reply.body, dict) and reply.body.get("id"):
                    return str(reply.body["id"])
                exc = UnknownFateError("the answer names no conversation")
            except UnknownFateError as unknown:
                exc = unknown
            except RefusedError as refused:
                raise self._project.refusal(refused.reply, "opening a conversation") from refused
            # Wait before looking: the service may still be at it.
            patience.wait(exc.reason, exc.headers, self._lost(exc.told))
            found = self._stamped(stamp)
            if found is not None:
                return found

    def _stamped(self, stamp: Stamp) -> str | None:
        """Return the conversation that carries the stamp; new ones come first, so one page is enough."""
        pages = self._project.pages(CONVERSATIONS, "looking for the new conversation", order="desc")
        for entry in next(pages, Page([], 0.0)).entries:
            remote = items.remote_conversation(entry)
            if remote.metadata.get("agentfn-id") == stamp.token:
                return remote.id
        return None

    # Asking for a step -----------------------------------------------------------------------------------------------

    def _ask(self, asking: _Asking, listener: Listener, *, in_doubt: bool = False) -> Step:
        """Send a request for a model step and see it through; `in_doubt` reads the conversation before anything else."""
        patience = self._project.channel.patience(listener.retrying)
        body = asking.body
        if in_doubt:
            arrived, step = self._recovered(asking, listener)
            if step is not None:
                return step
            body = {**asking.body, "input": []} if arrived else asking.body
        while True:
            try:
                return self._once(body, listener)
            except UnknownFateError as exc:
                in_doubt = True
                trouble = _Trouble(exc.reason, exc, self._lost(exc.told))
            except NotSentError as exc:
                trouble = _Trouble(exc.reason, exc, exc.error, most=MOST_CONNECTS)
            except RefusedError as exc:
                error = self._refusal(exc.reply, asking)
                if not is_not_now(exc.reply):
                    step = self._recovered(asking, listener)[1] if in_doubt else None
                    if step is None:
                        raise error from exc
                    return step
                trouble = _Trouble(told_status(exc.reply), exc, error, status=exc.reply.status)
            self._wait(patience, trouble, in_doubt=in_doubt)
            if in_doubt:
                arrived, step = self._recovered(asking, listener)
                if step is not None:
                    return step
                # Where it is there without an answer, the model goes on from the history (foundry.md §4.3).
                body = {**asking.body, "input": []} if arrived else asking.body

    def _wait(self, patience: Patience, trouble: _Trouble, *, in_doubt: bool) -> None:
        """Wait before the next attempt, or give up."""
        exc = trouble.exc
        headers = exc.reply.headers if isinstance(exc, RefusedError) else getattr(exc, "headers", {})
        if not in_doubt:
            patience.wait(trouble.reason, headers, trouble.error, most=trouble.most, status=trouble.status)
            return
        # It may be our own lost request that has the conversation, for as long as a model computes: only time counts.
        locked = isinstance(exc, RefusedError) and is_locked(exc.reply)
        error = trouble.error if isinstance(exc, UnknownFateError) else self._lost(trouble.reason)
        patience.wait(trouble.reason, headers, error, most=None if locked else trouble.most)

    def _once(self, body: Item, listener: Listener) -> Step:
        channel = self._project.channel
        if not body.get("stream"):
            reply = channel.attempt("POST", RESPONSES, body=body)
            if not isinstance(reply.body, dict):
                raise UnknownFateError("the answer was no JSON object")
            return self._step(reply.body, reply.service_now)
        from agentfn.backends.foundry_stream import collect

        collected = collect(channel.stream(RESPONSES, body=body), listener.text, channel.mask)
        if collected.cut is None:
            return self._step(collected.response, collected.now)
        # The service said "completed" in the middle of a call's arguments: perhaps it has kept them whole.
        identity = str(collected.response.get("id") or "")
        response, now = self._response(identity)
        if collected.cut in {call.id for call in items.calls_of(items.objects(response.get("output")))}:
            return self._step(response, now)
        raise ServiceError(
            f"the stream ended before the arguments of {collected.cut} were complete; the response is {identity}",
            code="stream_incomplete",
            hint=f"agentfn pending {body['conversation']} asks for it again",
        )

    def _recovered(self, asking: _Asking, listener: Listener) -> tuple[bool, Step | None]:
        """Read the conversation: return whether the request arrived, and what came of it."""
        doing = f"reading conversation {asking.conversation}"
        pages = list(
            self._project.pages(_items_path(asking.conversation), doing, order="asc", told=listener.retrying),
        )
        if not pages:
            raise NegativeError(f"conversation {asking.conversation} is gone", code="conversation_not_found")
        found = [item for page in pages for item in page.entries]
        arrived = asking.arrived(found)
        return arrived, self._standing(found, pages[-1].now) if arrived else None

    # What came of it -------------------------------------------------------------------------------------------------

    def _standing(self, found: list[Item], now: float) -> Step | None:
        """Return the step at the end of a conversation; None where the service has not said anything yet."""
        last = history.last_step(found)
        if last is None:
            return None
        response, response_now = self._response(last.response) if last.response else ({}, now)
        created = items.created_at(response)
        return Step(
            id=last.response or last.item,
            created_at=(response_now or now) if created is None else created,
            service_now=response_now or now,
            calls=last.calls,
            answer=last.answer,
            failure=None if last.calls else self._masked(items.failure_of(response)),
            usage=items.usage_of(response),
            actions=last.actions,
            version=last.version,
        )

    def _step(self, body: Item, now: float) -> Step:
        step = items.step_of(body, now)
        return step._replace(failure=self._masked(step.failure))

    def _masked(self, text: str | None) -> str | None:
        return None if text is None else self._project.channel.mask(text)

    def _response(self, identity: str) -> tuple[Item, float]:
        """Return a response and the service's clock; empty where it is not kept."""
        try:
            reply = self._project.send("GET", f"{RESPONSES}/{segment(identity)}")
        except RefusedError:  # deleted, or never stored; both statuses 400 and 404 were seen (foundry.md §4.7)
            return {}, 0.0
        return (reply.body if isinstance(reply.body, dict) else {}), reply.service_now

    def _refusal(self, reply: Reply, asking: _Asking) -> AgentfnError:
        doing = "asking the agent"
        error = self._project.refusal(reply, doing, sent=asking.sent)
        if error.code != "expired" or not asking.asked_by:
            return error
        created = None
        with suppress(AgentfnError):  # when it was asked for is good to know, and not the matter
            created = items.created_at(self._response(asking.asked_by)[0])
        return self._project.refusal(reply, doing, sent=asking.sent, asked_at=created)

    def _lost(self, reason: str) -> ServiceError:
        return ServiceError(
            f"{self._project.endpoint} failed or did not answer ({reason}), and went on doing so",
            code="unknown_fate",
            hint="what was computed is kept; go on later with agentfn respond",
        )


class _Trouble(NamedTuple):
    """Why a request is to be sent again; `error` is raised where there is no patience left."""

    reason: str
    exc: Exception
    error: AgentfnError
    most: int = MOST_RETRIES
    status: int | None = None


def _body(agent: AgentRef, conversation: str, turn: str, given: Any, *, stream: bool) -> Item:
    reference = {"type": "agent_reference", "name": agent.name}
    if agent.version is not None:
        reference["version"] = agent.version
    body: Item = {"agent_reference": reference, "conversation": conversation, "input": given}
    if TURN_IN_METADATA:
        body["metadata"] = {"agentfn-turn": turn}
    return body | ({"stream": True} if stream else {})


def _items_path(conversation: str) -> str:
    return f"{CONVERSATIONS}/{segment(conversation)}/items"

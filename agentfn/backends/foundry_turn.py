"""Foundry's turn: each model step is a request, and no message or output goes out twice.

After a request whose fate is unknown the conversation is read first: what was sent is there, then the answer is fetched
or the model is asked to go on; it is not there, then the same bytes are sent again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from agentfn.backends import foundry_items as items
from agentfn.backends.foundry_errors import translated
from agentfn.backends.http import Channel, RefusedError, UnknownFateError
from agentfn.backends.protocol import Listener, Look, Start, Submit
from agentfn.errors import NegativeError, ServiceError
from agentfn.model import AgentRef, Stamp, Step

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentfn.backends.retry import Patience

Item = dict[str, Any]

#: Our turn's id in the response's metadata. That responses take metadata next to an agent is what the specification
#: says (foundry.md §4.3), but no recording shows it: set this to False should a service refuse it.
TURN_IN_METADATA = True
_CONVERSATIONS = "/openai/v1/conversations"
_RESPONSES = "/openai/v1/responses"
_PAGE = 100


class TurnClient:
    """Messages, outputs and conversations of one project."""

    def __init__(self, channel: Channel, endpoint: str) -> None:
        self._channel = channel
        self._endpoint = endpoint

    def start(self, request: Start, listener: Listener) -> Step:
        """Send a message; open a conversation for it first where there is none."""
        conversation = request.conversation
        if conversation is None:
            conversation = self._open(request.stamp, listener)
            listener.conversation_opened(conversation)
        body = self._body(request.agent, conversation, request.turn, request.message, stream=request.stream)

        def arrived(found: list[Item]) -> bool:
            same = [i for i in found if i.get("role") == "user" and items.message_text(i) == request.message]
            return len(same) > request.earlier_same

        return self._ask(body, conversation, arrived, listener)

    def submit(self, request: Submit, listener: Listener) -> Step:
        """Send all outcomes of one step."""
        given = [items.output_item(call, outcome) for call, outcome in request.outcomes]
        body = self._body(request.agent, request.conversation, request.turn, given, stream=request.stream)
        ids = {call.id for call, _ in request.outcomes}

        def arrived(found: list[Item]) -> bool:
            return ids <= _answered(found)

        return self._ask(body, request.conversation, arrived, listener, sent=tuple(ids))

    def _body(self, agent: AgentRef, conversation: str, turn: str, given: Any, *, stream: bool) -> Item:
        reference = {"type": "agent_reference", "name": agent.name}
        if agent.version is not None:
            reference["version"] = agent.version
        body: Item = {"agent_reference": reference, "conversation": conversation, "input": given}
        if TURN_IN_METADATA:
            body["metadata"] = {"agentfn-turn": turn}
        return body | ({"stream": True} if stream else {})

    def _open(self, stamp: Stamp, listener: Listener) -> str:
        patience = self._channel.patience(listener.retrying)
        while True:
            try:
                reply = self._channel.send(
                    "POST",
                    _CONVERSATIONS,
                    body={"metadata": stamp.metadata()},
                    patience=patience,
                )
            except UnknownFateError as exc:
                found = self._stamped(stamp, patience)
                if found is not None:
                    return found
                patience.wait(exc.reason, exc.headers, self._lost(exc))
            except RefusedError as exc:
                raise translated(exc.reply, self._endpoint, "opening a conversation") from exc
            else:
                return str(reply.body["id"])

    def _stamped(self, stamp: Stamp, patience: Patience) -> str | None:
        """Return the conversation that carries the stamp; new ones come first, so one page is enough."""
        body = self._get(f"{_CONVERSATIONS}?limit={_PAGE}", patience)
        for entry in body.get("data") or []:
            if (entry.get("metadata") or {}).get("agentfn-id") == stamp.token:
                return str(entry["id"])
        return None

    def _ask(
        self,
        body: Item,
        conversation: str,
        arrived: Callable[[list[Item]], bool],
        listener: Listener,
        sent: tuple[str, ...] = (),
    ) -> Step:
        """Send a request for a model step and see it through."""
        patience = self._channel.patience(listener.retrying)
        while True:
            try:
                return self._once(body, patience, listener)
            except UnknownFateError as exc:
                unknown = exc
            except RefusedError as exc:
                raise translated(exc.reply, self._endpoint, "asking the agent", sent=sent) from exc
            patience.wait(unknown.reason, unknown.headers, self._lost(unknown))
            found = self._items(conversation, patience)
            if found is None:
                raise NegativeError(f"conversation {conversation} is gone", code="conversation_not_found")
            if not arrived(found):
                continue
            step = self._standing(found, patience)
            if step is not None:
                return step
            # What was sent is there and no answer is: the model goes on where the history stands (foundry.md §4.3).
            body = {**body, "input": []}

    def _once(self, body: Item, patience: Patience, listener: Listener) -> Step:
        if not body.get("stream"):
            reply = self._channel.send("POST", _RESPONSES, body=body, patience=patience)
            if not isinstance(reply.body, dict):
                raise UnknownFateError("the answer was no JSON")
            return step_of(reply.body, reply.service_now)
        return self._streamed(body, patience, listener)

    def _streamed(self, body: Item, patience: Patience, listener: Listener) -> Step:
        done: dict[int, Item] = {}
        started: dict[int, Item] = {}
        response: Item = {}
        now = 0.0
        for event, now in self._channel.stream(_RESPONSES, body=body, patience=patience):  # noqa: B007  # the last one counts
            kind = event.get("type")
            if isinstance(event.get("response"), dict):
                response = event["response"]
            if kind == "response.output_text.delta":
                listener.text(str(event.get("delta") or ""))
            elif kind == "response.output_item.added":
                started[event.get("output_index", len(started))] = event.get("item") or {}
            elif kind == "response.output_item.done":
                done[event.get("output_index", len(done))] = event.get("item") or {}
            elif kind == "error":
                given = event.get("error")
                error: Item = given if isinstance(given, dict) else event
                raise ServiceError(
                    f"the service broke off: {error.get('message')}",
                    code=str(error.get("code") or "error"),
                )
            if kind in ("response.completed", "response.failed", "response.incomplete"):
                break
        else:
            raise UnknownFateError("the stream ended before the answer was complete")
        if not response.get("output"):
            response = {**response, "output": [done[index] for index in sorted(done)]}
        cut = next((i for at, i in started.items() if at not in done and i.get("type") == "function_call"), None)
        whole = {call.id for call in items.calls_of(response["output"])}
        if cut is not None and cut.get("call_id") not in whole:
            return self._fetched(response, str(cut.get("call_id")), patience)
        return step_of(response, now)

    def _fetched(self, response: Item, call_id: str, patience: Patience) -> Step:
        """Fetch a response whose stream said "completed" in the middle of a call's arguments."""
        identity = str(response.get("id") or "")
        try:
            reply = self._channel.send("GET", f"{_RESPONSES}/{_segment(identity)}", patience=patience, safe=True)
        except RefusedError:
            reply = None
        body = reply.body if reply is not None and isinstance(reply.body, dict) else {}
        if reply is not None and call_id in {call.id for call in items.calls_of(body.get("output") or [])}:
            return step_of(body, reply.service_now)
        raise ServiceError(
            f"the stream ended before the arguments of {call_id} were complete",
            code="stream_incomplete",
            hint=f"try again; the response is {identity}",
        )

    def look(self, conversation: str) -> Look:
        """Read which calls wait, and the step they belong to."""
        patience = self._channel.patience(lambda _reason, _seconds: None)
        found = self._items(conversation, patience)
        if found is None:
            return Look(exists=False)
        step = self._standing(found, patience)
        waiting = step.calls if step is not None else ()
        agent = next((ref for item in reversed(found) if (ref := items.agent_of(item)) is not None), None)
        return Look(exists=True, waiting=waiting, answered=frozenset(_answered(found)), step=step, agent=agent)

    def _items(self, conversation: str, patience: Patience) -> list[Item] | None:
        """Return a conversation's items, oldest first, all pages; None where there is no such conversation."""
        found: list[Item] = []
        after = ""
        while True:
            path = f"{_CONVERSATIONS}/{_segment(conversation)}/items?order=asc&limit={_PAGE}{after}"
            try:
                body = self._get(path, patience, raw=True)
            except RefusedError as exc:
                if exc.reply.status == 404:  # noqa: PLR2004  # HTTP's own number
                    return None
                raise translated(exc.reply, self._endpoint, f"reading conversation {conversation}") from exc
            page = [item for item in body.get("data") or [] if isinstance(item, dict)]
            found += page
            if not body.get("has_more") or not page or after == f"&after={body.get('last_id')}":
                return found
            after = f"&after={body.get('last_id')}"

    def _standing(self, found: list[Item], patience: Patience) -> Step | None:
        """Return the step at the end of a conversation: waiting calls, or the answer; None where neither is there."""
        answered = _answered(found)
        waiting = [i for i in found if i.get("type") == "function_call" and i.get("call_id") not in answered]
        last = waiting[-1] if waiting else found[-1] if found else None
        if last is None or (not waiting and not (last.get("type") == "message" and last.get("role") == "assistant")):
            return None
        identity = items.response_of(last)
        response = self._response(identity, patience) if identity else {}
        calls = items.calls_of(waiting)
        answer = None if waiting else items.text_of([i for i in found if items.response_of(i) == identity] or [last])
        created = response.get("created_at")
        now = float(response["agentfn-now"]) if response else 0.0
        return Step(
            id=identity or str(last.get("id")),
            created_at=float(created) if isinstance(created, (int, float)) else now,
            service_now=now,
            calls=calls,
            answer=answer,
            usage=items.usage_of(response),
        )

    def _response(self, identity: str, patience: Patience) -> Item:
        """Return a response, with the service's clock beside it; empty where it is not kept."""
        try:
            reply = self._channel.send("GET", f"{_RESPONSES}/{_segment(identity)}", patience=patience, safe=True)
        except RefusedError:
            return {}
        body = reply.body if isinstance(reply.body, dict) else {}
        return {**body, "agentfn-now": reply.service_now}

    def _get(self, path: str, patience: Patience, *, raw: bool = False) -> Item:
        try:
            body = self._channel.send("GET", path, patience=patience, safe=True).body
        except RefusedError as exc:
            if raw:
                raise
            raise translated(exc.reply, self._endpoint, "reading a list") from exc
        return body if isinstance(body, dict) else {}

    def _lost(self, exc: UnknownFateError) -> ServiceError:
        return ServiceError(
            f"{self._endpoint} failed or did not answer ({exc.reason}), and went on doing so",
            code="unknown_fate",
            hint="what was computed is kept; go on later with agentfn respond",
        )


def step_of(body: Item, now: float) -> Step:
    """Return what a response says (foundry.md §4.4)."""
    output = [item for item in body.get("output") or [] if isinstance(item, dict)]
    calls = items.calls_of(output)
    status = body.get("status") or "completed"
    failure = _failure(body, str(status))
    text = items.text_of(output)
    actions = items.actions_of(output)
    if text is None and not calls and failure is None and not actions:
        text = ""
    created = body.get("created_at")
    agent = items.agent_of(body)
    return Step(
        id=str(body.get("id") or ""),
        created_at=float(created) if isinstance(created, (int, float)) else now,
        service_now=now,
        calls=() if failure is not None else calls,
        answer=None if calls and failure is None else text,
        failure=failure,
        usage=items.usage_of(body),
        actions=actions,
        version=agent.version if agent else None,
    )


def _failure(body: Item, status: str) -> str | None:
    if status == "failed":
        error = body.get("error") if isinstance(body.get("error"), dict) else {}
        assert isinstance(error, dict)  # noqa: S101  # from the line above
        return f"{error.get('message') or 'no reason given'} ({error.get('code') or 'failed'})"
    if status == "incomplete":
        details = body.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        return f"the answer is incomplete: {reason or 'no reason given'}"
    return "the response was cancelled" if status == "cancelled" else None


def _answered(found: list[Item]) -> set[str]:
    return {str(item.get("call_id")) for item in found if item.get("type") == "function_call_output"}


def _segment(text: str) -> str:
    return quote(text, safe="")

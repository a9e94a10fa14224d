"""Asks for one model step and sees the request through: waits, looks where its fate is unknown, never sends twice."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

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
from agentfn.backends.retry import MOST_RETRIES, Patience
from agentfn.backends.service import Item, Service, segment
from agentfn.backends.steps import items
from agentfn.errors import AgentfnError, ServiceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentfn.backends.protocol import Listener
    from agentfn.model import Step


class Asking(NamedTuple):
    """A request for a model step.

    `recover` reads where the conversation stands and returns whether the request arrived and what came of it; None where
    there is nothing to read, so that the same bytes are simply sent again. `sent` are the calls whose outputs are in it,
    `asked_by` is the response that asked for them. `where` names the conversation for messages. `take` is given each
    response as it came.
    """

    body: Item
    recover: Callable[[Listener], tuple[bool, Step | None]] | None
    where: str
    sent: tuple[str, ...] = ()
    asked_by: str = ""
    take: Callable[[Item], None] = lambda _response: None


class Asker:
    """Posts to one service's ``/responses``."""

    def __init__(self, service: Service, path: str) -> None:
        self._service = service
        self._path = path

    def ask(self, asking: Asking, listener: Listener, *, in_doubt: bool = False) -> Step:
        """Send a request for a model step and see it through; `in_doubt` reads the conversation before anything else."""
        patience = self._service.channel.patience(listener.retrying)
        body = asking.body
        if in_doubt:
            arrived, step = _recovered(asking, listener)
            if step is not None:
                return step
            body = {**asking.body, "input": []} if arrived else asking.body
        while True:
            try:
                return self._once(asking, body, listener)
            except UnknownFateError as exc:
                in_doubt = asking.recover is not None
                trouble = _Trouble(exc.reason, exc, self.lost(exc.told))
            except NotSentError as exc:
                trouble = _Trouble(exc.reason, exc, exc.error, most=MOST_CONNECTS)
            except RefusedError as exc:
                error = self._refusal(exc.reply, asking)
                if not is_not_now(exc.reply):
                    # Outputs that nothing waits for any more may have been delivered by somebody on the way, twice.
                    is_open = in_doubt or error.code == "call_not_waiting"
                    step = _recovered(asking, listener)[1] if is_open else None
                    if step is None:
                        raise error from exc
                    return step
                trouble = _Trouble(told_status(exc.reply), exc, error, status=exc.reply.status)
            self._wait(patience, trouble, in_doubt=in_doubt)
            if in_doubt:
                arrived, step = _recovered(asking, listener)
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
        error = trouble.error if isinstance(exc, UnknownFateError) else self.lost(trouble.reason)
        patience.wait(trouble.reason, headers, error, most=None if locked else trouble.most)

    def _once(self, asking: Asking, body: Item, listener: Listener) -> Step:
        channel = self._service.channel
        if not body.get("stream"):
            reply = channel.attempt("POST", self._path, body=body)
            if not isinstance(reply.body, dict):
                if asking.recover is None:
                    raise self._service.unreadable(reply)
                raise UnknownFateError("the answer was no JSON object", reply)
            asking.take(reply.body)
            return self._step(reply.body, reply.service_now)
        from agentfn.backends.steps.stream import collect

        collected = collect(channel.stream("POST", self._path, body=body), listener, channel.mask)
        if collected.cut is None:
            asking.take(collected.response)
            return self._step(collected.response, collected.now)
        # The service said "completed" in the middle of a call's arguments: perhaps it has kept them whole.
        identity = str(collected.response.get("id") or "")
        response, now = self.response(identity)
        if collected.cut in {call.id for call in items.calls_of(items.objects(response.get("output")))}:
            asking.take(response)
            return self._step(response, now)
        raise ServiceError(
            f"the stream ended before the arguments of {collected.cut} were complete; the response is {identity}",
            code="stream_incomplete",
            hint=f"agentfn pending {asking.where} asks for it again",
        )

    def _step(self, body: Item, now: float) -> Step:
        step = items.step_of(body, now)
        return step._replace(failure=self.masked(step.failure))

    def masked(self, text: str | None) -> str | None:
        """Return a text without the token, which a service may echo."""
        return None if text is None else self._service.channel.mask(text)

    def response(self, identity: str) -> tuple[Item, float]:
        """Return a response and the service's clock; empty where it is not kept."""
        try:
            reply = self._service.send("GET", f"{self._path}/{segment(identity)}")
        except RefusedError:  # deleted, or never stored; both statuses 400 and 404 were seen (foundry.md §4.7)
            return {}, 0.0
        return (reply.body if isinstance(reply.body, dict) else {}), reply.service_now

    def _refusal(self, reply: Reply, asking: Asking) -> AgentfnError:
        doing = "asking the agent"
        error = self._service.refusal(reply, doing, sent=asking.sent)
        if error.code != "expired" or not asking.asked_by:
            return error
        created = None
        with suppress(AgentfnError):  # when it was asked for is good to know, and not the matter
            created = items.created_at(self.response(asking.asked_by)[0])
        return self._service.refusal(reply, doing, sent=asking.sent, asked_at=created)

    def lost(self, reason: str) -> ServiceError:
        """Return the error where patience ended and nobody knows what became of the request."""
        return ServiceError(
            f"{self._service.endpoint} failed or did not answer ({reason}), and went on doing so",
            code="unknown_fate",
            hint="agentfn pending looks what became of it; what was computed is kept, and agentfn respond goes on",
        )


class _Trouble(NamedTuple):
    """Why a request is to be sent again; `error` is raised where there is no patience left."""

    reason: str
    exc: Exception
    error: AgentfnError
    most: int = MOST_RETRIES
    status: int | None = None


def _recovered(asking: Asking, listener: Listener) -> tuple[bool, Step | None]:
    return (False, None) if asking.recover is None else asking.recover(listener)

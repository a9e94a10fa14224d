"""Sends events to a session: messages, results, cancellation; each one until the service has it (openai-agents.md §4.1, §6)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from agentfn.backends.http import NotSentError, RefusedError, Reply, UnknownFateError, is_not_now, told_status
from agentfn.backends.sessions import shapes
from agentfn.backends.sessions.reading import path_of
from agentfn.errors import AgentfnError, NegativeError, ServiceError

if TYPE_CHECKING:
    from agentfn.backends.protocol import Listener
    from agentfn.backends.retry import Patience
    from agentfn.backends.service import Item, Service
    from agentfn.backends.sessions.reading import Reading
    from agentfn.model import Call, Outcome

_CONFLICT = 409


class Posting:
    """Sends events to the sessions of one service."""

    def __init__(self, service: Service, reading: Reading) -> None:
        self._service = service
        self._reading = reading

    def answer(self, session: str, turn: str, call: Call, outcome: Outcome, listener: Listener) -> None:
        """Send one call's result until the service has it."""
        event = shapes.result_event(turn, call, outcome)
        key = key_of(session, turn, call.id)
        patience = self._service.channel.patience(listener.retrying)
        while True:
            try:
                lost = self.post(session, event, key, patience, f"answering {call.id}")
            except _UnknownCallError as exc:
                self._require_listed(session, call, exc.error)
                patience.wait("the call does not take its result yet", {}, exc.error)
                continue
            if lost is None:
                return
            # The very same result is safe to send again, whatever became of the first (openai-agents.md §6).
            patience.wait(lost.reason, lost.headers, self._reading.lost(lost.told))

    def _require_listed(self, session: str, call: Call, error: AgentfnError) -> None:
        """Tell the race, in which a call is seen before it takes a result, from a call that waits no more."""
        found, _ = self._reading.session(session)
        if found is None:
            raise self._reading.absent(session)
        if call.id not in {listed.id for _, listed in shapes.calls_in(found)}:
            raise NegativeError(
                f"call {call.id} of {session} does not wait any more: {error.message}",
                code="call_not_waiting",
                hint="agentfn pending shows what waits",
            )

    def post(self, session: str, event: Item, key: str, patience: Patience, doing: str) -> UnknownFateError | None:
        """Send one event, waiting out "not now"; return what is unknown of it, None where it was accepted."""
        path = f"{path_of(session)}/events"
        while True:
            try:
                self._service.channel.attempt("POST", path, body={"events": [event]}, headers={"Idempotency-Key": key})
            except UnknownFateError as exc:
                return exc
            except NotSentError as exc:
                patience.wait(exc.reason, {}, exc.error, most=2)
            except RefusedError as exc:
                error = self._refused(exc.reply, session, doing)
                if not (is_not_now(exc.reply) or _is_setting_up(exc.reply)):
                    raise error from exc
                patience.wait(told_status(exc.reply), exc.reply.headers, error, status=exc.reply.status)
            else:
                return None

    def _refused(self, reply: Reply, session: str, doing: str) -> Exception:
        """Return what a refused event becomes (openai-agents.md §6)."""
        error = reply.error()
        message = str(error.get("message") or "")
        told = self._service.refusal(reply, doing)
        if reply.status == 404:  # noqa: PLR2004  # HTTP's own numbers
            return self._reading.absent(session)
        if message.startswith("Unknown pending tool call"):
            return _UnknownCallError(told)
        if reply.status == 413 or (reply.status == 400 and _is_about_size(error)):  # noqa: PLR2004
            hint = "return less, or a link to it; the call still waits: agentfn respond --call ID --output TEXT"
            return ServiceError(told.message, code="output_too_large", hint=hint, status=reply.status)
        if "belongs to a different" in message or (reply.status == _CONFLICT and not _is_setting_up(reply)):
            # Never to be sent again: the call has another result, or its turn is over.
            hint = f"agentfn log {session} shows what the service has"
            return NegativeError(told.message, code="result_refused", hint=hint)
        return told


class _UnknownCallError(Exception):
    """The service does not know the call, or does not know it yet; `error` is what the user would be told."""

    def __init__(self, error: AgentfnError) -> None:
        super().__init__(error.message)
        self.error = error


def _is_setting_up(reply: Reply) -> bool:
    """Tell the one conflict that passes by itself (openai-agents.md §4.1)."""
    return reply.status == _CONFLICT and "initial input is still pending" in str(reply.error().get("message") or "")


def _is_about_size(error: Item) -> bool:
    """Tell whether a refusal is about a result's size; its words are not documented (openai-agents.md §6)."""
    message, param = str(error.get("message") or "").lower(), str(error.get("param") or "")
    return "output" in param and ("larg" in message or "long" in message or "size" in message or "exceed" in message)


def key_of(*parts: str) -> str:
    """Return an idempotency key: the same for the same event, in whatever process (openai-agents.md §1)."""
    return "agentfn-" + hashlib.sha256("\n".join(parts).encode()).hexdigest()

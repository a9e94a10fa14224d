"""The turn that the server holds open: say something or answer calls, watch, and look at the session (openai-agents.md §8.4).

What waits is what `required_actions` says, in a snapshot on the stream or in the session itself. The exact same result is
always safe to send again; 409 is final; "unknown pending tool call" is a race as long as the session lists the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentfn.backends.http import NotSentError, RefusedError, UnknownFateError, is_not_now, told_status
from agentfn.backends.protocol import Listener, Look, Start, Submit
from agentfn.backends.sessions import shapes
from agentfn.backends.sessions.posting import Posting, key_of
from agentfn.backends.sessions.reading import SESSIONS, Reading, path_of
from agentfn.backends.sessions.watch import ENDS, SILENCE_SECONDS, Stop, Watch
from agentfn.errors import AgentfnError, PendingError, ServiceError
from agentfn.model import Step

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentfn.backends.service import Item, Service

#: For so long a turn may go without a single event before it is left for later.
DEAF_SECONDS = 600.0
#: How often a session whose creation got no answer is looked for before it is made again: the list lags behind
#: (openai-agents.md §3).
LOOKS_FOR_SESSION = 3
_NO_OBFUSCATION = "include_obfuscation=false"


class SessionTurns:
    """Messages, results and the state of the sessions at one service."""

    def __init__(self, service: Service, clock: Callable[[], float]) -> None:
        self._service = service
        self._reading = Reading(service)
        self._posting = Posting(service, self._reading)
        self._clock = clock
        self._watches: dict[str, Watch] = {}
        #: Sessions that were seen idle at the end of a turn of ours: nothing has to be asked before the next message.
        self._idle: set[str] = set()

    def close(self) -> None:
        """Let go of the streams that are open."""
        for session in list(self._watches):
            self._unwatch(session)

    # What a turn asks ------------------------------------------------------------------------------------------------

    def start(self, request: Start, listener: Listener) -> Step:
        """Send a message: with a new session, or on one that is idle."""
        if request.conversation is None:
            session = self._create(request, listener)
        else:
            session = request.conversation
            self._say(request, session, listener)
        return self._follow(session, listener, ())

    def submit(self, request: Submit, listener: Listener) -> Step:
        """Send each outcome by itself, then wait for what comes of them; without outcomes, only wait."""
        session = request.conversation
        if session not in self._watches:
            # Nothing is said twice on a stream, so it is opened before there is anything to say.
            self._watch(session, whole=False).belongs_to(request.asked_by)
        failed: AgentfnError | None = None
        for call, outcome in request.outcomes:
            try:
                self._posting.answer(session, request.asked_by, call, outcome, listener)
            except AgentfnError as exc:
                failed = failed or exc  # the others' outputs are not lost with it
        if failed is not None:
            self._unwatch(session)
            raise failed
        return self._follow(session, listener, tuple(call.id for call, _ in request.outcomes), ask=not request.outcomes)

    def look(self, conversation: str, message: str | None = None, earlier_same: int = 0) -> Look:
        """Read how a session stands, and whether a message arrived."""
        session, now = self._reading.session(conversation)
        if session is None:
            return Look(exists=False)
        arrived, answered = True, frozenset[str]()
        if message is not None:
            found = self._reading.items(conversation)
            arrived = sum(shapes.is_user_message(i) and shapes.message_text(i) == message for i in found) > earlier_same
            answered = frozenset(str(i.get("call_id")) for i in found if i.get("type") == "function_call_output")
        waits = _waiting_step(session, now, ())
        step = waits
        if step is None and session.get("status") in ENDS:
            step = self._ended(conversation, session, now, None)
        return Look(
            exists=True,
            waiting=waits.calls if waits is not None else (),
            answered=answered,
            step=step,
            agent=shapes.agent_of(session),
            arrived=arrived,
            running=step is None,
        )

    def cancel(self, session: str) -> None:
        """Cancel what runs in a session; nothing happens where nothing does."""
        patience = self._service.channel.patience()
        event = {"type": "agent.session.input.cancel"}
        lost = self._posting.post(
            session, event, key_of(session, "cancel", str(self._clock())), patience, "cancelling the turn"
        )
        if lost is not None:
            raise self._reading.lost(lost.told)

    def forget(self, session: str) -> None:
        """Let go of a session that is about to be removed."""
        self._unwatch(session)
        self._idle.discard(session)

    def items(self, conversation: str) -> list[Item] | None:
        """Return a session's items, oldest first; None where there is no such session."""
        pages = list(
            self._service.pages(f"{path_of(conversation)}/items", f"reading session {conversation}", order="asc")
        )
        return [item for page in pages for item in page.entries] if pages else None

    # Messages --------------------------------------------------------------------------------------------------------

    def _create(self, request: Start, listener: Listener) -> str:
        """Open a session with its first message; one whose answer got lost is found by its stamp, and not made twice."""
        body: Item = {
            "environment": {"type": "none"},
            "agent_id": request.agent.version,
            "input": request.message,
            "metadata": request.stamp.metadata(),
            "stream": True,
            "stream_options": {"include_obfuscation": False},
        }
        patience = self._service.channel.patience(listener.retrying)
        looks = 0
        while True:
            try:
                watch = Watch(self._open("POST", SESSIONS, body), self._clock, whole=True)
            except RefusedError as exc:
                error = self._service.refusal(exc.reply, "opening a session")
                if not is_not_now(exc.reply):
                    raise error from exc
                patience.wait(told_status(exc.reply), exc.reply.headers, error, status=exc.reply.status)
                continue
            except NotSentError as exc:
                patience.wait(exc.reason, {}, exc.error, most=2)
                continue
            except UnknownFateError as exc:
                lost = exc
            else:
                created = watch.until_created(listener)
                if created is not None:
                    if watch.streams:
                        self._watches[created] = watch
                    return created
                lost = UnknownFateError("the connection broke before the session was named")
            found, looks = None, 0
            while found is None and looks < LOOKS_FOR_SESSION:
                # Wait before looking: the service may still be at it, and its list lags behind.
                patience.wait(lost.reason, lost.headers, self._reading.lost(lost.told))
                found, looks = self._reading.stamped(request.stamp.token), looks + 1
            if found is not None:
                listener.conversation_opened(found)
                return found

    def _say(self, request: Start, session: str, listener: Listener) -> None:
        """Send a message on a session that is there already."""
        if session not in self._idle:
            self._require_idle(session)
        self._idle.discard(session)
        self._watch(session, whole=True, said=request.message).earlier_same = request.earlier_same
        patience = self._service.channel.patience(listener.retrying)
        event = shapes.message_event(request.message)
        key = key_of(session, request.turn, "message")
        while True:
            lost = self._posting.post(session, event, key, patience, "sending the message")
            if lost is None:
                return
            patience.wait(lost.reason, lost.headers, self._reading.lost(lost.told))
            if self.look(session, request.message, request.earlier_same).arrived:
                return
            # It is not there: the same bytes with the same key, by which the service would know them again.

    def _require_idle(self, session: str) -> None:
        """Refuse to speak into a running turn: the service would take it as part of that turn."""
        found, _ = self._reading.session(session)
        if found is None:
            raise self._reading.absent(session)
        calls = shapes.calls_in(found)
        if calls:
            told = ", ".join(f"{call.id} {call.function}" for _, call in calls)
            raise PendingError(
                f"session {session} waits for outputs: {told}; nothing was sent",
                code="unanswered_call",
                hint=f"agentfn respond {session}",
            )
        others = shapes.others_in(found)
        if others:
            told = "; ".join(f"{action.type} {action.id}: {action.advice}" for action in others)
            raise PendingError(f"session {session} waits for {told}; nothing was sent", code="other_action")
        if found.get("status") == "in_progress":
            hint = f"wait until it is done: agentfn pending {session}"
            raise ServiceError(f"session {session} is busy with another turn", code="conversation_locked", hint=hint)

    # Watching --------------------------------------------------------------------------------------------------------

    def _open(self, method: str, path: str, body: Item | None = None) -> Any:
        return self._service.channel.stream(method, path, body=body, silence=SILENCE_SECONDS)

    def _watch(self, session: str, *, whole: bool, said: str | None = None) -> Watch:
        """Open the session's stream; raise where that cannot be done."""
        self._unwatch(session)
        try:
            events = self._open("GET", f"{path_of(session)}/events?{_NO_OBFUSCATION}")
        except RefusedError as exc:
            if exc.reply.status == 404:  # noqa: PLR2004  # HTTP's own number
                raise self._reading.absent(session) from exc
            raise self._service.refusal(exc.reply, f"watching session {session}") from exc
        except NotSentError as exc:
            raise exc.error from exc
        except UnknownFateError as exc:
            raise self._reading.lost(exc.told) from exc
        watch = Watch(events, self._clock, whole=whole, said=said)
        self._watches[session] = watch
        return watch

    def _unwatch(self, session: str) -> None:
        watch = self._watches.pop(session, None)
        if watch is not None:
            watch.close()

    def _follow(self, session: str, listener: Listener, sent: tuple[str, ...], *, ask: bool = False) -> Step:
        """Watch a session until calls wait or its turn is over. `sent` are calls that were just answered.

        `ask` looks at the session before anything is waited for, since what is waited for may have happened already.
        """
        watch = self._watches.get(session)
        if watch is None:
            # It was found by its stamp: what happened meanwhile nobody will say again.
            watch, ask = self._watch(session, whole=False), True
        patience = self._service.channel.patience(listener.retrying)
        stop = Stop("quiet") if ask else watch.until_stop(listener)
        while True:
            found, now = stop.session, watch.now
            if stop.kind == "cut":
                patience.wait(stop.reason, {}, self._reading.lost(stop.reason))
                watch = self._rewatch(session, watch)
            if found is None or (_lists_only(found, sent) and not shapes.others_in(found)):
                found, now = self._reading.session(session)
            if found is None:
                raise self._reading.absent(session)
            # 202 means accepted, so the session may still be idle from before: our message must be there first.
            if found.get("status") in ENDS and (watch.turn or watch.said is None or self._has_begun(session, watch)):
                return self._ended(session, found, now, watch)
            step = _waiting_step(found, now, sent)
            if step is not None:
                return step
            if watch.deaf_seconds > DEAF_SECONDS:
                raise self._reading.lost(f"nothing was heard of session {session} for {DEAF_SECONDS:.0f} s")
            if stop.kind == "quiet":
                listener.waited()
            stop = watch.until_stop(listener)

    def _has_begun(self, session: str, watch: Watch) -> bool:
        """Tell whether the message that a stream was opened for has a turn, and take note of it."""
        items = self._reading.items(session)
        turns = [i.get("turn_id") for i in items if shapes.is_user_message(i) and shapes.message_text(i) == watch.said]
        if len(turns) <= watch.earlier_same:
            return False
        watch.belongs_to(str(turns[-1]))
        return True

    def _rewatch(self, session: str, old: Watch) -> Watch:
        """Open the stream again after it broke; what was missed is read from the session and its items."""
        turn = str(old.turn.get("id") or "")
        self._watches.pop(session, None)
        old.close()
        watch = self._watch(session, whole=False)
        if turn:
            watch.belongs_to(turn)
        return watch

    def _ended(self, session: str, found: Item, now: float, watch: Watch | None) -> Step:
        """Return the end of the turn: from what was seen where all of it was, else from the service."""
        if watch is not None:
            self._idle.add(session)
            self._unwatch(session)
        turn = watch.turn if watch is not None else {}
        if watch is not None and watch.whole and turn.get("status"):
            messages = watch.messages()
        else:
            turn = self._reading.turn(session, str(turn.get("id") or ""))
            messages = self._reading.items(session, str(turn.get("id") or "")) if turn else []
        failure = shapes.failure_of(turn) if turn else None
        if found.get("status") != "idle" and failure is None:
            failure = str(found.get("error") or (watch.error if watch is not None else None) or found.get("status"))
        return Step(
            id=str(turn.get("id") or session),
            created_at=float(turn.get("created_at") or now),
            service_now=now,
            answer=None if failure is not None else shapes.answer_in(messages),
            failure=None if failure is None else self._service.channel.mask(failure),
            usage=shapes.usage_of(turn),
        )


def _waiting_step(session: Item, now: float, sent: tuple[str, ...]) -> Step | None:
    """Return the calls that a session waits for, less those just answered; None where nothing waits."""
    waiting = [(turn, call) for turn, call in shapes.calls_in(session) if call.id not in sent]
    others = shapes.others_in(session)
    if not waiting and not others:
        return None
    turn = (
        waiting[0][0]
        if waiting
        else next((str(a["turn_id"]) for a in shapes.actions_in(session) if a.get("turn_id")), "")
    )
    asked_at = float(session.get("last_active_at") or now)
    return Step(
        id=turn or str(session.get("id") or ""),
        created_at=asked_at,
        service_now=max(now, asked_at),  # a stream tells the clock of its start
        calls=tuple(call for where, call in waiting if where == turn),
        actions=others,
    )


def _lists_only(session: Item, sent: tuple[str, ...]) -> bool:
    """Tell whether a snapshot lists nothing but what was just answered: it was taken before that."""
    calls = shapes.calls_in(session)
    return bool(calls) and all(call.id in sent for _, call in calls)

"""Runs a turn: send the message, settle the calls that come, send their outcomes, until the agent has its say."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

from agentfn.backends.protocol import Start, Submit
from agentfn.errors import BusyError, NegativeError, NotAuthorisedError, PendingError, ServiceError
from agentfn.journal.calls import Calls
from agentfn.journal.turns import Turn, Turns
from agentfn.model import Call, Outcome, Stamp, Step, Usage
from agentfn.turn.answers import is_open
from agentfn.turn.limits import TIME_OVER, Limits
from agentfn.turn.refusals import dead_end, require_answered
from agentfn.turn.settle import Settler
from agentfn.turn.state import TurnResult, usage_report
from agentfn.turn.telling import Telling
from agentfn.turn.waiting import look_again, opening_lock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agentfn.locks import FileLock
    from agentfn.turn.session import Session


#: What services promise of a call id (foundry.md §8); a longer one is used as it is, with a warning.
LONGEST_CALL_ID = 64


class _Listener:
    """Turns what a backend reports into events, and writes a new conversation's id down at once."""

    def __init__(self, loop: TurnLoop) -> None:
        self._loop = loop

    def conversation_opened(self, conversation: str) -> None:
        self._loop.opened(conversation)

    def turn_opened(self, turn: str) -> None:
        self._loop.named(turn)

    def call_asked(self, call: Call) -> None:
        self._loop.telling.call(call)

    def text(self, delta: str) -> None:
        self._loop.telling.text(delta)

    def noticed(self, told: str) -> None:
        self._loop.telling.tell("notice", message=told)

    def retrying(self, reason: str, seconds: float) -> None:
        self._loop.telling.retrying(reason, seconds)

    def waited(self) -> None:
        self._loop.require_time()


def new_id(prefix: str) -> str:
    """Return an id of ours, such as ``turn_3f…``."""
    return f"{prefix}_{uuid.uuid4().hex}"


class TurnLoop:
    """Runs one turn of a session; used once."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.turn = ""
        self._turns = Turns(session.journal)
        self._stamp: Stamp | None = None
        self._lock: FileLock | None = None
        self._opening: FileLock | None = None
        self._usage = Usage()
        self._limits = Limits(session)
        self.telling = Telling(session)
        self._maybe_sent = False
        self._message = ""

    def start(self, message: str) -> TurnResult:
        """Send a message and run the turn as far as it goes.

        Raises PendingError where a call of the conversation still waits, before anything is sent, and what the backend
        raises; a message that is refused leaves a failed turn behind, one whose fate is unknown an open one.
        """
        session = self.session
        with self._claimed():
            earlier = self._require_idle() if session.conversation.id else []
            self.turn = new_id("turn")
            new = not session.conversation.id
            self._stamp = Stamp(session.run, new_id("rsc")) if new else None
            if new:
                self._opening = opening_lock(session.journal, self.turn)
                self._opening.acquire()
            self._turns.begin(session.conversation, self.turn, message, self._stamp)
            self._message = message
            if not session.backend.names_turns:
                self.telling.started(self.turn, message)
            request = Start(
                agent=session.conversation.ref,
                message=message,
                turn=self.turn,
                conversation=session.conversation.id or None,
                stamp=self._stamp or Stamp(session.run, new_id("rsc")),
                earlier_same=sum(t.message == message and t.arrived for t in earlier),
                stream=session.stream,
            )
            with self._failures():
                step = self._sent(request)
            if session.backend.names_turns:
                self.named(step.id)
            return self._drive(step, {})

    def _sent(self, request: Start) -> Step:
        """Send the message; where the service waits for what it will never take, say so."""
        try:
            return self.session.backend.start(request, _Listener(self))
        except PendingError as exc:
            dead = dead_end(self.session.journal, self.session.conversation)
            if dead is None:
                raise
            raise dead from exc

    def resume(self, turn: Turn, given: Mapping[str, Outcome]) -> TurnResult:
        """Carry a turn on with these outcomes, by call id, and with what else can be settled now.

        Outcomes that may have been sent already are looked for at the service first.
        """
        with self._claimed():
            self.turn = self.telling.turn = turn.id
            self._usage = turn.usage
            self._require_open(turn, given)
            with self._failures():
                step = self._standing(turn)
            return self._drive(step, given, again=True)

    def _require_open(self, turn: Turn, given: Mapping[str, Outcome]) -> None:
        """Refuse outcomes of calls that somebody else answered while we waited for the conversation."""
        calls = Calls(self.session.journal, self.session.conversation, turn.id)
        rows = {row.id: row for row in calls.unsettled()}
        for call, outcome in given.items():
            row = rows.get(call)
            if row is None or (not is_open(row) and row.outcome != outcome):
                raise NegativeError(
                    f"call {call} was answered by another process meanwhile; this outcome was not used",
                    code="call_answered",
                    hint=f"agentfn log {self.session.conversation.id} shows what the agent was told",
                )

    def opened(self, conversation: str) -> None:
        """Take note of a conversation that the service has just opened."""
        session = self.session
        session.conversation = session.conversation._replace(id=conversation, at=session.clock())
        if self._stamp is not None:
            self._turns.opened(session.conversation, self.turn, self._stamp.token)
        self._claim()
        self._end_opening()

    def _end_opening(self) -> None:
        if self._opening is not None:
            # Whoever waits for it finds the turn opened, or over.
            self._opening.discard()
            self._opening = None

    def named(self, turn: str) -> None:
        """Use the service's own id of the turn in place of ours, from now on and everywhere."""
        if turn != self.turn:
            self._turns.renamed(self.turn, turn)
            self.turn = turn
        if self.telling.turn != turn:
            self.telling.started(turn, self._message)

    def _require_idle(self) -> list[Turn]:
        """Return the conversation's earlier turns; raise PendingError where one of them still waits."""
        session = self.session
        for turn in self._turns.of(session.conversation):
            if turn.state == "intended":
                # We were stopped before an answer came: what became of the message is asked now.
                look_again(session.journal, session.backend, session.conversation, turn)
        require_answered(session.journal, session.conversation)
        return self._turns.of(session.conversation)

    def _standing(self, turn: Turn) -> Step:
        """Return the step at which the turn stands: from the journal, or from the service where only that knows."""
        session = self.session
        rows = Calls(session.journal, session.conversation, turn.id).unsettled()
        now = session.clock() + turn.skew
        if rows and turn.asked_by is not None:
            self._maybe_sent = any(row.state == "sent" for row in rows)
            calls = tuple(row.call for row in rows)
            return Step(turn.asked_by, turn.asked_at or now, now, calls)
        look = look_again(session.journal, session.backend, session.conversation, turn)
        if look.arrived and look.running:
            where = session.conversation
            # Without outcomes it waits for what comes.
            return session.backend.submit(
                Submit(where.ref, where.id, turn.id, turn.asked_by or "", ()), _Listener(self)
            )
        if look.step is None or not look.arrived:
            raise NegativeError(
                f"the message of {turn.id} never reached {session.conversation.id}, or nothing came of it",
                code="turn_lost",
                hint=f"say it again: agentfn chat AGENT -c {session.conversation.id}",
            )
        return look.step._replace(calls=look.waiting)

    def _drive(self, step: Step, given: Mapping[str, Outcome], *, again: bool = False) -> TurnResult:
        """Settle a step and send its outcomes until the turn is over; `again` says that the step was met before."""
        session = self.session
        calls = Calls(session.journal, session.conversation, self.turn)
        lock = self._lock.fileno() if self._lock else None
        settler = Settler(session, self.turn, calls, lock, self._limits.until)
        rounds = 0
        while True:
            if step.usage is not None:
                self._usage = self._usage.plus(step.usage)
            if not step.calls:
                return self._finish(step, calls)
            self._require_distinct(step)
            calls.asked(step, settler.problems(step), self._usage, looked=again)
            again = False
            self._announce(step)
            limit = self._limits.hit(rounds)
            if limit is not None:
                return self._stop(step, calls, limit)
            outcomes = settler.settle(step, given)
            if len(outcomes) < len(step.calls):
                return self._pending(step, calls)
            step = self._submit(step, outcomes, calls)
            rounds += 1

    def _submit(self, step: Step, outcomes: Mapping[str, Outcome], calls: Calls) -> Step:
        session = self.session
        calls.set_state([call.id for call in step.calls], "sent")
        request = Submit(
            agent=session.conversation.ref,
            conversation=session.conversation.id,
            turn=self.turn,
            asked_by=step.id,
            outcomes=tuple((call, outcomes[call.id]) for call in step.calls),
            stream=session.stream,
            maybe_sent=self._maybe_sent,
        )
        self._maybe_sent = False
        self.telling.sending(step.calls)
        with self._failures():
            answer = session.backend.submit(request, _Listener(self))
        self.telling.sent()
        return answer

    def _require_distinct(self, step: Step) -> None:
        """Refuse a step in which one call id names two calls: no output could be told from the other's."""
        by_id: dict[str, list[str]] = {}
        for call in step.calls:
            by_id.setdefault(call.id, []).append(call.function)
        for call_id, functions in by_id.items():
            if len(functions) > 1:
                reason = f"call_id {call_id} used by {' and '.join(functions)}"
                self._turns.failed(self.turn, reason)
                self.telling.tell("turn.failed", reason=reason)
                raise NegativeError(
                    f"{reason}; no handler was run, since their outputs could not be told apart",
                    code="duplicate_call_id",
                    hint="start a new conversation: agentfn chat AGENT",
                )

    def require_time(self) -> None:
        """Raise PendingError where the turn's time is over; it stays open, and a later look finds what became of it."""
        over = self._limits.over_time()
        if over is not None:
            raise PendingError(over, code=TIME_OVER, hint="agentfn pending shows how it stands")

    def _announce(self, step: Step) -> None:
        self.telling.confirmed(step.calls)
        for call in step.calls:
            if len(call.id) > LONGEST_CALL_ID:
                self.telling.tell(
                    "warning", call=call.id, message=f"call id {call.id} is longer than {LONGEST_CALL_ID}"
                )
            again = self._limits.count(call)
            if again is not None:
                self.telling.tell("warning", call=call.id, message=again)

    def _finish(self, step: Step, calls: Calls) -> TurnResult:
        if step.actions and step.answer is None and step.failure is None:
            return self._pending(step, calls)
        self._turns.ended(self.turn, step, self._usage)
        if step.failure is not None:
            self.telling.tell("turn.failed", reason=step.failure)
        else:
            self.telling.tell("turn.finished", answer=step.answer, usage=usage_report(self._usage))
        return self._result("failed" if step.failure is not None else "ended", step, calls)

    def _pending(self, step: Step, calls: Calls) -> TurnResult:
        result = self._result("pending", step, calls)
        self.telling.tell("turn.pending", calls=[row.id for row in result.waiting])
        return result

    def _stop(self, step: Step, calls: Calls, limit: str) -> TurnResult:
        self.telling.tell("turn.failed", reason=limit)
        return self._result("pending", step, calls)._replace(limit=limit)

    def _result(self, state: str, step: Step, calls: Calls) -> TurnResult:
        rows = tuple(calls.all())
        asked = {call.id for call in step.calls}
        waiting = tuple(row for row in rows if row.id in asked and (row.outcome is None or row.problem))
        return TurnResult(
            state=state,  # type: ignore[arg-type]  # one of the three, from the callers above
            turn=self.turn,
            conversation=self.session.conversation,
            answer=step.answer,
            failure=step.failure,
            calls=rows,
            waiting=waiting if state == "pending" else (),
            actions=step.actions,
            usage=self._usage,
        )

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Close the turn where a refusal is final; where its fate is unknown it stays open, to be looked at again."""
        try:
            yield
        except NegativeError as exc:
            self._turns.failed(self.turn, exc.message, "expired" if exc.code == "expired" else "superseded")
            self.telling.tell("turn.failed", reason=exc.message)
            raise
        except (ServiceError, NotAuthorisedError, PendingError) as exc:
            self.telling.tell("turn.failed", reason=exc.message)
            if not self._may_have_arrived(exc):
                self._turns.failed(self.turn, exc.message)
            raise

    def _may_have_arrived(self, exc: Exception) -> bool:
        """Tell whether the turn can still go on: its calls have outcomes to send, or its message may be there."""
        if Calls(self.session.journal, self.session.conversation, self.turn).unsettled():
            return True
        return bool(self.session.conversation.id) and getattr(exc, "status", 400) is None

    @contextmanager
    def _claimed(self) -> Iterator[None]:
        """Hold the conversation for this turn; the lock dies with the process that holds it."""
        try:
            self._claim()
            yield
        finally:
            self._end_opening()
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    def _claim(self) -> None:
        session = self.session
        if not session.conversation.id or self._lock is not None:
            return
        lock = session.journal.lock(session.conversation.key)
        if not lock.acquire(session.wait):
            raise BusyError(
                f"conversation {session.conversation.id}: {lock.holder()} is at work in it",
                hint=f"wait for it: --wait 60, or see what it does: agentfn pending {session.conversation.id}",
            )
        self._lock = lock

"""One attempt at a case: its turns, one after another in a conversation of its own, and what happened in them."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from agentfn.cases.happened import Attempt, HappenedTurn, happened_calls
from agentfn.cases.running.place import RefusedError
from agentfn.cases.stubs import Overruled, StubHandler, stub_handlers
from agentfn.definition.digest import digest
from agentfn.errors import AgentfnError, NegativeError, PendingError
from agentfn.handlers import build_handlers
from agentfn.journal.calls import Calls
from agentfn.journal.turns import Turns
from agentfn.turn.approvals import Verdict
from agentfn.turn.limits import TIME_OVER
from agentfn.turn.loop import TurnLoop
from agentfn.turn.session import Policy, Session, new_conversation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agentfn.cases.case import Case, Stub, TurnSpec
    from agentfn.cases.expect.failure import Failure
    from agentfn.cases.running.place import Ground, Surroundings
    from agentfn.handlers.protocol import Handler
    from agentfn.journal.turns import Conversation
    from agentfn.model import Call, Outcome
    from agentfn.turn.events import Event


class Stopped(BaseException):
    """The run is being stopped, so this attempt is given up at its next event."""


class Watch:
    """What the workers and whoever started them tell each other: that all must stop, and that the service is strained."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self._strained = 0
        self._lock = threading.Lock()

    def heard(self, event: Event) -> None:
        """Take an event of any attempt; a request that had to be repeated asks for less at a time."""
        if self.stop.is_set():
            raise Stopped
        if event.type == "request.retried":
            with self._lock:
                self._strained += 1

    def take_strain(self) -> int:
        """Return how often requests were repeated since this was last asked."""
        with self._lock:
            strained, self._strained = self._strained, 0
        return strained


class _CaseAnswerer:
    """Stands where a person would: lets calls run that the case itself answers, and leaves all others pending."""

    def __init__(self, stubs: Mapping[str, StubHandler]) -> None:
        self._stubs = stubs

    def answer(self, call: Call, problem: str | None) -> Outcome | None:
        """Leave the call pending."""
        del call, problem
        return None

    def approve(self, call: Call, runs: str, problem: str | None) -> Verdict | None:
        """Let a given output be used; nothing runs for it."""
        del runs, problem
        return Verdict(allowed=True, by="the case") if call.function in self._stubs else None


class Runner(NamedTuple):
    """What attempts have in common. `replace` gives handlers of a recording in place of the agent's."""

    surroundings: Surroundings
    watch: Watch
    replace: Callable[[Case, int], dict[str, Handler]] | None = None

    def run(self, case: Case, number: int, ground: Ground) -> Attempt:
        """Run an attempt to its end; what keeps it from running is its `error`. Raises Stopped."""
        begun = time.monotonic()
        work = _Work(self, case, number, ground)
        error: AgentfnError | None = None
        refused: Failure | None = None
        try:
            ground.begin(case, number)
            work.run()
            if work.is_over:
                ground.finished()
        except RefusedError as exc:
            refused = exc.failure
        except AgentfnError as exc:
            error = exc
        finally:
            ground.end(case, number, work.conversation)
        return Attempt(
            number=number,
            turns=tuple(work.turns),
            seconds=time.monotonic() - begun,
            conversation=work.conversation,
            error=error,
            refused=refused,
            unused=tuple(s.stub.function for s in work.stubs if s.stub.required and not s.asked),
            unanswered=tuple(s.stub.function for s in work.stubs if s.unanswered),
        )


class _Work:
    """An attempt under way."""

    def __init__(self, runner: Runner, case: Case, number: int, ground: Ground) -> None:
        self._runner = runner
        self._case = case
        self._number = number
        self._ground = ground
        self.turns: list[HappenedTurn] = []
        self.stubs: list[StubHandler] = []
        self._events: list[Event] = []
        self._session: Session | None = None

    @property
    def conversation(self) -> str:
        return self._session.conversation.id if self._session is not None else ""

    @property
    def is_over(self) -> bool:
        """Tell whether every turn came to its end."""
        return len(self.turns) == len(self._case.turns) and all(turn.state == "ended" for turn in self.turns)

    def run(self) -> None:
        case, surroundings = self._case, self._runner.surroundings
        handlers: dict[str, Handler] = {}
        replaced = self._runner.replace(case, self._number) if self._runner.replace is not None else {}
        if case.handlers and self._runner.replace is None:
            # What the case answers itself needs no handler, so that one which cannot start here does no harm.
            stubbed = set(case.outputs).union(*(turn.outputs for turn in case.turns))
            tools = [tool for tool in case.agent.functions if tool.name not in stubbed]
            handlers |= build_handlers(case.agent, tools, env=surroundings.env, masker=surroundings.masker)
        given = self._stubs(case.outputs)
        ref = self._ground.agent(case.agent)
        begun = new_conversation(self._ground.backend, case.agent, ref, digest(case.agent), surroundings.run)
        for spec in case.turns:
            answering = {**given, **self._stubs(spec.outputs)}
            if self._session is None:
                self._session = self._open(begun)
            overruled = {name: Overruled(stub, replaced[name]) for name, stub in answering.items() if name in replaced}
            self._session.handlers = handlers | answering | replaced | overruled
            self._session.answerer = _CaseAnswerer(answering)
            if not self._turn(spec):
                return

    def _stubs(self, outputs: Mapping[str, Stub]) -> dict[str, StubHandler]:
        surroundings = self._runner.surroundings
        made = stub_handlers(outputs.values(), self._case.agent, surroundings.env, surroundings.masker)
        self.stubs += made.values()
        return made

    def _open(self, begun: Conversation) -> Session:
        case, limits = self._case, self._case.limits
        return Session(
            backend=self._ground.backend,
            journal=self._ground.journal,
            conversation=begun,
            agent=case.agent,
            run=self._runner.surroundings.run,
            emit=self._emit,
            rules=case.approve,
            policy=Policy(rounds=limits.rounds, calls=limits.calls, identical=limits.identical, seconds=limits.seconds),
            clock=self._runner.surroundings.clock,
        )

    def _emit(self, event: Event) -> None:
        self._events.append(event)
        self._ground.heard(event)
        self._runner.watch.heard(event)

    def _turn(self, spec: TurnSpec) -> bool:
        """Run a turn and note what happened; tell whether the conversation can go on."""
        session = self._session
        assert session is not None  # noqa: S101  # the caller made it
        self._events = []
        begun = time.monotonic()
        number = len(self.turns) + 1
        try:
            result = TurnLoop(session).start(spec.input)
        except (NegativeError, PendingError) as exc:
            self.turns.append(self._broken_off(spec, number, exc, time.monotonic() - begun))
            return False
        except AgentfnError as exc:
            if self._events:
                self.turns.append(self._broken_off(spec, number, exc, time.monotonic() - begun))
            raise
        seconds = time.monotonic() - begun
        limit = result.limit
        if limit is None and seconds > self._case.limits.seconds:
            # Nothing ends a request that is under way, so the service was waited for.
            limit = f"turn limit {self._case.limits.seconds:g} s reached (time): it took {seconds:.1f} s"
        self.turns.append(
            HappenedTurn(
                message=spec.input,
                state=result.state,
                answer=result.answer,
                failure=limit or result.failure,
                limit=limit,
                calls=happened_calls(result.calls, number),
                usage=result.usage if any(result.usage) else None,
                seconds=seconds,
                events=tuple(self._events),
            )
        )
        return result.state == "ended"

    def _broken_off(self, spec: TurnSpec, number: int, exc: AgentfnError, seconds: float) -> HappenedTurn:
        """Return what is known of a turn that ended in an exception."""
        session = self._session
        assert session is not None  # noqa: S101  # the turn had one
        rows = Turns(session.journal).of(session.conversation) if session.conversation.id else []
        calls = tuple(Calls(session.journal, session.conversation, rows[-1].id).all()) if len(rows) >= number else ()
        return HappenedTurn(
            message=spec.input,
            state="pending" if isinstance(exc, PendingError) else "failed",
            answer=None,
            failure=exc.message,
            calls=happened_calls(calls, number),
            usage=None,
            seconds=seconds,
            events=tuple(self._events),
            limit=exc.message if exc.code == TIME_OVER else None,
        )

"""Finds an outcome for each call of a step: given, remembered, computed by a handler, or asked of a person."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from agentfn.definition.agent import FunctionTool
from agentfn.document.check import instance_problems
from agentfn.handlers.arguments import check_arguments
from agentfn.handlers.outputs import size_problem
from agentfn.handlers.protocol import CallContext, Handler, Result
from agentfn.model import Call, Json, Outcome, Step
from agentfn.turn.approvals import Verdict, what_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from agentfn.journal.calls import CallRow, Calls
    from agentfn.turn.session import Session

#: Handlers of one step that run at the same time.
PARALLEL = 8


class _Ready(NamedTuple):
    """A call that may run now, with its checked arguments and its handler."""

    call: Call
    arguments: Mapping[str, Json]
    handler: Handler


class Settler:
    """Settles the calls of one turn; the journal knows every outcome before it is used."""

    def __init__(self, session: Session, turn: str, calls: Calls, lock: int | None, until: float) -> None:
        self._until = until
        self._session = session
        self._turn = turn
        self._calls = calls
        self._inherit = () if lock is None else (lock,)

    def problems(self, step: Step) -> dict[str, str]:
        """Return what is wrong with the arguments or names of a step's calls, by call id."""
        found = {}
        for call in step.calls:
            problem = self._check(call)[1]
            if problem is not None:
                found[call.id] = problem
        return found

    def settle(self, step: Step, given: Mapping[str, Outcome]) -> dict[str, Outcome]:
        """Return the outcomes of as many of the step's calls as can be settled now, by call id."""
        # All of the turn's calls: one that is asked for again under its id gets the outcome that it has.
        rows = {row.id: row for row in self._calls.all()}
        outcomes = {call.id: given[call.id] for call in step.calls if call.id in given}
        self._store({call: outcome for call, outcome in outcomes.items() if not _same(rows.get(call), outcome)})
        ready: list[_Ready] = []
        ask: list[tuple[Call, str | None]] = []
        for call in step.calls:
            row = rows.get(call.id)
            if call.id in outcomes:
                continue
            if row is not None and row.outcome is not None:
                outcomes[call.id] = row.outcome
            elif row is None or not self._in_doubt(row) or self._is_settled(row, step, outcomes):
                self._decide(call, row, ready, ask, outcomes)
        outcomes |= self._run(ready, step)
        for call, problem in ask:
            outcome = self._session.answerer.answer(call, problem)
            if outcome is not None:
                self._store({call.id: outcome})
                outcomes[call.id] = outcome
        return self._within_limits(outcomes)

    def _tool(self, function: str) -> FunctionTool | None:
        return self._session.agent.function(function) if self._session.agent else None

    def _check(self, call: Call) -> tuple[Mapping[str, Json] | None, str | None]:
        agent = self._session.agent
        if agent is None or call.function in self._session.unfit:
            # What the service holds is not known here, so only the form of the arguments can be checked.
            tool = FunctionTool(name=call.function, description=None, parameters={})
            known: tuple[str, ...] = (call.function,)
        else:
            tool, known = agent.function(call.function), tuple(t.name for t in agent.functions)  # type: ignore[assignment]
        checked = check_arguments(call, tool, known)
        for warning in checked.warnings:
            self._session.tell("warning", call=call.id, message=warning)
        return checked.arguments, checked.problem

    def _in_doubt(self, row: CallRow) -> bool:
        """Tell whether it is unknown if this call ran: it started, its holder is gone, and no outcome was stored."""
        if row.state != "started":
            return False
        tool = self._tool(row.function)
        return not (tool is not None and tool.idempotent)

    def _is_settled(self, row: CallRow, step: Step, outcomes: dict[str, Outcome]) -> bool:
        """Let a tool's verify command settle a doubt; tell whether the call did not run, and so may run now."""
        verifier = self._session.verifiers.get(row.function)
        arguments = self._check(row.as_run)[0]
        if verifier is None or arguments is None:
            return False
        verdict = verifier.check(arguments, self._context(row.call, step))
        if verdict.did_not_run:
            self._session.tell("notice", call=row.id, message=f"{row.function} had not run, says its verify command")
            self._calls.set_state([row.id], "waiting")
            return True
        if verdict.result is None:
            self._session.tell("warning", call=row.id, message=f"{row.function} stays in doubt: {verdict.told}")
            return False
        outcomes[row.id] = verdict.result.outcome
        self._store({row.id: verdict.result.outcome})
        self._tell_finished(row.call, verdict.result)
        return False

    def _decide(
        self,
        call: Call,
        row: CallRow | None,
        ready: list[_Ready],
        ask: list[tuple[Call, str | None]],
        outcomes: dict[str, Outcome],
    ) -> None:
        session = self._session
        arguments, problem = self._check(call)
        if problem is not None or arguments is None:
            if session.policy.run and session.policy.tell_problems:
                outcomes[call.id] = Outcome(error=problem)
                self._store({call.id: outcomes[call.id]})
            else:
                ask.append((call, problem))
            return
        handler = session.handlers.get(call.function, session.default_handler)
        if handler is None or not session.policy.run or session.policy.only not in (None, call.id):
            ask.append((call, None))
            return
        approved = self._approval(call, row, arguments)
        if isinstance(approved, Verdict):
            session.tell("call.denied", call=call.id, function=call.function, reason=approved.reason)
            outcomes[call.id] = Outcome(error=f"the user declined this call: {approved.reason}")
            self._store({call.id: outcomes[call.id]})
        elif approved is not None:
            ready.append(_Ready(call, approved, handler))
        else:
            told = f"{call.function} waits for approval: respond --run on a terminal, or --approve FILE"
            session.tell("warning", call=call.id, message=told)

    def _approval(
        self, call: Call, row: CallRow | None, arguments: Mapping[str, Json]
    ) -> Mapping[str, Json] | Verdict | None:
        """Return the arguments to run a call with, the verdict that it may not run, or None for "leave it pending"."""
        tool = self._tool(call.function)
        if tool is None or tool.ask == "never":
            return arguments
        if isinstance(tool.ask, dict) and not instance_problems(dict(arguments), tool.ask["unless"]):
            return arguments
        if row is not None and row.verdict is not None:
            # Decided by a process that was stopped before it could act on it.
            decided = self._check(row.as_run)[0]
            return decided if row.verdict == "yes" else Verdict(allowed=False, by="earlier", reason="no reason kept")
        verdict, checked = self._asked(call, tool, arguments)
        if verdict is None:
            return None
        self._calls.decided(call, "yes" if verdict.allowed else "no", verdict.by, verdict.arguments)
        if not verdict.allowed:
            return verdict
        self._session.tell("call.approved", call=call.id, function=call.function, by=verdict.by)
        return checked

    def _asked(
        self, call: Call, tool: FunctionTool, arguments: Mapping[str, Json]
    ) -> tuple[Verdict | None, Mapping[str, Json]]:
        """Return the decision on a call and the arguments it is about; edited ones are checked like the model's."""
        session = self._session
        verdict = session.rules.decide(call.function, arguments)
        runs, problem = what_runs(tool if call.function in session.handlers else None), None
        while verdict is None:
            given = session.answerer.approve(call, runs, problem)
            if given is None or given.arguments is None:
                return given, arguments
            checked, problem = self._check(call._replace(arguments=given.arguments))
            if checked is not None and problem is None:
                return given, checked
        return verdict, arguments

    def _run(self, ready: list[_Ready], step: Step) -> dict[str, Outcome]:
        """Run handlers side by side; each outcome is durable before the next thing happens."""
        if not ready:
            return {}
        self._calls.started([item.call.id for item in ready])
        for item in ready:
            self._session.tell("call.started", call=item.call.id, function=item.call.function)
        outcomes = {}
        for item, result in _results(ready, lambda item: self._call_handler(item, step)):
            outcomes[item.call.id] = result.outcome
            self._store({item.call.id: result.outcome})
            self._tell_finished(item.call, result)
        return outcomes

    def _tell_finished(self, call: Call, result: Result) -> None:
        for warning in result.warnings:
            self._session.tell("warning", call=call.id, message=f"{call.function}: {warning}")
        self._session.tell(
            "call.finished",
            call=call.id,
            function=call.function,
            **{"error": result.outcome.error} if result.outcome.failed else {"output": _shown(result.outcome)},
            **{"stderr": result.stderr} if result.stderr else {},
        )

    def _call_handler(self, item: _Ready, step: Step) -> Result:
        return item.handler.run(item.arguments, self._context(item.call, step))

    def _context(self, call: Call, step: Step) -> CallContext:
        session = self._session
        limit = session.backend.seconds_to_answer
        return CallContext(
            call=call,
            conversation=session.conversation.id,
            turn=self._turn,
            backend=session.backend.name,
            inherit=self._inherit,
            deadline=None if limit is None else time.monotonic() + step.created_at + limit - step.service_now,
            until=self._until,
        )

    def _store(self, outcomes: Mapping[str, Outcome]) -> None:
        if outcomes:
            self._calls.finished(outcomes.items())

    def _within_limits(self, outcomes: dict[str, Outcome]) -> dict[str, Outcome]:
        """Leave out what the service would refuse for its size; the call stays answerable under its id."""
        kept = {}
        for call, outcome in outcomes.items():
            problem = size_problem(outcome, self._session.backend.output_limit)
            if problem is None:
                kept[call] = outcome
            else:
                self._calls.rejected(call, problem)
                self._session.tell("warning", call=call, message=f"the output of {call} was not sent: {problem}")
        return kept


def _same(row: CallRow | None, outcome: Outcome) -> bool:
    return row is not None and row.outcome == outcome


def _shown(outcome: Outcome) -> Json:
    return outcome.output if outcome.content is None else outcome.content


def _results(ready: list[_Ready], work: Callable[[_Ready], Result]) -> Iterator[tuple[_Ready, Result]]:
    """Yield each call with its result, in the order in which they finish."""
    if len(ready) == 1:
        yield ready[0], work(ready[0])
        return
    from concurrent.futures import Future, ThreadPoolExecutor

    from agentfn.document.bounded import Inbox
    from agentfn.handlers import stop_running

    ended: Inbox[Future[Result]] = Inbox()
    with ThreadPoolExecutor(max_workers=PARALLEL, thread_name_prefix="handler") as pool, ended:
        futures = {pool.submit(work, item): item for item in ready}
        try:
            for future in futures:
                future.add_done_callback(ended.put)
            for _ in ready:
                future = ended.get()
                yield futures[future], future.result()
        except BaseException:
            # Worker threads never see a Ctrl-C: what they run is ended from here, or the pool would wait for it.
            for future in futures:
                future.cancel()
            stop_running()
            raise

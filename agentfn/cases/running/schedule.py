"""Runs many cases side by side, each as often as its verdict needs, and ends cleanly whatever happens."""

from __future__ import annotations

import heapq
import queue
import threading
import time
from typing import TYPE_CHECKING, NamedTuple, Protocol

from agentfn.cases.case import BrokenCase
from agentfn.cases.happened import Attempt
from agentfn.cases.results import CaseResult, Judged, RunResult, certain_verdict
from agentfn.cases.running.attempt import Stopped
from agentfn.cases.running.cap import Cap
from agentfn.cases.running.judging import judged
from agentfn.document.bounded import Inbox
from agentfn.errors import AgentfnError
from agentfn.handlers import stop_running

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentfn.cases.case import Case
    from agentfn.cases.running.attempt import Runner
    from agentfn.cases.running.place import Place
    from agentfn.lifecycle.cleanup import Left

#: How long an interrupted run waits for attempts that are under way to give up, in seconds.
PATIENCE = 2.0


class Listener(Protocol):
    """Hears of a run as it goes on, on the thread that started it."""

    def case_finished(self, result: CaseResult) -> None:
        """Take a case's result."""

    def progress(self, running: int, allowed: int) -> None:
        """Learn how many attempts run now, of how many that may."""


class Options(NamedTuple):
    """How a run goes about it."""

    jobs: int = 8
    fail_fast: bool = False


class _Entry:
    """A case, and how far it has come."""

    def __init__(self, case: Case | BrokenCase) -> None:
        self.case = case
        self.attempts: list[Judged] = []
        self.started = 0
        self.running = 0
        self.is_told = False

    @property
    def result(self) -> CaseResult:
        return CaseResult(self.case, tuple(self.attempts))

    @property
    def is_over(self) -> bool:
        """Tell whether nothing more will come of it."""
        if isinstance(self.case, BrokenCase):
            return True
        return not self.running and not self.wants_attempt

    @property
    def wants_attempt(self) -> bool:
        """Tell whether another attempt may be needed, should those that run now pass."""
        if isinstance(self.case, BrokenCase) or self.started >= self.case.repeat.times:
            return False
        if certain_verdict(self.case, self.attempts) is not None:
            return False
        passed = sum(judged.passed for judged in self.attempts)
        return passed + self.running < self.case.repeat.at_least


class Schedule:
    """One run of cases; used once."""

    def __init__(self, cases: Sequence[Case | BrokenCase], place: Place, runner: Runner, options: Options) -> None:
        self._entries = [_Entry(case) for case in cases]
        self._place = place
        self._runner = runner
        self._options = options
        self._tasks: queue.SimpleQueue[tuple[int, int] | None] = queue.SimpleQueue()
        self._ended: Inbox[tuple[int, Attempt | BaseException]] = Inbox()
        self._workers: list[threading.Thread] = []
        self._idle = 0
        self._cap = Cap(max(1, options.jobs))
        self._running = 0
        #: (attempts so far, case): first attempts come before further ones. Some may not be wanted any more.
        self._waiting = [(0, index) for index in range(len(cases))]

    def run(self, listener: Listener) -> RunResult:
        """Run all cases. Ctrl-C ends what runs, clears away, and gives what came of the rest as interrupted."""
        begun = time.monotonic()
        interrupted = False
        try:
            with self._ended:
                self._loop(listener)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            left = self._end()
        results = tuple(entry.result for entry in self._entries)
        return RunResult(self._runner.surroundings.run, results, time.monotonic() - begun, tuple(left), interrupted)

    def _loop(self, listener: Listener) -> None:
        failed = False
        for entry in self._entries:
            self._tell(entry, listener)
        while True:
            while not failed and self._running < self._cap.now and (task := self._next()) is not None:
                self._start(task)
            listener.progress(self._running, self._cap.now)
            if not self._running:
                return
            index, ended = self._ended.get()
            self._running -= 1
            self._idle += 1
            if not isinstance(ended, Attempt):
                raise ended
            self._cap.attempt_ended(strained=self._runner.watch.take_strain() > 0)
            entry = self._entries[index]
            entry.running -= 1
            assert not isinstance(entry.case, BrokenCase)  # noqa: S101  # those are never started
            # Here and not on the worker's thread: only the main one can end a pattern that takes for ever.
            entry.attempts.append(judged(entry.case, ended, self._runner.surroundings.masker))
            self._tell(entry, listener)
            if entry.wants_attempt:
                heapq.heappush(self._waiting, (entry.started, index))
            failed = failed or (self._options.fail_fast and entry.is_over and entry.result.verdict == "failed")

    def _tell(self, entry: _Entry, listener: Listener) -> None:
        if entry.is_over and not entry.is_told:
            entry.is_told = True
            listener.case_finished(entry.result)

    def _next(self) -> int | None:
        """Return the case whose next attempt is to start, if any."""
        while self._waiting:
            index = heapq.heappop(self._waiting)[1]
            if self._entries[index].wants_attempt:
                return index
        return None

    def _start(self, index: int) -> None:
        entry = self._entries[index]
        entry.started += 1
        entry.running += 1
        self._running += 1
        if self._idle:
            self._idle -= 1
        else:
            worker = threading.Thread(target=self._work, args=(len(self._workers),), name="case", daemon=True)
            self._workers.append(worker)
            worker.start()
        self._tasks.put((index, entry.started))
        if entry.wants_attempt:
            heapq.heappush(self._waiting, (entry.started, index))

    def _work(self, number: int) -> None:
        """Take attempts until there are none; daemon threads, since an interrupted run does not wait for a request."""
        ground = None
        try:
            while (task := self._tasks.get()) is not None:
                index, attempt = task
                case = self._entries[index].case
                try:
                    if ground is None:
                        ground = self._place.open(number)
                    ended: Attempt | BaseException = self._runner.run(case, attempt, ground)  # type: ignore[arg-type]
                except AgentfnError as exc:
                    ended = Attempt(attempt, (), 0.0, error=exc)
                except Stopped:
                    return
                except BaseException as exc:  # noqa: BLE001  # raised again on the main thread
                    ended = exc
                self._ended.put((index, ended))
        finally:
            if ground is not None:
                ground.close()

    def _end(self) -> list[Left]:
        """Stop what still runs, and clear away; a second Ctrl-C leaves the rest to the next clean-up."""
        if self._running:
            self._runner.watch.stop.set()
            stop_running()
        for _ in self._workers:
            self._tasks.put(None)
        deadline = time.monotonic() + PATIENCE
        for worker in self._workers:
            worker.join(max(0.0, deadline - time.monotonic()) if self._running else None)
        return self._place.finish(given_up=any(worker.is_alive() for worker in self._workers))

"""What the turn asks of a handler, whichever kind it is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentfn.model import Call, Json, Outcome

#: What is kept back of the time that a service leaves, in seconds: for ending a handler and for sending the failure.
RESERVE_SECONDS = 5.0


class CallContext(NamedTuple):
    """Where a call comes from; `exec` and `python` handlers find it in their environment (AGENTFN_…).

    `inherit` are file descriptors that a running handler keeps open, so that an orphan still counts as running.
    `deadline` is the time.monotonic() after which the service no longer takes the output, `until` the one at which the
    turn's own time is over; None where there is none.
    """

    call: Call
    conversation: str
    turn: str
    backend: str
    inherit: tuple[int, ...] = ()
    deadline: float | None = None
    until: float | None = None

    def seconds_for(self, timeout: float) -> float:
        """Return how many seconds a handler may take: its own time-out, or less where turn or service end sooner."""
        if self.until is not None:
            timeout = min(timeout, max(0.1, self.until - time.monotonic()))
        if self.deadline is None:
            return timeout
        left = max(0.1, self.deadline - time.monotonic())
        return min(timeout, left - min(RESERVE_SECONDS, left / 4))


class Result(NamedTuple):
    """A handler's outcome, and what only the user is told: `warnings` (a line each) and the whole of `stderr`."""

    outcome: Outcome
    warnings: tuple[str, ...] = ()
    stderr: str = ""


class Handler(Protocol):
    """Runs one function of an agent. Thread-safe: several calls of one function may run at the same time."""

    def problem(self) -> str | None:
        """Say why the handler cannot start (program missing, not executable, …), or None; runs nothing."""

    def run(self, arguments: Mapping[str, Json], context: CallContext) -> Result:
        """Run the function; every failure of the user's code is an outcome, never an exception."""

"""What the turn asks of a handler, whichever kind it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentfn.model import Call, Json, Outcome


class CallContext(NamedTuple):
    """Where a call comes from; `exec` and `python` handlers find it in their environment (AGENTFN_…).

    `inherit` are file descriptors that a running handler keeps open, so that an orphan still counts as running.
    `deadline` is the time.monotonic() after which the service no longer takes the output, None where it always does.
    """

    call: Call
    conversation: str
    turn: str
    backend: str
    inherit: tuple[int, ...] = ()
    deadline: float | None = None


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

"""When a turn has gone on for long enough: steps, calls, one and the same call, time."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentfn.model import Call
    from agentfn.turn.session import Session


#: The code of an error that ends a turn for its time.
TIME_OVER = "turn_limit"


class Limits:
    """Counts what one turn has asked for; the figures are those of the session's policy."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._policy = session.policy
        self._begun = time.monotonic()
        self._seen: Counter[str] = Counter()

    @property
    def until(self) -> float:
        """Return the time.monotonic() at which the turn's time is over."""
        return self._begun + self._policy.seconds

    def over_time(self) -> str | None:
        """Say that the turn's time is over, if it is."""
        is_over = time.monotonic() > self.until
        return f"turn limit {self._policy.seconds:g} s reached (time)" if is_over else None

    def count(self, call: Call) -> str | None:
        """Count a call; return a warning where the very same one comes again and again."""
        key = f"{call.function}({call.arguments})"
        self._seen[key] += 1
        return f"{key} was asked for {self._seen[key]} times" if self._seen[key] == self._policy.repeats else None

    def hit(self, rounds: int) -> str | None:
        """Say which limit is hit, if one is; `rounds` are the steps whose calls were answered."""
        most, times = self._seen.most_common(1)[0]
        repeated = f"{most} was asked for {times} times"
        if rounds >= self._policy.rounds:
            return f"turn limit {self._policy.rounds} reached (steps that asked for calls); {repeated}"
        if times >= self._policy.identical and not self._may_repeat(most):
            return f"turn limit {self._policy.identical} reached (one and the same call); {repeated}"
        if self._seen.total() > self._policy.calls:
            return f"turn limit {self._policy.calls} reached (calls); {repeated}"
        over = self.over_time()
        return f"{over}; {repeated}" if over else None

    def _may_repeat(self, seen: str) -> bool:
        """Tell whether a call is one that does no harm again and again, as asking for a state does."""
        agent = self._session.agent
        tool = agent.function(seen.partition("(")[0]) if agent is not None else None
        return tool is not None and tool.idempotent

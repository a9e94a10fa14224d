"""Who answers in a thread, and how far its scenario has come; the same for every face of the service.

A thread's state is a mapping of `scenario` (the digest of the one it plays, absent with the stand-in), `used` (how
often each step was taken) and `number` (of model steps so far). It is kept with the thread, so that a later process
goes on with the scenario without being told; a different scenario given later is played from its start.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from agentfn.emulator.models.scenario import Scenario
    from agentfn.emulator.models.step import Prompt, Reply
    from agentfn.emulator.store import Store

State = dict[str, Any]


class Decision(NamedTuple):
    """What the model does now; `after` is the thread's state from then on, `model` is ``scenario`` or ``stand-in``."""

    reply: Reply
    after: State
    model: str
    scenario: Scenario | None

    @property
    def after_fault(self) -> State:
        """Return the state after a fault: used up, but no model step, so that ``step: 2`` means the second answer."""
        return {**self.after, "number": self.after["number"] - 1}

    def remember(self, db: sqlite3.Connection) -> None:
        """Keep the scenario's steps, inside a running transaction."""
        if self.scenario is not None:
            db.execute(
                "INSERT OR IGNORE INTO scenario (digest, steps, source) VALUES (?, ?, ?)",
                (self.scenario.digest, json.dumps(self.scenario.steps), self.scenario.source),
            )


def decide(store: Store, given: Scenario | None, state: State, prompt_for: Callable[[int], Prompt]) -> Decision:
    """Return what the model does in a thread of that state; nothing is stored yet."""
    if given is not None and state.get("scenario") != given.digest:
        state = {"scenario": given.digest}
    prompt = prompt_for(state.get("number", 0) + 1)
    after = {**state, "number": prompt.number}
    if state.get("scenario") is None:
        from agentfn.emulator.models.standin import answer

        return Decision(answer(prompt), after, "stand-in", None)
    from agentfn.emulator.models.scenario import take

    scenario = given or _stored(store, state["scenario"])
    reply, used = take(scenario, state.get("used", {}), prompt)
    return Decision(reply, {**after, "used": used}, "scenario", scenario)


def _stored(store: Store, digest: str) -> Scenario:
    from agentfn.emulator.models.scenario import Scenario

    row = store.one("SELECT steps, source FROM scenario WHERE digest = ?", digest)
    # It is written in the transaction that first names it, so it can only be gone after a reset.
    return Scenario(tuple(json.loads(row[0])), row[1]) if row else Scenario((), "(forgotten)")

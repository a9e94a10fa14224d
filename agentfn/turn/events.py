"""What happens during a turn, as data: console, ``--events`` and later transcripts and reports listen to it.

Types: ``turn.started``, ``text.delta``, ``call.requested``, ``call.approved``, ``call.denied``, ``call.started``,
``call.finished``, ``outputs.sent``, ``request.retried``, ``turn.finished``, ``turn.pending``, ``turn.failed``; and
``warning`` and ``notice`` for what only a person needs to know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from agentfn.model import Json


class Event(NamedTuple):
    """One thing that happened. `at` is unix seconds; `data` holds the ids it concerns and what belongs to the type."""

    type: str
    at: float
    data: dict[str, Json]

    def as_json(self) -> dict[str, Json]:
        """Return the event as one flat JSON object."""
        return {"type": self.type, "at": self.at, **self.data}


Emit = Callable[[Event], None]
"""Takes each event as it happens, always on the thread that runs the turn."""

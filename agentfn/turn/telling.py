"""Tells a turn's events in their order, also those that a backend reports while a request runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentfn.model import Call, Json
    from agentfn.turn.session import Session


class Telling:
    """The events of one turn. `turn` is empty until the turn has the id that it keeps."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.turn = ""
        self._announced: set[str] = set()
        self._confirmed: set[str] = set()
        self._under_way: list[str] = []

    def tell(self, event: str, /, **data: Json) -> None:
        """Tell of something in this turn."""
        self._session.tell(event, **({"turn": self.turn} if self.turn else {}), **data)

    def started(self, turn: str, message: str) -> None:
        """Tell that the turn begins, under the id that it keeps."""
        self.turn = turn
        self.tell("turn.started", agent=str(self._session.conversation.ref), message=message)

    def text(self, delta: str) -> None:
        """Tell of a piece of the answer."""
        self._outputs_arrived()
        self.tell("text.delta", text=delta)

    def call(self, call: Call) -> None:
        """Tell of a call, once: as it is asked for where that streams, else when its step has come."""
        if call.id in self._announced:
            return
        self._announced.add(call.id)
        self._outputs_arrived()
        self.tell("call.requested", call=call.id, function=call.function, arguments=call.arguments)

    def confirmed(self, calls: Sequence[Call]) -> None:
        """Tell of the calls of a step that has come whole."""
        self._confirmed |= {call.id for call in calls}
        for call in calls:
            self.call(call)

    def retrying(self, reason: str, seconds: float) -> None:
        """Tell that a request goes out again; calls that only the lost answer asked for are void until asked for again.

        Where the service holds the turn open, its calls outlive a stream.
        """
        void: list[str] = []
        if not self._session.backend.names_turns:
            void, self._announced = sorted(self._announced - self._confirmed), self._announced & self._confirmed
        self.tell("request.retried", reason=reason, seconds=round(seconds, 3), **({"void": void} if void else {}))

    def sending(self, calls: Sequence[Call]) -> None:
        """Take note of outputs that are about to go out; they are told of when they have."""
        self._announced.clear()
        self._under_way = [call.id for call in calls]

    def sent(self) -> None:
        """Tell that the outputs are there, where nothing said so before."""
        self._outputs_arrived()

    def _outputs_arrived(self) -> None:
        if self._under_way:
            self.tell("outputs.sent", calls=self._under_way)
            self._under_way = []

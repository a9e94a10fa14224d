"""Watches a session's event stream until there is something to look at (openai-agents.md §4.2 to §4.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from agentfn.backends.http import WHOLE, UnknownFateError
from agentfn.backends.sessions import shapes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agentfn.backends.protocol import Listener

Item = dict[str, Any]

#: After so many seconds without an event the session itself is asked: nothing is ever said twice on a stream.
QUIET_SECONDS = 5.0
#: Without a single byte for so long the stream counts as dead; the service sends comments meanwhile.
SILENCE_SECONDS = 45.0

#: States after which nothing more comes of a turn; the last one is undocumented and counts as a failure.
ENDS = ("idle", "failed", "budget_reached")


class Stop(NamedTuple):
    """Why the watching ended.

    ``snapshot``: the session told how it stands, see `session`; ``quiet``: nothing came for a while; ``cut``: the stream
    is over, for that `reason`.
    """

    kind: Literal["snapshot", "quiet", "cut"]
    session: Item | None = None
    reason: str = ""


class Watch:
    """One stream, from the moment it was opened. `whole` says that it saw the turn from its beginning."""

    def __init__(
        self, events: Iterator[tuple[Item, float]], clock: Callable[[], float], *, whole: bool, said: str | None = None
    ) -> None:
        self.whole = whole
        #: The service's clock when the stream began.
        self.now = 0.0
        self.turn: Item = {}
        self.session: str | None = None
        #: Whether it is a stream at all: a server may answer with the session alone.
        self.streams = True
        self._events = events
        self._clock = clock
        #: The message whose turn is watched for; None where the stream began with it.
        self.said = said
        #: How often exactly that message had been said before.
        self.earlier_same = 0
        self._quiet_since = self._heard_at = clock()
        self._told_turn = False
        self._done: dict[str, tuple[int, Item]] = {}
        self.error: str | None = None

    def close(self) -> None:
        """Let go of the stream; the turn goes on without a listener."""
        close = getattr(self._events, "close", None)
        if close is not None:
            close()

    @property
    def deaf_seconds(self) -> float:
        """Return how long no event has come."""
        return self._clock() - self._heard_at

    def messages(self) -> list[Item]:
        """Return the turn's finished messages that were seen, in the order of the output."""
        return [item for _, item in sorted(self._done.values(), key=lambda pair: pair[0])]

    def until_created(self, listener: Listener) -> str | None:
        """Read until the session has a name; None where the stream ends before."""
        try:
            for event, now in self._events:
                self.now = now
                self._take(event, listener)
                if self.session is not None:
                    return self.session
        except UnknownFateError:
            pass
        self.close()
        return None

    def until_stop(self, listener: Listener) -> Stop:
        """Read on; text and ids go to the listener as they come."""
        try:
            for event, now in self._events:
                self.now = now
                if event:
                    self._quiet_since = self._heard_at = self._clock()
                    session = self._take(event, listener)
                    if session is not None:
                        return Stop("snapshot", session)
                elif self._clock() - self._quiet_since >= QUIET_SECONDS:
                    self._quiet_since = self._clock()
                    return Stop("quiet")
        except UnknownFateError as exc:
            return Stop("cut", reason=exc.told)
        return Stop("cut", reason="the event stream ended")

    def _take(self, event: Item, listener: Listener) -> Item | None:
        """Take an event; return the session where it tells that the turn stopped. Unknown types are passed over."""
        kind = str(event.get("type") or "")
        if kind == WHOLE:
            event, kind = {"session": event["body"]}, "agent.session.created"
            self.streams = False
        if kind.startswith("agent.session.turn."):
            self._take_turn(kind.removeprefix("agent.session.turn."), event, listener)
        elif kind == "error":
            error = event.get("error")
            self.error = str(error.get("message") or error.get("code")) if isinstance(error, dict) else None
        elif isinstance(event.get("session"), dict):
            session: Item = event["session"]
            if kind == "agent.session.created" and self.session is None:
                self.session = str(session.get("id") or "")
                listener.conversation_opened(self.session)
            what = kind.removeprefix("agent.session.")
            if what == "requires_action" or (what in ENDS and self._is_over(what)):
                return session
        return None

    def _is_over(self, what: str) -> bool:
        """Tell whether an end is that of our turn: an idle session may still be telling of the one before."""
        return what != "idle" or not self.whole or self.turn.get("status") in ("completed", "failed", "cancelled")

    def _take_turn(self, what: str, event: Item, listener: Listener) -> None:
        turn = event.get("turn")
        identity = event.get("turn_id")
        if what == "created" and not self.turn and self.said is None:
            self._own(turn if isinstance(turn, dict) else {"id": identity}, listener)
        item = event.get("item")
        # A message that is not ours begins a turn that is not ours.
        is_said = isinstance(item, dict) and shapes.is_user_message(item) and shapes.message_text(item) == self.said
        if is_said and not self.turn:
            self._own({"id": identity}, listener)
        if not self.turn or identity != self.turn.get("id"):
            return
        if isinstance(turn, dict):
            self.turn = turn
        if what == "output_text.delta":
            listener.text(str(event.get("delta") or ""))
        elif what == "item.added" and isinstance(item, dict) and item.get("type") == "function_call":
            if item.get("status") == "in_progress":  # a finished one is history
                listener.call_asked(shapes.call_of(item))
        elif what == "item.done" and isinstance(item, dict) and item.get("type") == "message":
            index = event.get("output_index")
            self._done[str(item.get("id"))] = (index if isinstance(index, int) else len(self._done), item)

    def _own(self, turn: Item, listener: Listener) -> None:
        self.turn = turn
        if not self._told_turn:
            self._told_turn = True
            listener.turn_opened(str(turn.get("id")))

    def belongs_to(self, turn: str) -> None:
        """Say which turn is ours where the stream cannot tell."""
        self.turn = self.turn or {"id": turn}
        self._told_turn = True

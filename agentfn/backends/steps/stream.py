"""A streamed response put together again from its events (foundry.md §4.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from agentfn.backends.http import WHOLE, RefusedError, Reply, UnknownFateError
from agentfn.backends.steps import items

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agentfn.backends.protocol import Listener
    from agentfn.model import Call

Item = dict[str, Any]

_LAST = ("response.completed", "response.failed", "response.incomplete")
_THROTTLED = ("rate_limit_exceeded", "RateLimitReached", "429", "insufficient_quota")


class Collected(NamedTuple):
    """A whole response, and the service's clock at its start.

    `cut` is the id of a call whose arguments had begun and never came to an end, though the service said "completed".
    """

    response: Item
    now: float
    cut: str | None


def collect(
    events: Iterable[tuple[Item, float]],
    listener: Listener,
    mask: Callable[[str], str],
) -> Collected:
    """Return the response, its text and calls told as they come; events of unknown types are passed over.

    Raises UnknownFateError where the stream breaks off, and what an error event amounts to.
    """
    output = _Output()
    response: Item = {}
    now = 0.0
    for event, clock in events:
        now = clock
        kind = event.get("type")
        if kind == WHOLE:
            return output.complete(event["body"], now)
        if isinstance(event.get("response"), dict):
            response = event["response"]
        if kind in _LAST:
            return output.complete(response, now)
        if kind == "response.output_text.delta":
            listener.text(str(event.get("delta") or ""))
        elif kind == "error":
            raise _error(event, now, mask, has_begun=bool(response))
        else:
            for call in output.take(event):
                listener.call_asked(call)
    raise UnknownFateError("the stream ended before the answer was complete")


class _Output:
    """The output items, by their place."""

    def __init__(self) -> None:
        self._begun: dict[Any, Item] = {}
        self._done: dict[Any, Item] = {}

    def take(self, event: Item) -> tuple[Call, ...]:
        """Take an event; return the call that is complete with it, if one is."""
        kind, place, item = event.get("type"), str(event.get("output_index")), event.get("item")
        if kind == "response.output_item.added" and isinstance(item, dict):
            self._begun[place] = item
        elif kind == "response.output_item.done" and isinstance(item, dict):
            self._done[place] = item
            return items.calls_of([item])
        elif kind == "response.function_call_arguments.done" and place in self._begun and "arguments" in event:
            self._done[place] = {**self._begun[place], "arguments": event["arguments"]}
        return ()

    def complete(self, response: Item, now: float) -> Collected:
        """Return the response; some servers leave the last event's output empty, then the items count that came."""
        output = response.get("output") or [
            self._done[place] for place in self._begun | self._done if place in self._done
        ]
        response = {**response, "output": output}
        whole = {call.id for call in items.calls_of(items.objects(output))}
        begun = items.calls_of(item for place, item in self._begun.items() if place not in self._done)
        return Collected(response, now, next((call.id for call in begun if call.id not in whole), None))


def _error(event: Item, now: float, mask: Callable[[str], str], *, has_begun: bool) -> RefusedError | UnknownFateError:
    """Return what an error event amounts to: before the response was created a refusal, later nobody knows."""
    given = event.get("error")
    error: Item = given if isinstance(given, dict) else event
    code, message = str(error.get("code") or ""), mask(str(error.get("message") or "the service gave no reason"))
    invalid = (
        error.get("type") == "invalid_request_error" or code.startswith("invalid") or code == "conversation_locked"
    )
    status = 429 if code in _THROTTLED else 400 if invalid else 500
    body = {"error": {"code": code or None, "message": message, "param": error.get("param")}}
    reply = Reply(status, {}, body, message, now)
    if has_begun or status == 500:  # noqa: PLR2004  # HTTP's own number
        return UnknownFateError(f"the service broke off: {code or 'error'}", reply)
    return RefusedError(reply)

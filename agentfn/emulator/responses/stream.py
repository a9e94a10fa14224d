"""A response as server-sent events (foundry.md §4.6)."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from agentfn.emulator.http import ApiError, ConnectionCut, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Event = dict[str, Any]

#: Characters in one delta: short, so that clients meet text in several pieces.
DELTA = 16


class EventStream:
    """The body of a streamed answer. Opens with a comment at once, so that a client has its headers before the work.

    `first` events are sent before `work` is called, which returns the remaining ones, or None for "nothing yet, ask
    again"; a comment keeps the connection alive then. `done` is called once, at the end or when the client leaves. A
    class rather than a generator: a server may close it from another thread, which a running generator refuses.
    """

    def __init__(
        self,
        work: Callable[[], list[Event] | None],
        *,
        first: list[Event] | None = None,
        cut: bool = False,
        done: Callable[[], None] = lambda: None,
    ) -> None:
        self._work = work
        self._done = done
        self._cut = cut
        self._chunks: deque[bytes] = deque([b": open\n\n", *map(_frame, first or [])])
        self._is_worked = False
        self._is_closed = False
        self._guard = threading.Lock()

    def __iter__(self) -> Iterator[bytes]:
        """Return itself."""
        return self

    def __next__(self) -> bytes:
        """Return the next chunk; raise ConnectionCut where the scenario breaks the stream."""
        if not self._chunks and not self._is_worked:
            self._go_on()
        if self._chunks:
            return self._chunks.popleft()
        self.close()
        if self._cut and self._is_worked:
            raise ConnectionCut
        raise StopIteration

    def _go_on(self) -> None:
        with self._guard:
            if self._is_closed:
                return
            try:
                events = self._work()
            except ApiError as exc:
                events = [_error_event(exc)]
        if events is None:
            self._chunks.append(b": keep-alive\n\n")
            return
        self._is_worked = True
        self._chunks.extend(_frame(event) for event in (events[: _break(events)] if self._cut else events))

    def close(self) -> None:
        """Let go; safe to call twice, and from another thread."""
        with self._guard:
            if self._is_closed:
                return
            self._is_closed = True
        self._done()


def _frame(event: Event) -> bytes:
    return f"event: {event['type']}\ndata: ".encode() + encode(event) + b"\n\n"


def _break(events: list[Event]) -> int:
    """Return where a stream is cut: inside the first text or arguments, else in the middle."""
    deltas = [index for index, event in enumerate(events) if event["type"].endswith(".delta")]
    return deltas[0] + 1 if deltas else len(events) // 2


def _error_event(error: ApiError) -> Event:
    inner = error.body["error"]
    return {"type": "error", "sequence_number": 2} | {key: inner.get(key) for key in ("code", "message", "param")}


def events_of(body: dict[str, Any]) -> list[Event]:
    """Return the events that lead to a response, numbered from 0; the first two need nothing of the model's answer."""
    opened = {**body, "status": "in_progress", "output": [], "completed_at": None, "usage": None}
    opened |= {"error": None, "incomplete_details": None}
    events: list[Event] = [
        {"type": "response.created", "response": opened},
        {"type": "response.in_progress", "response": opened},
    ]
    for index, item in enumerate(body["output"]):
        events += _EVENTS.get(item["type"], _other_events)(item, index)
    terminal = {"completed": "completed", "incomplete": "incomplete"}.get(body["status"], "failed")
    events.append({"type": f"response.{terminal}", "response": body})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def _call_events(item: dict[str, Any], index: int) -> list[Event]:
    at = {"item_id": item["id"], "output_index": index}
    prefix = "response.function_call_arguments"
    return [
        {
            "type": "response.output_item.added",
            "output_index": index,
            "item": {**item, "arguments": "", "status": "in_progress"},
        },
        *({"type": f"{prefix}.delta", **at, "delta": piece} for piece in _pieces(item["arguments"])),
        {"type": f"{prefix}.done", **at, "arguments": item["arguments"]},
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def _message_events(item: dict[str, Any], index: int) -> list[Event]:
    part = item["content"][0]
    at = {"item_id": item["id"], "output_index": index, "content_index": 0}
    return [
        {
            "type": "response.output_item.added",
            "output_index": index,
            "item": {**item, "content": [], "status": "in_progress"},
        },
        {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
        *({"type": "response.output_text.delta", **at, "delta": d, "logprobs": []} for d in _pieces(part["text"])),
        {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []},
        {"type": "response.content_part.done", **at, "part": part},
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def _other_events(item: dict[str, Any], index: int) -> list[Event]:
    return [{"type": f"response.output_item.{what}", "output_index": index, "item": item} for what in ("added", "done")]


_EVENTS = {"function_call": _call_events, "message": _message_events}


def _pieces(text: str) -> list[str]:
    return [text[start : start + DELTA] for start in range(0, len(text), DELTA)]

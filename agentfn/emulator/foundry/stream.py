"""A response as server-sent events (foundry.md §4.6)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agentfn.emulator.http import ConnectionCut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Characters in one delta: short, so that clients meet text in several pieces.
DELTA = 16


class EventStream:
    """The body of a streamed answer. Opens with a comment at once, so that a client has its headers before the work.

    A class rather than a generator: a server may close it from another thread, which a running generator refuses.
    `work` runs when the second chunk is asked for and gives the events; `done` lets go of whatever was held.
    """

    def __init__(
        self,
        work: Callable[[], list[dict[str, Any]]],
        *,
        cut: str | None = None,
        done: Callable[[], None] = lambda: None,
    ) -> None:
        self._work = work
        self._cut = cut
        self._done = done
        self._chunks: Iterator[bytes] | None = None
        self._opened = False

    def __iter__(self) -> Iterator[bytes]:
        """Return itself."""
        return self

    def __next__(self) -> bytes:
        """Return the next chunk; raise ConnectionCut where the scenario breaks the stream."""
        if not self._opened:
            self._opened = True
            return b": open\n\n"
        if self._chunks is None:
            events = self._work()
            if self._cut == "after":
                self.close()
                raise ConnectionCut
            self._chunks = iter([_frame(event) for event in events])
            self._left = len(events) // 2 if self._cut == "mid" else len(events)
        if self._left == 0:
            self.close()
            if self._cut == "mid":
                raise ConnectionCut
            raise StopIteration
        self._left -= 1
        return next(self._chunks)

    def close(self) -> None:
        """Let go; safe to call twice."""
        done, self._done = self._done, lambda: None
        done()


def _frame(event: dict[str, Any]) -> bytes:
    data = json.dumps(event, ensure_ascii=False)
    return f"event: {event['type']}\ndata: {data}\n\n".encode("utf-8", "surrogatepass")


def events_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events that lead to a response, numbered from 0."""
    open_body = {**body, "status": "in_progress", "output": [], "completed_at": None, "usage": None}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": open_body},
        {"type": "response.in_progress", "response": open_body},
    ]
    for index, item in enumerate(body["output"]):
        events += _call_events(item, index) if item["type"] == "function_call" else _message_events(item, index)
    terminal = {"completed": "completed", "incomplete": "incomplete"}.get(body["status"], "failed")
    events.append({"type": f"response.{terminal}", "response": body})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def _call_events(item: dict[str, Any], index: int) -> list[dict[str, Any]]:
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


def _message_events(item: dict[str, Any], index: int) -> list[dict[str, Any]]:
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


def _pieces(text: str) -> list[str]:
    return [text[start : start + DELTA] for start in range(0, len(text), DELTA)]

"""Server-sent events, from bytes in any chunking to JSON objects."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def events(chunks: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the JSON object of each event; ``[DONE]`` and what is no object are passed over.

    Lines end at CR, LF or both and nowhere else: U+2028 and U+0085 are text. A character may be split between chunks, so
    bytes are decoded a whole line at a time.
    """
    data: list[str] = []
    name = ""
    for raw in _lines(chunks):
        line = raw.decode("utf-8", "replace")
        if not line:
            if data:
                event = _event("\n".join(data), name)
                if event is not None:
                    yield event
            data, name = [], ""
        elif not line.startswith(":"):
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "data":
                data.append(value)
            elif field == "event":
                name = value


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    buffer = b""
    after_return = False
    for chunk in chunks:
        # The LF of a CRLF that was split between two chunks ends no second line.
        start = chunk.removeprefix(b"\n") if after_return and chunk else chunk
        after_return = chunk.endswith(b"\r") if chunk else after_return
        buffer += start
        parts = buffer.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        buffer = parts.pop()
        yield from parts


def _event(text: str, name: str) -> dict[str, Any] | None:
    if text.strip() == "[DONE]":
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    # Some servers name the event in its line alone.
    return value if "type" in value or not name else {**value, "type": name}

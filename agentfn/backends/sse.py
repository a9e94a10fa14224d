"""Server-sent events, from bytes in any chunking to JSON objects."""

from __future__ import annotations

import codecs
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class BrokenEventError(ValueError):
    """An event of the stream is half an object: something that mattered may be missing."""


def events(chunks: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the JSON object of each event, and an empty one for a comment; ``[DONE]`` and what is no object are passed over.

    Raises BrokenEventError for what begins as an object and is none.

    Lines end at CR, LF or both and nowhere else: U+2028 and U+0085 are text. A character may be split between chunks, so
    bytes are decoded a whole line at a time. An event that no blank line ends may be half of one, and is none.
    """
    data: list[str] = []
    name = ""
    for line in _lines(chunks):
        if not line:
            if data:
                event = _event("\n".join(data), name)
                if event is not None:
                    yield event
            data, name = [], ""
        elif line.startswith(":"):
            yield {}
        else:
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "data":
                data.append(value)
            elif field == "event":
                name = value


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    pieces: list[bytes] = []
    after_return = False
    is_first = True
    for chunk in chunks:
        if not chunk:
            continue
        # The LF of a CRLF that was split between two chunks ends no second line.
        rest = chunk.removeprefix(b"\n") if after_return else chunk
        after_return = chunk.endswith(b"\r")
        *ended, rest = rest.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for part in ended:
            line = b"".join([*pieces, part])
            pieces = []
            if is_first:
                line, is_first = line.removeprefix(codecs.BOM_UTF8), False
            yield line.decode("utf-8", "replace")
        pieces.append(rest)


def _event(text: str, name: str) -> dict[str, Any] | None:
    if text.strip() == "[DONE]":
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        if text.lstrip().startswith("{"):
            raise BrokenEventError(text[:80]) from None
        return None
    if not isinstance(value, dict):
        return None
    # Some servers name the event in its line alone.
    return value if "type" in value or not name else {**value, "type": name}

"""What a handler gave, as it will be sent: text, or an array of content parts; nothing is changed on the way."""

from __future__ import annotations

import json
import math
import re
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from agentfn.model import Json, Outcome

_SURROGATE = re.compile("[\ud800-\udfff]")
_PARTS = {"input_text": "text", "input_image": "image_url", "input_file": None}


class BadOutput(ValueError):  # noqa: N818  # named for what it is; it never leaves the layer as an error
    """A value that cannot be sent; the message says which and where."""


class Limit(Protocol):
    """A service's limit for one output."""

    @property
    def size(self) -> int:
        """Return the most that is taken."""

    @property
    def unit(self) -> str:
        """Return what `size` counts: characters or bytes."""


def to_text(value: Json) -> str:
    """Return a value as the text to be sent: a text as it is, everything else as JSON.

    Dates and times become ISO text, decimals numbers as they were written. Raises BadOutput for what JSON cannot say.
    """
    if isinstance(value, str):
        _require_whole(value, "the output")
        return value
    return json.dumps(_plain(value, "the output"), ensure_ascii=False)


def _plain(value: Json, place: str) -> Json:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            msg = f"{place} is {value}, which JSON has no number for"
            raise BadOutput(msg)
        return value
    if isinstance(value, str):
        _require_whole(value, place)
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{place}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, dict):
        return {_key(key, place): _plain(item, f"{place}.{key}") for key, item in value.items()}
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, Decimal) and value.is_finite():
        return int(value) if value == value.to_integral_value() else float(value)
    msg = f"{place} is {type(value).__name__}, which is no JSON value"
    raise BadOutput(msg)


def _key(key: Json, place: str) -> str:
    if isinstance(key, str):
        _require_whole(key, place)
        return key
    msg = f"{place} has the key {key!r}, which is no text"
    raise BadOutput(msg)


def _require_whole(text: str, place: str) -> None:
    match = _SURROGATE.search(text)
    if match:
        msg = f"{place} holds half of a surrogate pair at character {match.start()}"
        raise BadOutput(msg)


def decode_output(data: bytes, encoding: str) -> tuple[str, list[str]]:
    """Return a program's output as text, less one final line end, and warnings about bytes that are no text."""
    warnings = []
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as exc:
        text = data.decode(encoding, errors="replace")
        warnings.append(
            f"the output is not {encoding} (first at byte {exc.start}); what could not be read was replaced by U+FFFD",
        )
    if text.endswith("\r\n"):
        text = text[:-2]
    elif text.endswith("\n"):
        text = text[:-1]
    return text, warnings


def content_parts(value: Json) -> list[Json]:
    """Return an array of content parts, checked (foundry.md §4.5); raise BadOutput that names the part."""
    if not isinstance(value, list) or not value:
        msg = "expected a JSON array of content parts"
        raise BadOutput(msg)
    for index, part in enumerate(value):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind not in _PARTS:
            msg = f"part {index}: type must be one of {', '.join(_PARTS)}, got {kind!r}"
            raise BadOutput(msg)
        needed = _PARTS[kind]
        if needed is not None and not isinstance(part.get(needed), str):
            msg = f"part {index}: {kind} needs {needed} as a text"
            raise BadOutput(msg)
    plain: list[Json] = _plain(value, "the content")
    return plain


def size_problem(outcome: Outcome, limit: Limit) -> str | None:
    """Say by how much an outcome exceeds the service's limit, or None; nothing is ever cut."""
    text = outcome.error if outcome.error is not None else outcome.output
    if outcome.content is not None:
        text = json.dumps(outcome.content, ensure_ascii=False)
    characters = len(text or "")
    size = len((text or "").encode("utf-8", "surrogatepass")) if limit.unit == "bytes" else characters
    if size <= limit.size:
        return None
    return f"the output has {size:,} {limit.unit}, the service takes {limit.size:,}; give a shorter one"

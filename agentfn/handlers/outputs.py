"""What a handler gave, as it will be sent: text, or an array of content parts; nothing is changed on the way."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from agentfn.model import Json, Outcome

_SURROGATE = re.compile("[\ud800-\udfff]")
#: The kinds of content parts, and what each must have one of; of files the service says no more (foundry.md §4.5).
_PARTS: dict[str, tuple[str, ...]] = {
    "input_text": ("text",),
    "input_image": ("image_url", "file_id"),
    "input_file": (),
}


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

    Dates and times become ISO text, decimals numbers with all their digits. Raises BadOutput for what JSON cannot say.
    """
    if isinstance(value, str):
        _require_whole(value, "the output")
        return value
    return _json(value, "the output")


def _json(value: Json, place: str) -> str:
    try:
        return _written(value, place)
    except RecursionError as exc:
        msg = f"{place} is nested too deeply"
        raise BadOutput(msg) from exc


def _written(value: Json, place: str) -> str:
    """Return JSON as `json.dumps` lays it out, which has no way to write a decimal and no place in its complaints."""
    if isinstance(value, str):
        _require_whole(value, place)
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        pairs = (f"{_key(key, place)}: {_written(item, f'{place}.{key}')}" for key, item in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_written(item, f'{place}[{index}]') for index, item in enumerate(value))}]"
    if value is None or isinstance(value, (bool, int, float)):
        return _plain(value, place)
    return _other(value, place)


def _plain(value: float | None, place: str) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        msg = f"{place} is {value}, which JSON has no number for"
        raise BadOutput(msg)
    try:
        return json.dumps(value)
    except ValueError as exc:  # Python refuses to write integers of more than 4300 digits
        msg = f"{place} is a number of too many digits"
        raise BadOutput(msg) from exc


def _other(value: Json, place: str) -> str:
    from datetime import date, time
    from decimal import Decimal

    if isinstance(value, (date, time)):
        return json.dumps(value.isoformat())
    if isinstance(value, Decimal) and value.is_finite():
        return str(value)
    msg = f"{place} is {type(value).__name__}, which is no JSON value"
    raise BadOutput(msg)


def _key(key: Json, place: str) -> str:
    if isinstance(key, str):
        _require_whole(key, place)
        return json.dumps(key, ensure_ascii=False)
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
    except (LookupError, ValueError):  # a server may name anything, and Python counts base64 among its encodings
        text, warnings = decode_output(data, "utf-8")
        return text, [f"{encoding} is no encoding of text; the output was read as UTF-8", *warnings]
    if _SURROGATE.search(text):  # some encodings, UTF-7 among them, can say what UTF-8 cannot
        text = _SURROGATE.sub("\ufffd", text)
        warnings.append("half of a surrogate pair in the output was replaced by U+FFFD")
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
        if not isinstance(kind, str) or kind not in _PARTS:
            msg = f"part {index}: type must be one of {', '.join(_PARTS)}, got {kind!r}"
            raise BadOutput(msg)
        needed = _PARTS[kind]
        if needed and not any(isinstance(part.get(key), str) for key in needed):
            msg = f"part {index}: {kind} needs {' or '.join(needed)} as a text"
            raise BadOutput(msg)
    plain: list[Json] = json.loads(_json(value, "the content"))
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

"""Pages of the Agents API, with the quirks of each list (openai-agents.md §1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentfn.emulator.http import Answer, Request
from agentfn.emulator.sessions.errors import absent, invalid

if TYPE_CHECKING:
    from collections.abc import Sequence

LARGEST, USUAL = 100, 20
MOST_DIGITS = 19


def page(
    request: Request, oldest_first: Sequence[dict[str, Any]], *, strict: bool = False, items: bool = False
) -> Answer:
    """Return the page that limit, order and after ask for.

    `strict` refuses a limit out of range, where other lists take the nearest one; `items` is the list whose unknown
    cursor is a 400.
    """
    limit = _limit(request, strict=strict)
    order = request.query.get("order", "desc")
    if order not in ("asc", "desc"):
        raise invalid(f"Failed to deserialize query string: order: unknown variant `{order}`")
    entries = list(oldest_first) if order == "asc" else list(reversed(oldest_first))
    after = request.query.get("after")
    if after:
        ids = [entry["id"] for entry in entries]
        if after not in ids:
            raise invalid("Invalid session item ID in `after`") if items else absent("The `after` cursor")
        entries = entries[ids.index(after) + 1 :]
    data = entries[:limit]
    first, last = (data[0]["id"], data[-1]["id"]) if data else (None, None)
    more = len(entries) > limit
    return Answer({"object": "list", "data": data, "first_id": first, "last_id": last, "has_more": more})


def _limit(request: Request, *, strict: bool) -> int:
    text = request.query.get("limit", str(USUAL))
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()):
        raise invalid("Failed to deserialize query string: limit: invalid digit found in string")
    if len(digits) > MOST_DIGITS:
        raise invalid("Failed to deserialize query string: limit: number too large to fit in target type")
    limit = int(text)
    if strict and not 1 <= limit <= LARGEST:
        raise invalid(f"limit must be between 1 and {LARGEST}")
    return max(1, min(LARGEST, limit))

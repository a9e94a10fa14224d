"""Pages of a list (foundry.md §2.5, §3): newest first by default; a cursor is exclusive, an unknown one ends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from agentfn.emulator.http import Answer, Request
from agentfn.emulator.responses.errors import invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")
LARGEST_PAGE = 100


def page(
    request: Request,
    oldest_first: Sequence[T],
    key: Callable[[T], str],
    show: Callable[[T], dict[str, Any]],
) -> Answer:
    """Return the page that the request's limit, order, after and before ask for."""
    limit = _limit(request)
    order = request.query.get("order", "desc")
    if order not in ("asc", "desc"):
        raise invalid(f"order must be asc or desc, got {order}", param="order")
    entries = list(oldest_first) if order == "asc" else list(reversed(oldest_first))
    keys = [key(entry) for entry in entries]
    after, before = request.query.get("after"), request.query.get("before")
    if after:
        entries = entries[keys.index(after) + 1 :] if after in keys else []
        has_more = len(entries) > limit
        entries = entries[:limit]
    elif before:
        # Both given: `after` decides, as a recording shows.
        entries = entries[: keys.index(before)] if before in keys else []
        has_more = len(entries) > limit
        entries = entries[-limit:]
    else:
        has_more = len(entries) > limit
        entries = entries[:limit]
    data = [show(entry) for entry in entries]
    first, last = (key(entries[0]), key(entries[-1])) if entries else (None, None)
    return Answer({"data": data, "first_id": first, "last_id": last, "has_more": has_more, "object": "list"})


def _limit(request: Request) -> int:
    text = request.query.get("limit", "20")
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text) <= LARGEST_PAGE:
        raise invalid(f"limit must be between 1 and {LARGEST_PAGE}, got {text}", param="limit")
    return int(text)

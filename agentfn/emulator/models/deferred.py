"""Functions that are loaded only when the model searches for them (``defer_loading`` beside ``tool_search``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

Tool = dict[str, Any]


def reachable(tools: Iterable[Tool]) -> list[Tool]:
    """Return the functions that the model can come to know: deferred ones only where it has a tool to search with."""
    found = list(tools)
    can_search = any(tool.get("type") == "tool_search" for tool in found)
    return [t for t in found if t.get("type") == "function" and (can_search or not t.get("defer_loading"))]


def searched_for(tools: Iterable[Tool], called: Iterable[str], loaded: Iterable[str]) -> list[Tool]:
    """Return the deferred functions among those called that no earlier search has loaded."""
    names, known = set(called), set(loaded)
    return [
        tool
        for tool in reachable(tools)
        if tool.get("defer_loading") and tool.get("name") in names and tool.get("name") not in known
    ]

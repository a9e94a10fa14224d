"""Spans of time as people write them: ``200ms``, ``2s``, ``11m``."""

from __future__ import annotations

import re

_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def seconds_of(span: object) -> float | None:
    """Return a span, or a number of seconds, in seconds; None where it is neither."""
    if isinstance(span, (int, float)) and not isinstance(span, bool) and 0 <= span < float("inf"):
        return float(span)
    match = _SPAN.fullmatch(span.strip()) if isinstance(span, str) else None
    return float(match[1]) * _UNITS[match[2]] if match else None

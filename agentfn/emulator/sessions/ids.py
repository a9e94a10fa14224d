"""Ids as the Agents API makes them (openai-agents.md §2 to §5)."""

from __future__ import annotations

import secrets


def new_id(prefix: str) -> str:
    """Return an id of that kind: ``agent``, ``sess``, ``turn``, ``msg``, ``fco``, ``exec`` (a call) or ``evt``."""
    return f"{prefix}_{secrets.token_hex(20)}"

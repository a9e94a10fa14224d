"""Limits that agents, conversations and responses share (foundry.md §8)."""

from __future__ import annotations

from typing import Any

from agentfn.emulator.responses.errors import invalid

MOST_PAIRS, LONGEST_KEY, LONGEST_VALUE = 16, 64, 512


def metadata_of(body: dict[str, Any]) -> dict[str, str]:
    """Return a request's metadata; null and nothing are both empty."""
    metadata = body.get("metadata")
    if metadata is None:
        return {}
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise invalid("metadata must be an object of strings", param="metadata")
    long = any(len(key) > LONGEST_KEY or len(value) > LONGEST_VALUE for key, value in metadata.items())
    if len(metadata) > MOST_PAIRS or long:
        message = (
            f"metadata: at most {MOST_PAIRS} pairs, keys of {LONGEST_KEY} and values of {LONGEST_VALUE} characters"
        )
        raise invalid(message, param="metadata")
    return metadata

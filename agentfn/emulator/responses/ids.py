"""Ids as Foundry makes them (foundry.md §3)."""

from __future__ import annotations

import re
import secrets
import string

_ALPHABET = string.ascii_letters + string.digits
CONVERSATION_ID = re.compile(r"conv_[A-Za-z0-9]{48,50}")


def partition() -> str:
    """Return a new partition key: 16 hexadecimal digits and ``00``; a conversation shares its own with all on it."""
    return secrets.token_hex(8) + "00"


def partition_of(identity: str) -> str:
    """Return the partition key inside an id."""
    return identity.split("_", 1)[1][:18]


def new_id(prefix: str, key: str | None = None) -> str:
    """Return an id of that kind in that partition."""
    return f"{prefix}_{key or partition()}{_random(32)}"


def new_call_id() -> str:
    """Return an id for a function call."""
    return f"call_{_random(24)}"


def _random(length: int) -> str:
    # One call for all of them: asking the system for each character costs more than the rest of a request.
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in secrets.token_bytes(length))

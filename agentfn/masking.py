"""Known secrets never reach a screen, a file, a log or a request."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentfn.model import Json

MASK = "***"

#: A value shorter than this is not treated as a secret: masking "1" would garble everything.
SHORTEST = 8

#: What merely looks like a secret: a part that must be there, which is cheap to look for, and the whole form.
_LOOKS_SECRET = {
    "an OpenAI key": ("sk-", r"\bsk-[A-Za-z0-9_-]{20,}"),
    "a GitHub token": ("gh", r"\bgh[pousr]_[A-Za-z0-9]{30,}"),
    "an AWS access key": ("AKIA", r"\bAKIA[0-9A-Z]{16}\b"),
    "a JSON web token": ("eyJ", r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    "a private key": ("PRIVATE KEY", r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    "a storage account key": ("AccountKey=", r"AccountKey=[A-Za-z0-9+/=]{20,}"),
    "a password": ("assword", r"(?i)\bpassword\s*[=:]\s*\S{6,}"),
}


class Masker:
    """Replaces secret values, also as JSON and URLs write them, by ``***``. Safe to use from several threads."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self.secrets = frozenset(secret for secret in secrets if len(secret) >= SHORTEST)
        forms = {form for secret in self.secrets for form in _forms(secret)}
        # Longest first, or a secret that contains another would be left half-visible.
        ordered = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def mask(self, text: str) -> str:
        """Return the text without any known secret."""
        return self._pattern.sub(MASK, text) if self._pattern else text

    def mask_json(self, value: Json) -> Json:
        """Return a JSON value whose texts, keys included, hold no known secret."""
        if isinstance(value, str):
            return self.mask(value)
        if isinstance(value, list):
            return [self.mask_json(item) for item in value]
        if isinstance(value, dict):
            return {self.mask(str(key)): self.mask_json(item) for key, item in value.items()}
        return value

    def found(self, text: str) -> bool:
        """Tell whether the text holds a known secret."""
        return self._pattern is not None and self._pattern.search(text) is not None

    def with_more(self, secrets: Iterable[str]) -> Masker:
        """Return a masker that knows these values too."""
        return Masker([*self.secrets, *secrets])


def _forms(secret: str) -> Iterable[str]:
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield quote(secret, safe="")


def looks_secret(text: str) -> list[str]:
    """Return what in the text merely looks like a secret, in words; that is warned about and never changed."""
    return [name for name, (part, pattern) in _LOOKS_SECRET.items() if part in text and re.search(pattern, text)]

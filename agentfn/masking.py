"""Known secrets never reach a screen, a file, a log or a request."""

from __future__ import annotations

import json
import re
from binascii import b2a_base64
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agentfn.model import Json

MASK = "***"

#: A value shorter than this is not treated as a secret: masking "1" would garble everything.
SHORTEST = 8

_URL_SAFE = str.maketrans("+/", "-_")

#: What merely looks like a secret: a part that must be there, which is cheap to look for, and the whole form.
_LOOKS_SECRET = {
    "an OpenAI key": ("sk-", r"\bsk-[A-Za-z0-9_-]{20,}"),
    "a GitHub token": ("gh", r"\bgh[pousr]_[A-Za-z0-9]{30,}"),
    "a fine-grained GitHub token": ("github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{30,}"),
    "a Slack token": ("xox", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    "a Google API key": ("AIza", r"\bAIza[A-Za-z0-9_-]{35}"),
    "an AWS access key": ("AKIA", r"\bAKIA[0-9A-Z]{16}\b"),
    "a JSON web token": ("eyJ", r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    "a private key": ("PRIVATE KEY", r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    "a storage account key": ("AccountKey=", r"AccountKey=[A-Za-z0-9+/=]{20,}"),
    "a password": ("assword", r"(?i)\bpassword[\"']?\s*[=:]\s*\S{6,}"),
}


class Masker:
    """Replaces secret values, also as JSON, URLs and base64 write them, by ``***``. Safe to use from several threads."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self.secrets = frozenset(secret for secret in secrets if len(secret) >= SHORTEST)
        forms = {form for secret in self.secrets for form in _forms(secret)}
        # Longest first, or a secret that contains another would be left half-visible. No pattern: compiling one of a
        # few long tokens takes longer than looking for them one by one ever will.
        self._forms = sorted(forms, key=lambda form: (-len(form), form))

    def mask(self, text: str) -> str:
        """Return the text without any known secret."""
        for form in self._forms:
            text = text.replace(form, MASK)
        return text

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
        return any(form in text for form in self._forms)

    def with_more(self, secrets: Iterable[str]) -> Masker:
        """Return a masker that knows these values too."""
        return Masker([*self.secrets, *secrets])


def _forms(secret: str) -> Iterator[str]:
    """Yield every text that stands for the secret: as it is, and as JSON, URLs and base64 write it."""
    for plain in {secret, secret.strip()}:
        if len(plain) < SHORTEST:
            continue
        yield plain
        for ascii_only in (True, False):
            written = json.dumps(plain, ensure_ascii=ascii_only)
            yield written[1:-1]
            yield json.dumps(written, ensure_ascii=ascii_only)[3:-3]  # JSON inside JSON, as arguments are
        # An environment may hold bytes that are no text, which Python writes as halves of surrogate pairs.
        data = plain.encode("utf-8", "surrogatepass")
        for quoted in (quote(data, safe=""), quote(data), quote_plus(data)):
            yield quoted
            yield re.sub("%..", lambda match: match[0].lower(), quoted)
        yield from _in_base64(data)


def _in_base64(data: bytes) -> Iterator[str]:
    """Yield the part of a base64 text that depends on the secret alone, for each of the three ways it can be aligned."""
    for before in range(3):
        text = b2a_base64(bytes(before) + data, newline=False).decode("ascii")
        # What was put before spoils the first characters, what comes after would change the last.
        kept = text[(0, 2, 3)[before] : (before + len(data)) * 8 // 6]
        yield kept
        yield kept.translate(_URL_SAFE)


def looks_secret(text: str) -> list[str]:
    """Return what in the text merely looks like a secret, in words; that is warned about and never changed."""
    return [name for name, (part, pattern) in _LOOKS_SECRET.items() if part in text and re.search(pattern, text)]

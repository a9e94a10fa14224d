"""Makes text that came from a model or a function safe to show: nothing in it is executed by a terminal or a CI."""

from __future__ import annotations

import re

#: Control characters (all of C0 and C1 but tab and line feed), direction overrides and isolates, other invisible
#: controls that hide or reorder what is read (tags spell out text that nobody sees), halves of surrogate pairs, and line
#: separators that some programs treat as a new line, and what XML forbids. Joiners stay: scripts and emoji need them.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f\ud800-\udfff]",
)
_LAST_LATIN, _LAST_BASIC = 0xFF, 0xFFFF
#: What .NET, in which both build agents are written, skips when it compares texts.
_SKIPPED = "\u200c\u200d\ufe00-\ufe0f"
#: The start of a GitHub Actions or Azure Pipelines command: one acts at the start of a line, the other anywhere in it.
_COMMAND = re.compile(
    rf"^((?:[^\S\n]|[{_SKIPPED}])*:)(?=[{_SKIPPED}]*:)|(#)(?=[{_SKIPPED}]*#[{_SKIPPED}]*(?:\[|vso))",
    re.MULTILINE | re.IGNORECASE,
)


def visible(text: str, *, multiline: bool = True) -> str:
    r"""Return the text with control characters written as ``\x1b`` or ``\u202e`` and CI commands broken up.

    Printable text stays as it is; doing it twice changes nothing more. Without `multiline`, line feeds and tabs are
    written out too.
    """
    text = _UNSAFE.sub(_escape, text)
    if not multiline:
        text = text.replace("\n", "\\n").replace("\t", "\\t")
    return _COMMAND.sub(_broken, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code <= _LAST_LATIN:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _LAST_BASIC else f"\\U{code:08x}"


def _broken(match: re.Match[str]) -> str:
    return f"{match[0]}\\"


def short(text: str, limit: int) -> str:
    """Return the text on one line, cut to `limit` characters with a note of how many there were."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[:limit]}… ({len(text)} characters)"


def short_error(text: str, limit: int) -> str:
    """Return an error on one line, cut in its middle: a program says what it was first, and what went wrong last."""
    line = " ".join(text.split())
    head = limit // 3
    return line if len(line) <= limit else f"{line[:head]} … {line[head - limit :]} ({len(text)} characters)"

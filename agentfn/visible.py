"""Makes text that came from a model or a function safe to show: nothing in it is executed by a terminal or a CI."""

from __future__ import annotations

import re

#: Control characters (all of C0 and C1 but tab and line feed), direction overrides and isolates, other invisible
#: controls that hide or reorder what is read, and line separators that some programs treat as a new line.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]",
)
_LAST_LATIN = 0xFF
#: The start of a GitHub Actions or Azure Pipelines command, which acts at the start of a line, and for Azure anywhere.
_COMMAND = re.compile(r"^(\s*)(::)(?=[A-Za-z])|(##)(?=\[|vso\[)", re.MULTILINE)


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
    return f"\\x{code:02x}" if code <= _LAST_LATIN else f"\\u{code:04x}"


def _broken(match: re.Match[str]) -> str:
    return f"{match[1]}:\\:" if match[2] else "#\\#"


def short(text: str, limit: int) -> str:
    """Return the text on one line, cut to `limit` characters with a note of how many there were."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[:limit]}… ({len(text)} characters)"

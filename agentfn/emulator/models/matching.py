"""A short text that a regular expression matches: enough of the language for the patterns that schemas use."""

from __future__ import annotations

import re
from re import _constants as codes  # type: ignore[attr-defined]  # the only parser of Python's own expressions
from re import _parser  # type: ignore[attr-defined]  # see above
from typing import Any

#: Tried for classes that exclude characters, and for the dot.
_TRIED = "a0A_-. /:@"
_OF_CATEGORY = {
    codes.CATEGORY_DIGIT: "0",
    codes.CATEGORY_WORD: "a",
    codes.CATEGORY_SPACE: " ",
    codes.CATEGORY_NOT_DIGIT: "a",
    codes.CATEGORY_NOT_WORD: "-",
    codes.CATEGORY_NOT_SPACE: "a",
}


def matching(pattern: str, least: int = 0) -> str | None:
    """Return a short text of at least so many characters that matches; None where that takes more than this knows."""
    try:
        parsed = _parser.parse(pattern)
    except (re.error, RecursionError, OverflowError):
        return None
    for extra in range(least + 1):
        text = _sequence(parsed, extra)
        padding = "a" * (least - len(text))
        for padded in (text + padding, padding + text):
            if re.search(pattern, padded):
                return padded
    return None


def _sequence(parts: Any, extra: int) -> str:
    return "".join(_one(code, value, extra) for code, value in parts)


def _one(code: Any, value: Any, extra: int) -> str:
    """Return the text of one element; what matches no text of its own, such as an anchor, gives none."""
    text = ""
    if code is codes.LITERAL:
        text = chr(value)
    elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        least, most, inner = value
        text = _sequence(inner, 0) * min(least + extra, int(most), least + 1000)
    elif code is codes.SUBPATTERN:
        text = _sequence(value[3], extra)
    elif code is codes.ATOMIC_GROUP:
        text = _sequence(value, extra)
    elif code is codes.BRANCH:
        text = min((_sequence(branch, extra) for branch in value[1]), key=len)
    elif code is codes.IN:
        text = _member(value)
    elif code is codes.ANY:
        text = "a"
    elif code is codes.NOT_LITERAL:
        text = "a" if value != ord("a") else "b"
    return text


def _member(choices: Any) -> str:
    """Return a character of a class."""
    if choices[0][0] is codes.NEGATE:
        return next((c for c in _TRIED if not any(_holds(choice, c) for choice in choices[1:])), "")
    kind, value = choices[0]
    if kind is codes.LITERAL:
        return chr(value)
    if kind is codes.RANGE:
        return chr(value[0])
    return _OF_CATEGORY.get(value, "a")


def _holds(choice: Any, character: str) -> bool:
    kind, value = choice
    if kind is codes.LITERAL:
        return bool(ord(character) == value)
    if kind is codes.RANGE:
        return bool(value[0] <= ord(character) <= value[1])
    example = {"0": str.isdigit, "a": lambda c: c.isalnum() or c == "_", " ": str.isspace}
    test = example.get(_OF_CATEGORY.get(value, ""))
    return test is not None and bool(test(character))
